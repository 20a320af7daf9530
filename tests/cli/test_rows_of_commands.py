"""Commands that can do with fewer rows take a seeded sample of every class, as an attack does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.resources.class_words import ClassWords
from unfooled.runs.row_choice import all_but, take

ROWS = [(f"an awful film number {i}", "negative") for i in range(60)]
ROWS += [(f"a great film number {i}", "positive") for i in range(40)]
MISSING = "10 rows are taken, and none of them is of the class positive: take more rows"


@pytest.fixture
def data(tmp_path: Path) -> str:
    """All negative rows first, as in many files that people keep."""
    path = tmp_path / "sorted.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS))
    return str(path)


def invoke(*command: str) -> Any:
    answer = CliRunner().invoke(app, list(command))
    assert answer.exit_code == 0, answer.output
    return answer


def test_words_are_counted_in_a_sample_of_both_classes(data: str, tmp_path: Path) -> None:
    out = tmp_path / "words.json"
    told = invoke("words", "--data", data, "--out", str(out), "--limit", "10")
    assert "none of them" not in told.stderr
    assert ClassWords.read(out).labels == ("negative", "positive")
    assert {"awful", "great"} <= set(ClassWords.read(out).words)
    answer = CliRunner().invoke(app, ["words", "--data", data, "--out", str(out), "--first", "10"])
    assert MISSING in answer.stderr
    assert "no row has a word for the class 'positive'" in str(answer.exception)


def test_models_are_compared_on_a_sample(data: str) -> None:
    measured = json.loads(invoke("compare", "fake", "--data", data, "--limit", "10", "--json").stdout)
    assert measured[0]["n"] == 10
    told = invoke("compare", "fake", "--data", data, "--first", "10", "--json")
    assert MISSING in told.stderr


def test_a_model_is_trained_on_a_sample(data: str, tmp_path: Path) -> None:
    """The first ten rows are of one class, of which nothing can be learned."""
    command = ["train", "--model", "naive-bayes", "--data", data, "--valid", "0", "--out"]
    invoke(*command, str(tmp_path / "sample"), "--limit", "10")
    record = json.loads((tmp_path / "sample" / "training.json").read_text())
    assert record["data"]["train"] == 10
    answer = CliRunner().invoke(app, [*command, str(tmp_path / "first"), "--first", "10"])
    assert answer.exit_code != 0
    assert MISSING in answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("train", "--model", "svm", "--out", "x"),
        ("words",),
        ("compare", "fake"),
        ("search", "--method", "five", "--model", "fake", "--out", "x"),
        ("harden", "--method", "fact", "--model", "fake", "--out", "x"),
    ],
)
def test_one_kind_of_rows_is_asked_for(data: str, command: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(app, [*command, "--data", data, "--limit", "5", "--first", "5"])
    assert isinstance(answer.exception, UserError)
    assert "--first and --limit contradict each other" in str(answer.exception)


def test_rows_that_judge_are_not_trained_on(data: str) -> None:
    rows = load_data(data)
    judged = take(rows, 30, seed=0)
    left = all_but(rows, judged)
    assert {example.key for example in judged} | {example.key for example in left} == set(range(100))
    assert len(left) == 70
