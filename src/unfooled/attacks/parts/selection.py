"""Which word a one-word attack changes: parts that rank positions, as those of `importance.py` do.

Attention is also one of the orders that `--importance` knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from unfooled.attacks.parts.importance import Deletion
from unfooled.core.attempt import Attempt, Row, Scored
from unfooled.core.program import Ask, Program, ask
from unfooled.core.questions import Query, mark
from unfooled.core.recipe import LATER
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

    Attention is the mean over the heads of one `layer` (0 is the first, -1 the last), summed over the pieces
    of a word. `query` says whose: `mean` is that of all tokens, averaged, `cls` that of [CLS] alone. A model
    that pools by attention has one query, and both mean that.

    With `special`, the tokens around the text ([CLS], [SEP]) are ranked among the words. The paper replaces
    "the word" with the highest or lowest score, and such a token is no word that could be replaced: where one
    has the rank, no word is picked and the choice is spent. A one-word attack then changes nothing and fails.
    An attack that goes through all words, as with `--importance`, passes over it. Of equals a word is first.
    """

    layer: int = 0
    pick: Pick = "highest"
    query: Query = field(default="mean", metadata=LATER)
    special: bool = field(default=False, metadata=LATER)
    needs: ClassVar[tuple[str, ...]] = ("attention",)

    def __post_init__(self) -> None:
        require_choice(self.pick, Pick, "pick")
        require_choice(self.query, Query, "query")

    @property
    def asks(self) -> tuple[str, ...]:
        return (self._oracle, "readable")

    @property
    def _oracle(self) -> str:
        ending = f":{self.query}:special" if self.special else ":cls" if self.query == "cls" else ""
        return f"attention:{self.layer}{ending}"

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        choices = yield from self.choices(a, start, positions)
        return [i for i in choices if i is not None]

    def choices(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int | None]]:
        """The ranks, the first one first: the position of a word, or None for a special token."""
        text = mark(start.text)
        (received,), (readable,) = yield [Ask(self._oracle, [text]), Ask("readable", [text])]
        sign, words = -1.0 if self.pick == "highest" else 1.0, len(text.spans)
        special = range(words, len(received)) if self.special else range(0)
        seen = {*readable, *special}
        order = sorted(
            [*positions, *special], key=lambda i: (i not in seen, sign * round(float(received[i]), 6))
        )
        return [i if i < words else None for i in order]
