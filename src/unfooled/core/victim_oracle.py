"""The victim as the engine sees it: every answer is checked, rounded and handed out row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unfooled.core.oracle import AsyncOracle, Oracle
from unfooled.core.scores import require_probabilities
from unfooled.core.victim import CLASSIFICATION, Probabilities, TextValue, Victim, task_of
from unfooled.errors import VictimError
from unfooled.plugins import registry

DECIMALS = 6  # float32 scores change in the last digits with the batch; a search must not see them

Row = NDArray[np.float64]


@runtime_checkable
class AsyncVictim(Protocol):
    """A victim across a network."""

    @property
    def concurrency(self) -> int: ...

    async def answer(self, items: Sequence[Any], /) -> Probabilities: ...


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


class VictimOracle:
    """Answers texts with one row of class probabilities each, rounded to six decimals."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim

    @property
    def batch_size(self) -> int:
        return self.victim.batch_size

    def __call__(self, items: Sequence[Any], /) -> list[Row]:
        texts: list[TextValue] = list(items)
        answers = self.victim.predict(texts)
        return to_rows(validate(answers, len(texts), self.victim.labels, self.victim.name))


class AsyncVictimOracle(VictimOracle):
    """The same for a victim with `answer`: several calls may be under way."""

    def __init__(self, victim: Victim) -> None:
        super().__init__(victim)
        if not isinstance(victim, AsyncVictim):
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
    return AsyncVictimOracle(victim) if isinstance(victim, AsyncVictim) else VictimOracle(victim)
