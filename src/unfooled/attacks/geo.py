"""GEO: the synonyms that carry the sentence's vector to the nearest decision boundary.

Meng, Wattenhofer: *A Geometry-Inspired Attack for Generating Natural Language Adversarial Examples*, COLING
2020, arXiv:2010.01345.

    1. The victim makes a vector of the text, and its last layer decides by that vector. DeepFool finds the
       nearest point where it would decide otherwise, and the direction there: the normal of the boundary.
    2. Take the word with the highest saliency that is no stop word: p(true class) falls most when it becomes
       `[UNK]`.
    3. Of its synonyms put in the one with which the vector moves farthest along the normal, if any does.
    4. Repeat with the next word, from the new vector.
    5. Stop at a flipped label, or after five words.

Versions
    @paper       as above, with WordNet's synonyms.

Needs the vectors that the victim's last layer reads, so a torch model. To see the vector of a text is to let
the victim read it: each synonym that is tried costs a query.

Differences
    - The last layer is linear in all victims here: the first of DeepFool's steps is exact, and the only one.
    - Words are ranked once, on the original text.
    - OpenAttack 2.1.1 has it switched off: it calls a function that torch no longer has, and reads its own
      numbers of words to BERT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.class_words import target_of
from unfooled.attacks.parts.constraints import Constraint
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Importance, Masking
from unfooled.attacks.parts.search import attackable, greedy, keep_newest, require_stopwords
from unfooled.attacks.parts.sources import WordNetSynonyms
from unfooled.attacks.parts.together import swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import Numbers
from unfooled.core.recipe import Recipe, asking, require_counts

_DECIMALS = 6  # of a way along the normal: shorter ones are none
_LEAST = 1e-6  # a probability; the victim's are rounded to that


@dataclass(frozen=True, kw_only=True)
class ToBoundary:
    """Swap up to `most` words, the most important first, for what moves the text's vector to the boundary."""

    asks = asking("head", "sentence:head")
    needs: ClassVar[tuple[str, ...]] = ("embeddings",)
    importance: Importance
    candidates: Candidates
    constraints: tuple[Constraint, ...] = ()
    most: int = 5
    stopwords: str = "english"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_counts(self, "most")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        (weights,) = yield from ask("head", [""])
        order = yield from self.importance.rank(a, start, attackable(start.text, self.stopwords))
        swaps = swapping(a, self.candidates, self.constraints)

        def explore(now: Scored, index: int) -> Program[list[Scored]]:
            options = yield from swaps(now, index)
            if not options:
                return []
            texts = [now.text, *(option.text for option in options)]
            own, *others = yield from a.look("sentence:head", {text.value: text for text in texts})
            normal = to_boundary(weights, now.probs, a.label, target_of(a.goal))
            ways = np.round((np.array(others, dtype=np.float64) - own) @ normal, _DECIMALS)
            best = int(ways.argmax())
            return (yield from a.score([options[best].text] if ways[best] > 0.0 else []))

        def enough(now: Scored, found: Sequence[Scored]) -> bool:
            return now.text.changes >= self.most

        return (yield from greedy(start, order, explore, keep=keep_newest, stop=enough))


def to_boundary(weights: Numbers, probs: np.ndarray, label: int, target: int | None = None) -> np.ndarray:
    """The direction, of length 1, from a text to the nearest boundary of its class, or to a target's."""
    others = [i for i in range(len(probs)) if i != label] if target is None else [target]
    logits = np.log(np.maximum(probs, _LEAST))
    rows = weights.astype(np.float64)
    normals = {i: rows[i] - rows[label] for i in others}
    lengths = {i: float(np.linalg.norm(normals[i])) or 1.0 for i in others}
    nearest = min(others, key=lambda i: round(float(logits[label] - logits[i]) / lengths[i], _DECIMALS))
    return np.asarray(normals[nearest] / lengths[nearest])


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"paper": ToBoundary(candidates=WordNetSynonyms(), importance=Masking())},
    name="geo",
    summary="swaps salient words for the synonyms that carry the sentence's vector to the boundary",
    paper="Meng and Wattenhofer 2020, arXiv:2010.01345",
)
