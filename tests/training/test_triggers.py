"""`unfooled trigger` and `uat` from the command line, on a small model that was trained for it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app
from unfooled.errors import CapabilityError, UnknownNameError, UserError
from unfooled.resources.triggers import Triggers
from unfooled.runs.file import RunFile

pytest.importorskip("torch")

GOOD, BAD = ("good", "great", "fun"), ("bad", "dull", "grim")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trigger")
    rows = [
        (f"the {noun} is {word} {tail}", label)
        for label, words in (("positive", GOOD), ("negative", BAD))
        for word in words
        for noun in ("film", "plot", "movie", "cast", "end")
        for tail in ("", "here", "and long", "this time")
    ]
    with (folder / "train.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    invoke(
        *(
            "train",
            "--model",
            "word-cnn",
            "--data",
            str(folder / "train.csv"),
            "--out",
            str(folder / "model"),
        ),
        *("--vectors", "none", "--epochs", "8", "--seed", "1", "--valid", "0.2"),
    )
    return folder


def invoke(*command: str) -> Any:
    answer = CliRunner().invoke(app, list(command))
    assert answer.exit_code == 0, f"{answer.output} {answer.exception!r}"
    return answer


def learn(folder: Path, out: Path, *more: str) -> Any:
    given = ("--model", str(folder / "model"), "--data", str(folder / "train.csv"), "--out", str(out))
    return invoke("trigger", *given, "--batch", "16", *more)


def test_a_trigger_is_learned_told_and_replayed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "trigger.json"
    told = json.loads(learn(folder, out, "--json").stdout)
    read = Triggers.read(out)
    assert set(read.against) == {"negative", "positive"}
    assert set(read.against["negative"].words) & set(GOOD)
    assert set(read.against["positive"].words) & set(BAD)
    for label, trigger in read.against.items():
        assert told["triggers"][label]["flipped"] == trigger.flipped
        assert 0 < trigger.flipped <= trigger.rows
    attacked = ("--model", str(folder / "model"), "--data", str(folder / "train.csv"), "--attack", "uat")
    where = ("--set", f"search.trigger={out}", "--out", str(tmp_path / "run"), "--json")
    invoke("attack", *attacked, *where)
    results = [result for result in RunFile.read(tmp_path / "run").results() if result.edits]
    assert {result.queries for result in results} == {2}
    assert any(result.outcome == "success" for result in results)
    # A file of ours may be replaced; the same seed gives the same bytes.
    before = out.read_bytes()
    learn(folder, out)
    assert out.read_bytes() == before


def test_one_class_a_target_and_what_is_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.json"
    shown = learn(folder, out, "--class", "negative", "--target", "positive", "--words", "1").stdout
    assert "negative: " in shown
    assert "rows held out" in shown
    assert list(Triggers.read(out).against) == ["negative"]
    assert Triggers.read(out).target == "positive"
    given = ["trigger", "--data", str(folder / "train.csv"), "--out", str(tmp_path / "x.json"), "--model"]
    runner = CliRunner()
    assert isinstance(runner.invoke(app, [*given, "fake"]).exception, CapabilityError)
    unknown = runner.invoke(app, [*given, str(folder / "model"), "--class", "neutral"])
    assert isinstance(unknown.exception, UnknownNameError)
    other = tmp_path / "x.json"
    other.write_text("{}")
    assert isinstance(runner.invoke(app, [*given, str(folder / "model")]).exception, UserError)
