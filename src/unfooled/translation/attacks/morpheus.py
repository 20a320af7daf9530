"""Morpheus: other forms of the same words (run, runs, ran) that spoil a translation or a decision.

Tan, Joty, Kan, Socher: *It's Morphin' Time! Combating Linguistic Discrimination with Inflectional
Perturbations*, ACL 2020, acl-main.263.

    1. For a noun, verb or adjective take all forms of its lemma.
    2. Go through the text from left to right; at each word keep the form with the lowest BLEU, if lower.
    3. Again from the original text, from right to left.
    4. The worse translation of the two wins.
    5. Stop at a BLEU of 0.

Versions
    @paper       the steps above, BLEU against the reference.
    @textattack  as TextAttack 0.3.11 has it: at each step the best form anywhere, even if it is no better;
                 reference and output are exchanged in BLEU, and without smoothing 0 means that they have no
                 four words in a row in common. NLTK's stop words, matched with their case.
    @classes     the article's way for classifiers (it attacks question answering too): both passes, the form
                 with the lowest p(true class), until the label flips.

Differences
    - Forms come from the resource `inflections`, not from lemminflect: of a lemma of the word's part of
      speech, as an averaged-perceptron tagger reads it. TextAttack takes
      any lemma where there is none of that part.
    - Casing follows the replaced word.
    - Without a reference the output before the attack takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unfooled.attacks.parts.beam import BeamSwap
from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.inflections import OtherForms
from unfooled.attacks.parts.search import exploring, greedy, keep_most_similar, replacing
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, recipe_versions
from unfooled.translation.attacks.output_goals import NoBleu

_FORMS = OtherForms()


@dataclass(frozen=True, kw_only=True)
class TwoPasses:
    """Through the words from left to right, and once more from right to left; the better text wins."""

    candidates: Candidates = _FORMS
    constraints: tuple[Constraint, ...] = ()

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        places = range(len(start.text.words))
        forwards = yield from self._pass(a, start, places)
        if forwards.success:
            return forwards
        backwards = yield from self._pass(a, start, reversed(places))
        return max(forwards, backwards, key=lambda scored: (scored.success, scored.score))

    def _pass(self, a: Attempt, start: Scored, places: Iterable[int]) -> Program[Scored]:
        explore = exploring(a, replacing(a, self.candidates), self.constraints)
        return (yield from greedy(start, places, explore, keep=keep_most_similar))


_ABOUT = {
    "name": "morpheus",
    "summary": "puts words into other forms (run, runs, ran)",
    "paper": "Tan et al. 2020, ACL 2020.acl-main.263",
}
_OUTPUT: dict[str, Any] = {**_ABOUT, "needs": ("translations",)}
_ANYWHERE = BeamSwap(candidates=_FORMS, constraints=())

RECIPES: dict[str, Recipe] = {
    **recipe_versions({"paper": TwoPasses()}, goal=NoBleu(), **_OUTPUT),
    **recipe_versions({"textattack": _ANYWHERE}, goal=NoBleu(exchanged=True), **_OUTPUT),
    **untargeted_versions({"classes": TwoPasses()}, **_ABOUT),
}
