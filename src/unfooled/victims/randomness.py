"""Victims that decide with the help of chance, and how to get fresh draws and raw scores of any victim.

A defence that draws random numbers (noise, random alternatives) answers a text the same way every time, so
that runs repeat. `redrawn(n)` is the same defence with other numbers: what an attacker would meet on another
day. The evaluation averages over such draws, and believes a success only if fresh ones confirm it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import Probabilities, TextValue, Victim, gives

Logits = NDArray[np.float64]

TINY = 5e-324  # the smallest number above zero; its logarithm stands in for that of a zero


class Redrawable(Victim, Protocol):
    """A victim whose random numbers can be drawn again. `redrawn(0)` answers as the victim itself does."""

    def redrawn(self, draw: int, /) -> Victim: ...


class WithLogits(Victim, Protocol):
    """A victim that also gives what its softmax reads, in the order of its labels."""

    def raw_logits(self, texts: Sequence[TextValue], /) -> Logits: ...


def is_redrawable(victim: object) -> TypeGuard[Redrawable]:
    return gives(victim, "redrawn")


def has_logits(victim: object) -> TypeGuard[WithLogits]:
    return gives(victim, "raw_logits")


def logits_of(victim: Victim, texts: Sequence[TextValue]) -> Logits:
    """Real logits where there are any, else logarithms of the probabilities: the same up to a constant."""
    if has_logits(victim):
        return np.asarray(victim.raw_logits(texts), dtype=np.float64)
    return log(victim.predict(texts))


def log(scores: Probabilities) -> Logits:
    return np.asarray(np.log(np.maximum(scores, TINY)), dtype=np.float64)
