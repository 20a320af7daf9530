"""LimeAttack: decisions only; LIME says which words matter, a beam over their synonyms looks for a flip.

Zhu, Zhao, Wu: *LimeAttack: Local Explainable Method for Textual Hard-Label Adversarial Attack*, AAAI 2024,
arXiv:2308.00319.

    1. Leave drawn words out, n times for n words, and fit LIME's linear model to the decisions.
    2. Words that speak for the true class, the strongest first; 50 counter-fitted neighbours for each.
    3. A beam of 10 texts: each goes on as it is, and with every neighbour in the next place.
    4. Where one flips, the most similar flip of that step is the result.
    5. Else the next beam is a third of the most similar texts, a third of the least similar, a third drawn.

Versions
    @paper  the steps above. Their figures are for at most 100 queries and 10 % of the words changed:
    `--budget
            100` and `search.share=0.1`.

Differences from the authors' code
    - All texts of a step are asked and paid for. Theirs count a step up to its first flip, and measure
      similarity by a constant 1, so that the thirds are those of the order in which they were made.
    - Candidates have the original word's part of speech (an option of theirs); words of one or two letters
      and others than nouns, verbs, adjectives and adverbs stay.
    - Similarity is the cosine of whole texts by the encoder named (MiniLM).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import Ground, HardLabel
from unfooled.attacks.parts.importance import Importance
from unfooled.attacks.parts.lime import Lime
from unfooled.core.attempt import Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.text import Text

_BY_LIME = Lime()


@dataclass(frozen=True, kw_only=True)
class LimeBeam(HardLabel):
    """A beam over the places in their order, chosen by similarity, since decisions do not tell texts apart.

    `share` bounds the words changed, as a share of all; None does not.
    """

    importance: Importance = _BY_LIME
    width: int = 10
    share: float | None = None

    def __post_init__(self) -> None:
        if self.width < 1 or (self.share is not None and not 0.0 < self.share <= 1.0):
            raise ValueError("width is at least 1; share is over 0 and at most 1, or none")

    def find(self, ground: Ground) -> Program[None]:
        (start,) = yield from ground.ask([ground.original])
        order = yield from self.importance.rank(ground.a, start, ground.places)
        most = len(order) if self.share is None else math.ceil(self.share * len(ground.original.words))
        beam = [ground.original]
        for place in order:
            texts = list(beam)
            for text in beam:
                if len(ground.changed(text)) < most:
                    texts += [text.replace(place, word) for word in ground.words[place]]
            found = yield from ground.ask(texts)
            if any(scored.success for scored in found):
                return
            beam = thirds(found, self.width, ground.a.rng)

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        """Nothing: it stops at the first flip."""
        return
        yield


def thirds(found: Sequence[Scored], width: int, rng: np.random.Generator) -> list[Text]:
    """So many texts: a third the most similar, a third the least similar, the rest drawn from between."""
    ranked = sorted(dict.fromkeys(found_texts(found)), key=lambda pair: -pair[1])
    texts = [text for text, _ in ranked]
    if len(texts) <= width:
        return texts
    third = width // 3
    between = texts[third : len(texts) - third]
    drawn = [between[number] for number in rng.permutation(len(between))[: width - 2 * third]]
    return [*texts[:third], *drawn, *texts[len(texts) - third :]]


def found_texts(found: Sequence[Scored]) -> list[tuple[Text, float]]:
    return [(scored.text, scored.similarity or 0.0) for scored in found]


RECIPES: dict[str, Recipe] = decision_versions(
    {"paper": LimeBeam()},
    name="limeattack",
    summary="by decisions alone: swaps the words that LIME finds, kept apart by similarity",
    paper="Zhu et al. 2024, arXiv:2308.00319",
)
