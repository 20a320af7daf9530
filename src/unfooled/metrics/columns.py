"""A run as columns: read once, then every curve and table is arithmetic on arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core import curve
from unfooled.core.result import ATTACKED, OUTCOMES, Result, decided
from unfooled.metrics.summary import Rate
from unfooled.rates import confusion as counted

Column = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class ResultColumns:
    """One entry per example, in the order of the keys; errors have no decisions (-1)."""

    keys: Counts
    outcome: Counts  # index into OUTCOMES
    label: Counts
    before: Counts  # class decided before the attack
    after: Counts
    p_before: Column  # probability of the true class
    p_after: Column
    words: Counts
    changed: Counts
    queries: Column  # nan where nobody told them
    similarity: Column  # nan where nothing was measured
    only: int = _NONE  # the class whose rows alone were attacked
    curves: tuple[
        tuple[curve.CurvePoint, ...], ...
    ] = ()  # of attacks that go on after a success; else empty ones

    @classmethod
    def read(cls, results: Iterable[Result], *, only: int = _NONE) -> ResultColumns:
        rows, curves = [], []
        for result in results:
            rows.append(_row(result))
            curves.append(tuple(curve.curve_of(result.facts)))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_NAMES)
        kinds = (np.float64 if name in _REAL else np.int64 for name in _NAMES)
        given: dict[str, Any] = {
            name: np.array(column, dtype=kind)
            for name, column, kind in zip(_NAMES, columns, kinds, strict=True)
        }
        return cls(**given, only=only, curves=tuple(curves))

    def __len__(self) -> int:
        return len(self.keys)

    def has(self, outcome: str) -> Flags:
        found: Flags = self.outcome == OUTCOMES.index(outcome)
        return found

    @property
    def judged(self) -> Flags:
        """All but errors, and rows that nobody meant to attack: these say nothing about robustness."""
        flags: Flags = ~self.has("error")
        if self.only >= 0:
            flags &= self.label == self.only
        return flags

    @property
    def attacked(self) -> Flags:
        flags: Flags = np.isin(self.outcome, [OUTCOMES.index(outcome) for outcome in ATTACKED])
        return flags

    @property
    def right_before(self) -> Flags:
        flags: Flags = self.judged & (self.before == self.label)
        return flags

    @property
    def fallen(self) -> Flags:
        """Right before the attack, wrong after it."""
        flags: Flags = self.right_before & (self.after != self.label)
        return flags

    @property
    def needed(self) -> Column:
        """Queries until the first success, of attacks that went on after it; else all of them."""
        first = [points[0].queries if points else math.nan for points in self.curves]
        firsts = np.array(first, dtype=np.float64)
        return np.where(np.isfinite(firsts), firsts, self.queries) if len(firsts) else self.queries

    @property
    def share(self) -> Column:
        """Edited words as a share of the original's words."""
        shares: Column = self.changed / np.maximum(1, self.words)
        return shares


_REAL = ("p_before", "p_after", "similarity", "queries")
_NAMES = ("keys", "outcome", "label", "before", "after", *_REAL, "words", "changed")


def _row(result: Result) -> tuple[float, ...]:
    told = result.outcome != "error"
    return (
        result.key,
        OUTCOMES.index(result.outcome),
        result.label,
        decided(result.probs) if told else _NONE,
        decided(result.perturbed_probs) if told else _NONE,
        _p_true(result.probs, result.label),
        _p_true(result.perturbed_probs, result.label),
        math.nan if result.similarity is None else result.similarity,
        result.queries if result.queries_known else math.nan,
        result.words,
        len(result.edits),
    )


@dataclass(frozen=True, slots=True)
class Point:
    """Accuracy when only attacks within the limit `at` count."""

    at: float
    accuracy: Rate


def accuracy_at_most(ledger: ResultColumns, cost: Column | Counts, limits: Iterable[float]) -> list[Point]:
    """Accuracy if the attacker may spend at most each limit: words, share of words, queries."""
    return [_point(ledger, limit, ledger.fallen & (cost <= limit)) for limit in limits]


def accuracy_at_least(ledger: ResultColumns, quality: Column, floors: Iterable[float]) -> list[Point]:
    """Accuracy if only adversarial texts of at least this quality count; unmeasured ones do not."""
    with np.errstate(invalid="ignore"):
        return [_point(ledger, floor, ledger.fallen & (quality >= floor)) for floor in floors]


def _point(ledger: ResultColumns, at: float, counted: Flags) -> Point:
    right = int(ledger.right_before.sum() - counted.sum())
    return Point(at, Rate.of(right, int(ledger.judged.sum())))


def confusion(ledger: ResultColumns, classes: int, *, attacked: bool) -> Counts:
    """Rows are true classes, columns decided ones; examples that ended in an error are left out."""
    decisions = ledger.after if attacked else ledger.before
    known = ledger.judged & (ledger.label >= 0)
    return counted(ledger.label[known], decisions[known], classes)


def query_limits(ledger: ResultColumns, most: int = 12) -> list[float]:
    """Round budgets (1, 2, 5, 10, …) up to what the run spent at most."""
    top = int(np.nan_to_num(ledger.queries[ledger.attacked]).max(initial=1))
    limits = [float(base * 10**power) for power in range(9) for base in (1, 2, 5)]
    inside = [limit for limit in limits if limit < top]
    return [*inside[-(most - 1) :], float(top)]


def _p_true(probs: tuple[float, ...], label: int) -> float:
    return probs[label] if 0 <= label < len(probs) else float("nan")
