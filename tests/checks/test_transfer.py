"""Texts that fooled one model, scored on others whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from reviews import sentences, write_csv
from unfooled.checks.transfer import Transfer, stored_transfers, transfer
from unfooled.cli.app import app
from unfooled.core.result import Result
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError, RunFileError, UserError
from unfooled.progress import ProgressObserver
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.text import Edit
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim

LABELS = ("negative", "positive")


def write_run(folder: Path, rows: Sequence[tuple[str, str]], *, fields: bool = False) -> Path:
    """Successes given as (original, perturbed); the first model said positive, then negative."""
    header = {
        "identity": {"labels": list(LABELS), "recipe": {}},
        "environment": {"attack": "toy@1", "victim": "first", "data": "toys"},
    }
    with RunFile.open(folder, header) as file:
        for key, (before, after) in enumerate(rows):
            content = (("premise", "p"), ("hypothesis", before)) if fields else (("text", before),)
            file.add(
                Result(
                    key=key,
                    outcome="success",
                    label=1,
                    fields=content,
                    field=len(content) - 1,
                    perturbed=after,
                    probs=(0.1, 0.9),
                    perturbed_probs=(0.8, 0.2),
                    edits=(Edit("replace", 0, before, after, 0),),
                    words=1,
                )
            )
        file.add(Result(99, "failure", 1, (("text", "x"),), 0, "x", (0.1, 0.9), (0.2, 0.8)))
    return folder


def by_table(table: dict[Any, int], labels: Sequence[str] = LABELS, **options: Any) -> FunctionVictim:
    """Decides as the table says."""

    def predict(texts: Sequence[Any]) -> Any:
        return np.eye(len(labels))[[table[text] for text in texts]] * 0.8 + 0.2 / len(labels)

    return FunctionVictim(predict, labels=labels, **options)


ROWS = [("good", "fine"), ("great", "decent"), ("superb", "nice"), ("odd", "queer")]
TABLE = {"good": 1, "fine": 0, "great": 1, "decent": 1, "superb": 1, "nice": 0, "odd": 0, "queer": 0}


def test_only_texts_that_were_right_before_count(tmp_path: Path) -> None:
    found = transfer(write_run(tmp_path / "run", ROWS), by_table(TABLE))
    # good and superb are fooled, great is not, odd was wrong already: 2 of 3.
    assert (found.found, found.rate.n, found.errors) == (4, 3, 0)
    assert found.rate.value == pytest.approx(2 / 3)
    assert 0.0 < found.rate.low < 2 / 3 < found.rate.high < 1.0
    assert found.same_class.value == pytest.approx(2 / 3)
    assert (found.attack, found.source) == ("toy@1", "first")
    first = found.examples[0]
    assert (first.label, first.before, first.after, first.first) == (
        "positive",
        "positive",
        "negative",
        "negative",
    )
    assert (first.p_before, first.p_after) == pytest.approx((0.9, 0.1))


def test_classes_meet_by_name_whatever_their_order(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ROWS)
    turned = by_table({text: 1 - label for text, label in TABLE.items()}, labels=LABELS[::-1])
    assert transfer(run, turned).rate == transfer(run, by_table(TABLE)).rate
    strangers = by_table(TABLE, labels=("ham", "spam"))
    with pytest.raises(DataError, match="--label-map"):
        transfer(run, strangers)
    mapped = transfer(run, strangers, label_map={"negative": "ham", "positive": "spam"})
    assert mapped.rate.value == pytest.approx(2 / 3)


def test_another_wrong_class_is_fooled_but_not_the_same(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ROWS[:2])
    three = by_table({"good": 1, "fine": 2, "great": 1, "decent": 0}, labels=(*LABELS, "neutral"))
    found = transfer(run, three)
    assert (found.rate.value, found.same_class.value) == (1.0, 0.5)


def test_pairs_keep_their_other_field(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ROWS[:1], fields=True)
    assert transfer(run, by_table({("p", "good"): 1, ("p", "fine"): 0})).rate.value == 1.0


def test_what_cannot_be_scored_is_an_error_and_in_no_rate(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ROWS)
    found = transfer(run, by_table({text: label for text, label in TABLE.items() if text != "nice"}))
    assert (found.errors, found.rate.n) == (1, 2)
    assert "nice" in found.examples[2].error


def test_it_is_kept_beside_the_run_and_read_again(tmp_path: Path) -> None:
    run, seen = write_run(tmp_path / "run", ROWS), []

    class Watching(ProgressObserver):
        def started(self, total: int, done: int = 0, *, what: str = "") -> None:
            seen.append((what, total))

    first = transfer(run, by_table(TABLE, name="other"), observer=Watching())
    assert transfer(run, by_table(TABLE, name="other"), observer=Watching()) == first
    assert seen == [("other", 4)]
    assert transfer(run, by_table(TABLE, name="other"), observer=Watching(), again=True) == first
    assert len(seen) == 2
    (file,) = (run / "transfer").glob("*.json")
    stored = json.loads(file.read_text())
    assert stored["transferred"]["n"] == 3
    assert Transfer.from_dict(stored) == first
    assert stored_transfers(run) == [first]
    file.write_text("{")
    assert stored_transfers(run) == []
    assert transfer(run, by_table(TABLE, name="other")) == first


def test_a_run_without_successes_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="nothing to score again"):
        transfer(write_run(tmp_path / "run", []), by_table(TABLE))


def test_the_model_itself_is_fooled_by_all_its_texts(tmp_path: Path) -> None:
    data = Dataset.from_pairs(sentences(20))
    run = attack(FakeVictim(), data, "deepwordbug", out=tmp_path / "run")
    found = transfer(run.path, FakeVictim())
    assert found.found == run.summary().counts["success"] > 0
    assert (found.rate.value, found.same_class.value) == (1.0, 1.0)
    assert found.rate.n == found.found


# -- the command ---------------------------------------------------------------------------------------


def unfooled(*arguments: str) -> str:
    """What the command prints; mistakes come as exceptions."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


MODEL = """
def predict(texts):
    return [{"negative": 0.1, "positive": 0.9} for _ in texts]
"""


def test_the_command_shows_a_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "d.csv", sentences(12))
    (tmp_path / "always.py").write_text(MODEL)
    unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", "-o", "run")
    shown = unfooled("transfer", "--from", "run", "--to", "fake", "always.py:predict")
    assert "fooled as well" in shown
    assert "100.0%" in shown
    asked = ["transfer", "--from", "run", "--to", "fake", "--to", "always.py:predict", "--json"]
    rows = json.loads(unfooled(*asked))
    assert [row["transferred"]["value"] for row in rows] == [1.0, 0.0]
    assert "examples" not in rows[0]
    for arguments, message in (
        (["--from", "nowhere", "--to", "fake"], "there is no run"),
        (["--from", "run", "--to", "nothing.skops"], "nothing.skops"),
        (["--from", "run", "--to", "fake", "--label-map", "x"], "name=value"),
    ):
        with pytest.raises(UserError, match=message):
            unfooled("transfer", *arguments)
