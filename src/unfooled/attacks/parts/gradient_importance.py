"""Importance read from inside the victim: how hard its loss pulls at a word.

One look at the text ranks all its words, and no query is spent; the victim must show its inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import GradientItem, Of, mark
from unfooled.core.recipe import asking
from unfooled.core.victim import require_choice

DECIMALS = 3  # of a z-score: words closer than that are equals, whatever the last digits of a gradient say


@dataclass(frozen=True)
class Gradient:
    """Length of the gradient for the word's embedding, averaged over its pieces, as a z-score in its text.

    `of` says what is differentiated: the `loss` of the true class, its `logit`, or `squared-logits`. Words
    whose z-score is below `least` are left out; None keeps all. The z-score does not change the order: it
    makes `least` mean the same in every text.
    """

    of: Of = "loss"
    least: float | None = None
    asks = asking("gradients:{self.of}")
    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def __post_init__(self) -> None:
        require_choice(self.of, Of, "of")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        (found,) = yield from ask(f"gradients:{self.of}", [GradientItem(mark(start.text), a.label)])
        worth = z_scores(found.norms, found.pieces > 0)
        kept = [i for i in positions if self.least is None or worth[i] >= self.least]
        return sorted(kept, key=lambda i: -float(worth[i]))


@dataclass(frozen=True)
class GradientSum:
    """Sum of the absolute values of the loss gradient for the word's embedding, averaged over its pieces."""

    asks: ClassVar[tuple[str, ...]] = ("gradients:loss",)

    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        (found,) = yield from ask("gradients:loss", [GradientItem(mark(start.text), a.label)])
        worth = z_scores(np.abs(found.vectors.astype(np.float64)).sum(axis=1), found.pieces > 0)
        return sorted(positions, key=lambda i: -float(worth[i]))


def z_scores(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How many standard deviations each value lies above the mean of those seen, rounded.

    Equal values all get 0. What the victim does not see (a word behind its cut) comes last: minus infinity.
    """
    scores = np.full(len(values), -np.inf)
    known = values[seen].astype(np.float64)
    if known.size:
        spread = float(known.std())
        scores[seen] = np.round((known - known.mean()) / spread, DECIMALS) if spread > 0.0 else 0.0
    return scores
