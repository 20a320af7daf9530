"""The victim as the engine sees it: every answer is checked, rounded and handed out row by row.

An attack needs a victim that chooses one class per text. Scores on a scale (a polarity from -1 to 1, stars)
and labels that may hold at once are something else: they are refused as a whole, because some of their rows
would pass by accident and the table would mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.victim import CLASSIFICATION, Probabilities, TextValue, Victim, gives, option, task_of
from unfooled.errors import VictimError
from unfooled.plugins import registry

DECIMALS = 6  # float32 scores change in the last digits with the batch; a search must not see them
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

Row = NDArray[np.float64]


# -- what is no probability of one class among several ------------------------------------------------


class ScoreRange(NamedTuple):
    """The lowest and highest of numbers seen, and how many texts they were for."""

    low: float = math.inf
    high: float = -math.inf
    texts: int = 0

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> ScoreRange:
        return cls(float(numbers.min()), float(numbers.max()), len(numbers)) if numbers.size else cls()

    def with_(self, other: ScoreRange) -> ScoreRange:
        return ScoreRange(min(self.low, other.low), max(self.high, other.high), self.texts + other.texts)


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


# -- the oracle ------------------------------------------------------------------------------------


class AsyncVictim(Victim, Protocol):
    """A victim across a network."""

    @property
    def concurrency(self) -> int: ...

    async def answer(self, items: Sequence[Any], /) -> Probabilities: ...


def is_async(victim: object) -> TypeGuard[AsyncVictim]:
    return gives(victim, "answer") and hasattr(victim, "concurrency")


def validate(answers: Any, count: int, labels: Sequence[str], name: str) -> Probabilities:
    """The answers as float64 [count, classes], or an error that says what is wrong with them."""
    try:
        scores = np.asarray(answers, dtype=np.float64)
    except (TypeError, ValueError):
        raise VictimError(
            f"{name} answered what is not a table of numbers ({type(answers).__name__})",
            f"let predict return an array [{count}, {len(labels)}]",
        ) from None
    if scores.shape != (count, len(labels)):
        raise VictimError(
            f"{name} answered an array of shape {list(scores.shape)} to {count} texts, "
            f"but there are {len(labels)} labels ({', '.join(labels)})",
            f"let predict return [{count}, {len(labels)}], one row per text and one column per label",
        )
    bad = int((~np.isfinite(scores)).any(axis=1).sum())
    if bad:
        what = "NaN" if np.isnan(scores).any() else "infinite numbers"
        raise VictimError(
            f"{name}: {bad} of {count} rows contain {what}",
            "mend the model, or take the text out of the data",
        )
    require_probabilities(scores, name)
    return scores


def to_rows(scores: Probabilities) -> list[Row]:
    return list(np.clip(np.round(scores, DECIMALS), 0.0, 1.0))


def decisions(scores: Probabilities) -> NDArray[np.intp]:
    """The class of each row, from probabilities as a victim gives them; -1 of a tie, which is none."""
    rounded = np.round(scores, DECIMALS)
    ties = (rounded == rounded.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return np.where(ties, -1, rounded.argmax(axis=1))


class InBatchesOfVictim:
    """An oracle that is a victim's own answers."""

    def __init__(self, victim: Any) -> None:
        self.victim = victim

    @property
    def batch_size(self) -> int:
        return int(self.victim.batch_size)


class VictimOracle(InBatchesOfVictim):
    """Answers texts with one row of class probabilities each, rounded to six decimals."""

    def __call__(self, items: Sequence[Any], /) -> list[Row]:
        texts: list[TextValue] = list(items)
        answers = self.victim.predict(texts)
        return to_rows(validate(answers, len(texts), self.victim.labels, self.victim.name))


class UnreadOracle(InBatchesOfVictim):
    """A text's value → the share of its tokens behind the end of what the victim reads."""

    cacheable = False  # asked once for each example

    def __call__(self, items: Sequence[Any], /) -> list[float]:
        return [round(float(share), 4) for share in self.victim.unread(list(items))]


class AsyncVictimOracle(VictimOracle):
    """The same for a victim with `answer`: several calls may be under way."""

    def __init__(self, victim: Victim) -> None:
        super().__init__(victim)
        if not is_async(victim):
            raise TypeError(f"{type(victim).__name__} has no async answer")
        self._remote = victim

    @property
    def concurrency(self) -> int:
        return self._remote.concurrency

    async def answer(self, items: Sequence[Any], /) -> list[Row]:
        answers = await self._remote.answer(list(items))
        return to_rows(validate(answers, len(items), self.victim.labels, self.victim.name))


def oracle_for(victim: Victim) -> Oracle | AsyncOracle:
    """The oracle that suits the victim: its task's own, async where the victim is."""
    # Looking at the capabilities of a function may call it; only victims that write have another task.
    task = task_of(victim.capabilities) if hasattr(victim, "write") else CLASSIFICATION
    if task != CLASSIFICATION:
        oracle: Oracle = registry.load("task", task).oracle(victim)
        return oracle
    return AsyncVictimOracle(victim) if is_async(victim) else VictimOracle(victim)
