"""Numbers that are no probabilities of one class among several: what they look like, and what to do.

An attack needs a victim that chooses one class per text. Scores on a scale (a polarity from -1 to 1, stars)
and labels that may hold at once are something else: they are refused as a whole, because some of their rows
would pass by accident and the table would mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import Probabilities
from unfooled.core.victim_options import option
from unfooled.errors import VictimError

EDGE = 1e-6
SUM_SLACK = 1e-3
ROUNDED = 0.1  # a sum may be off by so much where probabilities were rounded before they were sent

FEW = 8  # texts, before which a range says little

_NOT_YET = "not supported yet"
_LET = "let the victim answer one probability per class, which sum to 1"
SCALE = f"victims that score on a scale are {_NOT_YET}: {_LET}, such as [1 - p, p]"
SEVERAL = (
    f"victims that may choose several labels at once are {_NOT_YET}: {_LET}, "
    "such as [1 - p, p] for one of its labels"
)


class Range(NamedTuple):
    """The lowest and highest of numbers seen, and how many texts they were for."""

    low: float = math.inf
    high: float = -math.inf
    texts: int = 0

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> Range:
        return cls(float(numbers.min()), float(numbers.max()), len(numbers)) if numbers.size else cls()

    def with_(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), self.texts + other.texts)


class NotProbabilitiesError(VictimError):
    """Says something about the victim, not about one text: other texts would fare no better."""


def require_one_probability(numbers: Sequence[float]) -> None:
    """Refuse single numbers per text that cannot be the probability of the second of two classes."""
    low, high = min(numbers), max(numbers)
    if low >= -EDGE and high <= 1.0 + EDGE:
        return
    cause = f"it answers one number per text, here from {low:.3g} to {high:.3g}"
    if low < -1.0:
        raise NotProbabilitiesError(
            f"{cause}, which is no probability",
            f"only if these are logits of the second of two classes: {option('logits', True)}; {SCALE}",
        )
    raise NotProbabilitiesError(f"{cause}: a score on a scale, not the probability of a class", SCALE)


def require_probabilities(scores: Probabilities, name: str) -> None:
    """Refuse rows of finite numbers that are not the probabilities of classes of which one holds."""
    if not len(scores):
        return
    low, high = float(scores.min()), float(scores.max())
    sums = scores.sum(axis=1)
    total = float(sums[abs(sums - 1.0).argmax()])
    between = f"{name}: scores lie between {low:.3g} and {high:.3g}, rows sum to {total:.3g}"
    if low < -EDGE and low >= -1.0 and high <= 1.0:
        raise NotProbabilitiesError(
            f"{between}: a scale from -1 to 1, not probabilities",
            f"{SCALE}; only if these are small logits of a softmax: {option('logits', True)}",
        )
    if low < -EDGE or high > 1.0 + EDGE:
        raise NotProbabilitiesError(
            f"{between}: these look like logits",
            f"if they are, and one class is chosen, pass {option('logits', True)} for a softmax; {SEVERAL}",
        )
    if abs(total - 1.0) > ROUNDED:
        raise NotProbabilitiesError(
            f"{name}: rows sum to {total:.3g}, not to 1, as scores of labels do that may hold at once",
            SEVERAL,
        )
    if abs(total - 1.0) > SUM_SLACK:
        raise VictimError(
            f"{name}: rows sum to {total:.4g}, not to 1: these are no probabilities over the labels",
            "were they rounded? answer more digits, or divide each row by its sum",
        )
