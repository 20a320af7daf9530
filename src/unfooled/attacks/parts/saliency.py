"""Importance by what a word means to the victim and by what its best replacement does (PWWS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint
from unfooled.attacks.parts.importance import probe_each
from unfooled.attacks.parts.together import score_together, swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.victim import require_choice

Worth = Literal["gain", "score"]
_DECIMALS = 12  # products of probabilities: closer ones are equal


@dataclass(frozen=True)
class WeightedSaliency:
    """softmax over the text of how much the score rises without the word (which becomes `token`), times how
    much it rises with the best replacement of the word alone.

    `worth="score"` takes the scores themselves in place of their rises, as TextAttack does. A word without a
    replacement is worth nothing.
    """

    candidates: Candidates
    constraints: tuple[Constraint, ...] = ()
    worth: Worth = "gain"
    token: str = "[UNK]"

    def __post_init__(self) -> None:
        require_choice(self.worth, Worth, "worth")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        return list((yield from self.best(a, start, positions)))

    def best(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[dict[int, str | None]]:
        """By position, the most important first: the word's best replacement, if it has one."""
        without = yield from probe_each(a, start, positions, lambda i: start.text.replace(i, self.token))
        options = swapping(a, self.candidates, self.constraints, "text")
        words: list[str | None] = [None] * len(positions)
        floor = start.score if self.worth == "gain" else 0.0
        raised = [floor] * len(positions)

        def take(number: int, found: list[Scored]) -> None:
            best = max(found, key=lambda scored: scored.score, default=None)
            if best is not None:  # its text, with those of all other places, would fill the memory
                words[number], raised[number] = best.text.words[positions[number]], best.score

        yield from score_together(a, [options(start, i) for i in positions], take)
        saliency = softmax([scored.score - floor for scored in without])
        rises = [score - floor for score in raised]
        worth = np.round(saliency * np.array(rises), _DECIMALS)
        order = np.argsort(-worth, kind="stable").tolist()
        return {positions[place]: words[place] for place in order}


def softmax(values: Sequence[float]) -> NDArray[np.float64]:
    if not len(values):
        return np.zeros(0)
    raised = np.exp(np.array(values) - max(values))
    return np.asarray(raised / raised.sum())
