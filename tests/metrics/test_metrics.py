from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from unfooled.core.result import Outcome, Result
from unfooled.metrics.summary import summarise
from unfooled.runs.file import RunFile
from unfooled.text import Edit


def made(
    key: int,
    outcome: Outcome,
    *,
    edits: tuple[Edit, ...] = (),
    queries: int = 0,
    similarity: float | None = None,
    note: str = "",
) -> Result:
    right, wrong = (0.9, 0.1), (0.2, 0.8)
    return Result(
        key=key,
        outcome=outcome,
        label=0,
        probs=wrong if outcome == "skipped" else () if outcome == "error" else right,
        perturbed_probs=right if outcome == "failure" else () if outcome == "error" else wrong,
        fields=(("text", "a bad film to see twice a day or more"),),
        field=0,
        perturbed="",
        edits=edits,
        words=10,
        queries=queries,
        similarity=similarity,
        note=note,
    )


def swap(before: str, after: str) -> Edit:
    return Edit("replace", 1, before, after, 2)


RESULTS = [
    made(0, "success", edits=(swap("bad", "poor"),), queries=10, similarity=0.9),
    made(1, "success", edits=(swap("Bad", "Poor"), swap("film", "movie")), queries=20, similarity=0.7),
    made(
        2, "success", edits=(swap("bad", "evil"), Edit("delete", 3, "to", "", 5), swap("a", "b")), queries=60
    ),
    made(3, "failure", queries=100, edits=(swap("bad", "poor"),), similarity=0.1),
    made(4, "skipped", queries=1),
    made(5, "skipped", queries=1),
    made(6, "error", note="line 8 of the file: no text (column 'text')", queries=5),
    made(7, "error", note="the victim failed"),
    made(8, "error", note="line 10 of the file: no text (column 'text')"),
    made(9, "error"),
    made(10, "error", note="seen last"),
]


def test_a_run_with_known_answers(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, {"identity": {}}) as run:
        for result in RESULTS:
            run.add(result)
        summary = summarise(run)
    assert summary.counts == {"success": 3, "failure": 1, "skipped": 2, "error": 5, "abstained": 0}
    assert (summary.total, summary.attacked, summary.errors) == (11, 4, 5)
    # 4 of the 6 that could be judged were right before, 1 of the 6 after; 3 of 4 attacks succeeded.
    assert summary.accuracy_before.value == pytest.approx(4 / 6)
    assert summary.accuracy_under_attack.value == pytest.approx(1 / 6)
    assert summary.accuracy_before.n == summary.accuracy_under_attack.n == 6
    # Class 0 is always true. Before, 4 of 6 are called 0: F1 2·4/(6+4), and 0 for class 1; after, 1 of 6.
    assert summary.f1_before.value == pytest.approx((0.8 + 0.0) / 2)
    assert summary.f1_under_attack.value == pytest.approx((2 / 7 + 0.0) / 2)
    assert summary.f1_before.low <= 0.4 <= summary.f1_before.high
    assert (summary.success_rate.value, summary.success_rate.n) == (0.75, 4)
    # Wilson by hand for 3 of 4: (0.75 + 0.480182) / 1.960365 ± …
    assert (summary.success_rate.low, summary.success_rate.high) == pytest.approx(
        (0.30064, 0.95441), abs=1e-4
    )
    assert (summary.words_changed.value, summary.words_changed.n) == (2.0, 3)
    assert summary.perturbed_share.value == pytest.approx(0.2)
    assert 0.0 <= summary.perturbed_share.low < 0.2 < summary.perturbed_share.high < 0.5
    assert (summary.queries.value, summary.queries.median, summary.queries.n) == (47.5, 40.0, 4)
    assert summary.query_percentiles[90] == pytest.approx(60 + 0.7 * 40)
    assert summary.similarity.value == pytest.approx(0.8)
    assert summary.similarity.n == 2
    assert [(s.before, s.after, s.count) for s in summary.substitutions] == [
        ("bad", "poor", 2),
        ("a", "b", 1),
        ("bad", "evil", 1),
        ("film", "movie", 1),
        ("to", "", 1),  # deleted
    ]
    assert [(e.message, e.count, e.key) for e in summary.error_notes] == [
        ("no text (column 'text')", 2, 6),
        ("the victim failed", 1, 7),
        ("no reason given", 1, 9),
    ]
    told = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert told["success_rate"]["n"] == 4
    assert told["queries"]["median"] == told["queries"]["p50"] == 40.0
    assert told["macro_f1_before"]["n"] == 6
    assert told["errors"] == 5


def test_errors_move_no_rate(tmp_path: Path) -> None:
    summaries = []
    for name, results in (("with", RESULTS), ("without", [r for r in RESULTS if r.outcome != "error"])):
        with RunFile.open(tmp_path / name, {"identity": {}}) as run:
            for result in results:
                run.add(result)
            summaries.append(summarise(run))
    with_errors, without = summaries
    assert with_errors.accuracy_before == without.accuracy_before
    assert with_errors.accuracy_under_attack == without.accuracy_under_attack
    assert with_errors.success_rate == without.success_rate
    assert with_errors.queries == without.queries
    assert (with_errors.errors, without.errors) == (5, 0)


@pytest.mark.parametrize("results", [[], [RESULTS[6]]])
def test_nothing_to_judge(tmp_path: Path, results: list[Result]) -> None:
    with RunFile.open(tmp_path, {"identity": {}}) as run:
        for result in results:
            run.add(result)
        summary = summarise(run)
    assert math.isnan(summary.success_rate.value)
    assert (summary.success_rate.low, summary.success_rate.high, summary.success_rate.n) == (0.0, 1.0, 0)
    assert math.isnan(summary.queries.value)
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["success_rate"]["value"] is None
