"""Which word a one-word attack changes: parts that rank positions, as those of `importance.py` do.

Attention is also one of the orders that `--importance` knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from unfooled.attacks.parts.importance import Deletion
from unfooled.core.attempt import Attempt, Row, Scored
from unfooled.core.program import Ask, Program, ask
from unfooled.core.questions import mark
from unfooled.core.recipe import asking
from unfooled.core.victim import require_choice

By = Literal["auto", "zero", "deletion"]
Pick = Literal["highest", "lowest"]


@dataclass(frozen=True)
class InOrder:
    """As they stand in the text."""

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        return list(positions)
        yield  # no question is needed, but a program is a generator


@dataclass(frozen=True)
class GreedySelect:
    """The word whose loss helps the goal most: its vector becomes zero, or it is deleted.

    A word that the victim does not read has no vector to lose: it comes last, and costs no query.
    `by` is `zero` for a victim that takes word vectors, `deletion` for any other; `auto` becomes one of the
    two when the victim is known, and the run's header says which. Undecided it means deletion.
    """

    by: By = "auto"

    def __post_init__(self) -> None:
        require_choice(self.by, By, "by")

    @property
    def asks(self) -> tuple[str, ...]:
        return ("zeroed", "readable") if self.by == "zero" else ()

    @property
    def needs(self) -> tuple[str, ...]:
        return ("probabilities", "embeddings") if self.by == "zero" else ("probabilities",)

    def fit(self, victim: Any) -> GreedySelect:
        if self.by != "auto":
            return self
        takes_vectors = hasattr(victim, "zeroed") and "embeddings" in victim.capabilities
        return dataclasses.replace(self, by="zero" if takes_vectors else "deletion")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        if self.by != "zero":
            return (yield from Deletion().rank(a, start, positions))
        text = mark(start.text)
        (readable,) = yield from ask("readable", [text])
        read = set(readable)
        seen = [i for i in positions if i in read]
        rows: list[Row] = yield from a.look("zeroed", {(text, i): None for i in seen})
        scores, _ = a.goal.judge(np.array(rows), a.label) if rows else ([], [])
        worth = dict(zip(seen, scores, strict=True))
        return sorted(positions, key=lambda i: (i not in worth, -round(worth.get(i, 0.0), 6)))


@dataclass(frozen=True)
class AttentionSelect:
    """The word that receives most attention, or least; words that the victim does not read come last.

    Attention is the mean over the heads and queries of one `layer` (0 is the first, -1 the last), summed over
    the pieces of a word.
    """

    layer: int = 0
    pick: Pick = "highest"
    asks = asking("attention:{self.layer}", "readable")
    needs: ClassVar[tuple[str, ...]] = ("attention",)

    def __post_init__(self) -> None:
        require_choice(self.pick, Pick, "pick")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        text = mark(start.text)
        (received,), (readable,) = yield [Ask(f"attention:{self.layer}", [text]), Ask("readable", [text])]
        seen, sign = set(readable), -1.0 if self.pick == "highest" else 1.0
        return sorted(positions, key=lambda i: (i not in seen, sign * round(float(received[i]), 6)))
