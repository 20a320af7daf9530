"""DeepWordBug: misspell the words that matter most.

Gao, Lanchantin, Soffa, Qi: *Black-box Generation of Adversarial Text Sequences to Evade Deep Learning
Classifiers*, IEEE S&P Workshops 2018, arXiv:1801.04354.

    1. Score each word by what it adds to the text before it and after it (the combined score).
    2. Go through the words, the highest score first.
    3. Misspell the word: swap two letters, or replace, drop or add one.
    4. Stop when the edits reach 30 characters.
    5. The text made so is the adversarial one.

Versions
    @textattack  as TextAttack 0.3.11 has it: words ranked by putting `[UNK]` in their place, one misspelling
                 of each of the four kinds per word, the best kept if it improves, until the label flips.
    @paper       the steps above: the combined score, one kind of misspelling (substitution) for every word,
                 and one look at the victim when the edits are done.

Differences from the authors' code
    - The empty text, which the combined score needs at both ends, counts as undecided (1 / classes).
    - A stop word may be edited in @paper, as in the article; @textattack leaves NLTK's stop words alone.
    - Random letters come from the example's own generator, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.candidates import CharacterEdits, edit_characters
from unfooled.attacks.parts.constraints import MaxCharacterEdits, NextText
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Importance, Masking, TemporalScore
from unfooled.attacks.parts.search import GreedySwap, exploring, greedy, keep_newest
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class MisspellInOrder:
    """Misspell words in order of importance until the character budget is spent, then ask once."""

    tries: ClassVar[int] = 1
    level: ClassVar[str] = "characters"
    importance: Importance
    kind: str = "substitute"
    most_edits: int = 30

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        order = yield from self.importance.rank(a, start, range(len(start.text.words)))

        def misspell(now: Scored, index: int) -> Program[list[NextText]]:
            word = edit_characters(now.text.words[index], self.kind, a.rng)
            return [NextText(now.text.replace(index, word), index)]
            yield  # no question is needed, but a program is a generator

        def spent(now: Scored, found: Sequence[Scored]) -> bool:
            return not found

        explore = exploring(a, misspell, [MaxCharacterEdits(self.most_edits)], unseen=True)
        last = yield from greedy(start, order, explore, keep=keep_newest, stop=spent)
        (end,) = yield from a.score([last.text])
        return end


_AS_TEXTATTACK = GreedySwap(
    importance=Masking(token="[UNK]"),
    candidates=CharacterEdits(),
    constraints=(MaxCharacterEdits(30),),
    stopwords="english",
    stopwords_cased=True,
    ties="text",
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"textattack": _AS_TEXTATTACK, "paper": MisspellInOrder(importance=TemporalScore())},
    name="deepwordbug",
    summary="misspells the most important words",
    paper="Gao et al. 2018, arXiv:1801.04354",
)
