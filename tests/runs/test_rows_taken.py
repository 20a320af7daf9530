"""Which rows a limit takes: a seeded sample by classes, which grows; or the first ones, where asked for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from notices import Notices
from unfooled.cli.app import app
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.data.sampling import stratified_order
from unfooled.errors import RunFileError, UserError
from unfooled.runs.attack import attack
from unfooled.runs.row_choice import take
from unfooled.victims.fake import FakeVictim


def sorted_by_class(negative: int = 60, positive: int = 40) -> list[tuple[str, str]]:
    """All negative rows first, as in many files that people keep."""
    rows = [(f"an awful film number {i}", "negative") for i in range(negative)]
    return rows + [(f"a great film number {i}", "positive") for i in range(positive)]


def data(negative: int = 60, positive: int = 40) -> Dataset:
    return Dataset.from_pairs(sorted_by_class(negative, positive), labels=("negative", "positive"))


@settings(deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=1, max_size=200), st.integers(0, 5), st.integers(1, 200))
def test_every_beginning_holds_each_class_in_its_share(classes: list[int], seed: int, count: int) -> None:
    order = stratified_order(classes, seed)
    assert sorted(order.tolist()) == list(range(len(classes)))
    beginning = Counter(np.array(classes)[order[:count]].tolist())
    whole = Counter(classes)
    taken = min(count, len(classes))
    for number, size in whole.items():
        assert abs(beginning[number] - taken * size / len(classes)) < len(whole) + 1


def test_a_limit_takes_a_sample_and_a_larger_one_keeps_it() -> None:
    small, large = take(data(), 10, seed=0), take(data(), 30, seed=0)
    assert Counter(example.label for example in small) == {0: 6, 1: 4}
    assert {example.key for example in small} < {example.key for example in large}
    assert [example.key for example in small] == [example.key for example in take(data(), 10, seed=0)]
    assert [example.key for example in small] != [example.key for example in take(data(), 10, seed=1)]
    assert [example.key for example in take(data(), 10, seed=0, first=True)] == list(range(10))
    # The same rows whatever numbers a victim has for the classes.
    turned = data().aligned(("positive", "negative"))
    assert [example.key for example in take(turned, 10, seed=0)] == [example.key for example in small]


def test_a_run_grows_by_rows_and_does_not_depend_on_workers(tmp_path: Path) -> None:
    run = attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=10)
    first = {result.key: result for result in run.results()}
    assert Counter(result.label for result in first.values()) == {0: 6, 1: 4}
    grown = {
        result.key: result
        for result in attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=20).results()
    }
    assert len(grown) == 20
    assert {key: grown[key] for key in first} == first
    whole = attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r")
    assert len(list(whole.results())) == 100
    other = attack("fake", data(), "deepwordbug", out=tmp_path / "w", limit=10, workers=2)
    assert {result.key for result in other.results()} == set(first)
    seeded = attack(
        FakeVictim(), data(), "deepwordbug", out=tmp_path / "s", limit=10, settings=Settings(seed=3)
    )
    assert {result.key for result in seeded.results()} != set(first)


def test_the_first_rows_and_a_sample_do_not_mix(tmp_path: Path) -> None:
    attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=10, first=True)
    with pytest.raises(RunFileError, match="holds the first rows of the data"):
        attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=20)
    again = attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=20, first=True)
    assert [result.key for result in again.results()] == list(range(20))
    # All rows hold any of them.
    assert len(list(attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r").results())) == 100
    assert (
        len(list(attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=5).results())) == 100
    )


def test_a_class_that_is_missing_is_said_aloud(tmp_path: Path) -> None:
    told = Notices()
    attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "r", limit=10, first=True, observer=told)
    assert "10 rows are taken, and none of them is of the class positive: take more rows" in told.notices
    quiet = Notices()
    attack(FakeVictim(), data(), "deepwordbug", out=tmp_path / "s", limit=10, observer=quiet)
    assert not any("none of them" in notice for notice in quiet.notices)


def test_the_command_line_takes_either(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in sorted_by_class())
    )
    command = ["attack", "--model", "fake", "--data", str(path), "--attack", "deepwordbug", "--json"]
    answer = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "a"), "--limit", "10"])
    assert [recall["before"]["n"] for recall in json.loads(answer.stdout)["recalls"]] == [6, 4]
    answer = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "b"), "--first", "10"])
    assert [recall["before"]["n"] for recall in json.loads(answer.stdout)["recalls"]] == [10, 0]
    answer = CliRunner().invoke(app, [*command, "--first", "10", "--limit", "10"])
    assert isinstance(answer.exception, UserError)
    assert "--first and --limit contradict each other" in str(answer.exception)
