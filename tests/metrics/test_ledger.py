"""Curves and tables from columns, against arithmetic by hand."""

from __future__ import annotations

import math

import pytest

from stored_runs import made_with_scores as made
from unfooled.metrics.columns import (
    ResultColumns,
    accuracy_at_least,
    accuracy_at_most,
    confusion,
    query_limits,
)

RESULTS = [
    made(0, "success", after=0.2, changed=1, queries=5, similarity=0.95),
    made(1, "success", after=0.4, changed=3, queries=30, similarity=0.7),
    made(2, "failure", after=0.6, changed=2, queries=40),
    made(3, "skipped", before=0.1, after=0.1, queries=1),
    made(4, "error", queries=0),
]


@pytest.fixture
def ledger() -> ResultColumns:
    return ResultColumns.read(RESULTS)


def test_columns(ledger: ResultColumns) -> None:
    assert ledger.keys.tolist() == [0, 1, 2, 3, 4]
    assert ledger.judged.tolist() == [True, True, True, True, False]
    assert ledger.right_before.tolist() == [True, True, True, False, False]
    assert ledger.fallen.tolist() == [True, True, False, False, False]
    assert ledger.share.tolist() == pytest.approx([0.1, 0.3, 0.2, 0.0, 0.0])
    assert ledger.p_after[:2].tolist() == pytest.approx([0.2, 0.4])
    assert math.isnan(ledger.p_before[4])


def test_accuracy_against_the_share_of_words(ledger: ResultColumns) -> None:
    points = accuracy_at_most(ledger, ledger.share, (0.0, 0.1, 0.2, 0.3))
    # Three of four are right before; the first falls at 10 %, the second at 30 %.
    assert [point.accuracy.value for point in points] == [0.75, 0.5, 0.5, 0.25]
    assert {point.accuracy.n for point in points} == {4}


def test_accuracy_against_queries(ledger: ResultColumns) -> None:
    points = accuracy_at_most(ledger, ledger.queries, (4, 5, 29, 30))
    assert [point.accuracy.value for point in points] == [0.75, 0.5, 0.5, 0.25]


def test_accuracy_when_only_similar_texts_count(ledger: ResultColumns) -> None:
    points = accuracy_at_least(ledger, ledger.similarity, (0.0, 0.8, 0.99))
    assert [point.accuracy.value for point in points] == [0.25, 0.5, 0.75]


def test_confusion(ledger: ResultColumns) -> None:
    assert confusion(ledger, 2, attacked=False).tolist() == [[0, 0], [1, 3]]
    after = confusion(ledger, 2, attacked=True)
    assert after.tolist() == [[0, 0], [3, 1]]


def test_query_limits_are_round_and_end_at_the_most(ledger: ResultColumns) -> None:
    assert query_limits(ledger) == [1, 2, 5, 10, 20, 40]
    assert query_limits(ResultColumns.read([])) == [1]


def test_nothing_at_all() -> None:
    empty = ResultColumns.read([])
    assert len(empty) == 0
    (point,) = accuracy_at_most(empty, empty.share, [1.0])
    assert point.accuracy.n == 0
    assert math.isnan(point.accuracy.value)
