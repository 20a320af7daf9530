"""A tie is no decision: not right, not another class, and in a row of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unfooled.checks.compare import compare
from unfooled.cli.app import app
from unfooled.core.result import decided
from unfooled.data.dataset import Dataset
from unfooled.runs.attack import Run, attack
from unfooled.victims.function import FunctionVictim

LABELS = ("negative", "positive")
KNOWN = {"awful": 0, "dull": 0, "great": 1, "fine": 1}


def hides(texts: Sequence[str]) -> list[list[float]]:
    """Answers 0.5 and 0.5 as soon as a text holds no word that it knows."""
    answers = []
    for text in texts:
        classes = {KNOWN[word] for word in text.split() if word in KNOWN}
        answers.append([0.9, 0.1] if classes == {0} else [0.1, 0.9] if classes == {1} else [0.5, 0.5])
    return answers


def attacked(out: Path, rows: list[tuple[str, str]]) -> Run:
    victim = FunctionVictim(hides, labels=LABELS)
    return attack(victim, Dataset.from_pairs(rows, labels=LABELS), "deepwordbug", out=out)


@pytest.mark.parametrize(
    ("probs", "said"),
    [((0.2, 0.8), 1), ((0.5, 0.5), -1), ((0.4, 0.2, 0.4), -1), ((0.3, 0.3, 0.4), 2), ((1.0,), 0), ((), -1)],
)
def test_the_decision_of_a_tie_is_none(probs: tuple[float, ...], said: int) -> None:
    assert decided(probs) == said


def test_a_model_that_hides_in_ties_holds_on_no_class(tmp_path: Path) -> None:
    """Before, every tie counted as the first class, so that a model like this one held on it."""
    rows = [("an awful film", "negative"), ("a dull story", "negative"), ("a great film", "positive")]
    run = attacked(tmp_path / "r", rows)
    assert [result.outcome for result in run.results()] == ["abstained"] * 3
    assert all(result.perturbed != result.original and result.edits for result in run.results())
    summary = run.summary()
    assert summary.accuracy_under_attack.value == 0.0
    assert summary.success_rate.value == 0.0
    assert (summary.attacked, summary.counts["abstained"]) == (3, 3)
    assert (summary.abstained_before.value, summary.abstained_under_attack.value) == (0.0, 1.0)
    assert [recall.under_attack.value for recall in summary.recalls] == [0.0, 0.0]
    assert summary.f1_under_attack.value == 0.0
    shown = CliRunner().invoke(app, ["summary", str(tmp_path / "r")]).stdout
    assert "3 abstained" in shown
    assert "abstained under attack" in shown
    assert "under attack, negative" in shown
    told = json.loads(CliRunner().invoke(app, ["summary", str(tmp_path / "r"), "--json"]).stdout)
    assert told["abstained_under_attack"]["value"] == 1.0
    assert [recall["under_attack"]["value"] for recall in told["recalls"]] == [0.0, 0.0]


def test_a_tie_before_the_attack_is_not_right(tmp_path: Path) -> None:
    run = attacked(tmp_path / "r", [("a film", "negative"), ("an awful film", "negative")])
    first, _ = run.results()
    assert (first.outcome, first.queries) == ("skipped", 1)
    assert "abstained before the attack" in first.note
    summary = run.summary()
    assert summary.accuracy_before.value == 0.5
    assert summary.abstained_before.value == 0.5


def test_reports_and_comparisons_have_a_column_for_ties(tmp_path: Path) -> None:
    rows = [("an awful film", "negative"), ("a great film", "positive"), ("a film", "negative")]
    attacked(tmp_path / "r", rows)
    answer = CliRunner().invoke(app, ["report", str(tmp_path / "r"), "--out", str(tmp_path / "report.html")])
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "report.html").read_text()
    assert "true negative, decided abstained: 1 (50% of the row)" in page
    (measured,) = compare([FunctionVictim(hides, labels=LABELS)], Dataset.from_pairs(rows, labels=LABELS))
    assert measured.accuracy == pytest.approx(2 / 3)
