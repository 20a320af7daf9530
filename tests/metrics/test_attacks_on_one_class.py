"""An attack on the rows of one class: rows that were never attacked are no survivors, in any number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app
from unfooled.metrics.columns import ResultColumns, confusion
from unfooled.metrics.summary import only_class, summarise
from unfooled.runs.file import RunFile

ROWS = "text,label\n" + "".join(
    f"{text},{label}\n"
    for text, label in [
        ("a superb film", "positive"),
        ("a great story", "positive"),
        ("an awful film", "positive"),
        ("an awful play", "negative"),
        ("a bad story", "negative"),
        ("a dull scene", "negative"),
        ("a terrible plot", "negative"),
    ]
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "d.csv").write_text(ROWS, encoding="utf-8")
    command = ["attack", "-m", "fake", "-d", str(tmp_path / "d.csv"), "-a", "deepwordbug"]
    done = CliRunner().invoke(app, [*command, "--only", "positive", "-o", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    return tmp_path / "run"


def test_accuracy_covers_the_rows_of_the_class_and_there_is_no_macro_f1(run: Path) -> None:
    told = json.loads(CliRunner().invoke(app, ["summary", str(run), "--json"]).output)
    assert told["only"] == "positive"
    recall = next(entry for entry in told["recalls"] if entry["class"] == "positive")
    assert told["accuracy_before"] == recall["before"]
    assert told["accuracy_under_attack"] == recall["under_attack"]
    assert told["accuracy_under_attack"]["n"] == 3
    assert told["macro_f1_before"]["value"] is told["macro_f1_under_attack"]["value"] is None


def test_the_table_shows_the_recall_and_no_rate_over_all_rows(run: Path) -> None:
    shown = CliRunner().invoke(app, ["summary", str(run)]).output
    assert "recall of positive under attack" in shown
    assert "accuracy" not in shown
    assert "macro F1" not in shown


def test_curves_and_confusion_of_the_report_cover_the_rows_of_the_class(run: Path) -> None:
    with RunFile.read(run) as file:
        ledger = ResultColumns.read(file.results(), only=only_class(file))
        rate = summarise(file).accuracy_under_attack
    assert int(ledger.judged.sum()) == 3
    assert round((ledger.right_before & ~ledger.fallen).sum() / ledger.judged.sum(), 9) == round(
        rate.value, 9
    )
    assert confusion(ledger, 2, attacked=True).sum() == 3


def test_a_gate_counts_the_rows_of_the_class(run: Path) -> None:
    judged = CliRunner().invoke(app, ["gate", str(run), "--min-aua", "0.9", "--json"])
    assert judged.exit_code in (1, 4), judged.output  # over all seven rows it would be high
