"""Relative readability (Hsieh et al. 2019): how often a text is called the more readable one of a pair,
divided by the same of the best. 100 readers for A and 40 for B give 1 and 0.4; no difference counts for
none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unfooled.people.study.agreement import Votes
from unfooled.people.study.content import Item
from unfooled.people.study.protocols import NEITHER, Question

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Readability:
    value: float  # 1 is the best
    low: float
    high: float
    wins: int
    pairs: int  # judged ones that this source is part of


def readability(
    items: Sequence[Item], questions: Sequence[Question], votes: Mapping[str, Votes], seed: int = 0
) -> dict[int, Readability]:
    """By source; empty where nobody was asked. The interval draws items again, all sources together."""
    asked = [question.id for question in questions if question.kind == "preference"]
    pairs = [item for item in items if item.kind == "pair"]
    numbers = sorted({number for item in pairs for number in item.sources})
    column = {number: place for place, number in enumerate(numbers)}
    wins = np.zeros((len(pairs), len(numbers)))
    part = np.zeros((len(pairs), len(numbers)), dtype=bool)
    for row, item in enumerate(pairs):
        for question in asked:
            for value in votes[question].get(item.number, {}).values():
                part[row, [column[number] for number in item.sources]] = True
                if value != NEITHER:
                    wins[row, column[item.sources[value]]] += 1
    judged = part.any(axis=1)
    wins, part = wins[judged], part[judged]
    if not wins.size:
        return {}
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(wins), np.full(len(wins), 1 / len(wins)), size=RESAMPLES)
    low, high = np.percentile(_relative(drawn @ _rates(wins, part)), [2.5, 97.5], axis=0)
    value = _relative(_rates(wins, part).sum(axis=0, keepdims=True))[0]
    return {
        number: Readability(
            float(value[at]), float(low[at]), float(high[at]), int(wins[:, at].sum()), int(part[:, at].sum())
        )
        for number, at in column.items()
    }


def _rates(wins: NDArray[np.float64], part: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Wins, weighted so that a source in few pairs is not behind one in many for that alone."""
    pairs = part.sum(axis=0)
    weighted: NDArray[np.float64] = wins * (pairs.max() / np.maximum(1, pairs))
    return weighted


def _relative(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    best = totals.max(axis=1, keepdims=True)
    # Nobody preferred anything: all are as good as the best.
    shares: NDArray[np.float64] = np.where(best > 0, totals / np.where(best > 0, best, 1.0), 1.0)
    return shares
