"""Typos: misspell important words as people do.

Belinkov, Bisk: *Synthetic and Natural Noise Both Break Neural Machine Translation*, ICLR 2018,
arXiv:1711.02173, whose noise this puts at the worst places.

    1. Rank the words by how much p(true class) falls when a word is taken out.
    2. Of the next word make all typos: two neighbouring letters swapped, a letter for one beside it on the
       keyboard; or take those of a list of natural ones.
    3. Keep the one with the lowest p(true class) if it improves; stop when the label flips.

Versions
    @keyboard  made typos: inner letters swapped, any letter replaced by its neighbour on a QWERTY keyboard.
    @random    one typo of each kind, drawn, for words in random order: the noise of a careless writer.
    @blind     nothing is ranked: one letter of every word is replaced by its neighbour on the keyboard, 30 at
               most, in words drawn at random, and the victim is asked once; five such draws, until the label
               flips. Decisions are enough.

Natural typos come from a file of yours, one word and its typos per line (the lists of Belinkov and Bisk, made
from learners' corrections, are such files): `--candidates table:en.natural.txt`. Words that it does not list
stay as they are.

Differences from the paper
    - There every word of a text is misspelled at random and the victim translates; here a classifier's words
      are misspelled one after the other, the most important first, until it errs. `typo` is the paper's noise
      for translation models.
    - Words of fewer than four letters are left alone, for a reader's sake; in @blind of fewer than two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.candidates import AnyOf
from unfooled.attacks.parts.characters import Misspelling, Pick
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Deletion, Importance, RandomOrder
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.attempt import Attempt, Scored, most_similar
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe

_LEAST = 4  # letters


@dataclass(frozen=True, kw_only=True)
class MisspellBlindly:
    """Misspell words drawn at random, as many as `most_edits`, and ask once; `tries` such draws."""

    level: ClassVar[str] = "characters"
    misspelling: Misspelling
    tries: int = 5
    most_edits: int = 30

    def __post_init__(self) -> None:
        if self.tries < 1 or self.most_edits < 1:
            raise ValueError("tries and most_edits are at least 1")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        best = start
        for _ in range(self.tries):
            text, edits = start.text, 0
            for place in a.rng.permutation(len(text.words)).tolist():
                words = self.misspelling.of(text.words[place], a.rng)
                if words and edits < self.most_edits:
                    text, edits = text.replace(place, words[0]), edits + 1
            if not edits:
                a.note = "no word is long enough to be misspelt"
                return start
            (end,) = yield from a.score([text])
            best = most_similar([best, end])
            if end.success:
                return end
        return best


def _search(importance: Importance, pick: Pick) -> GreedySwap:
    made = AnyOf(
        (
            Misspelling("swap", pick, least=_LEAST),
            Misspelling("keyboard", pick, inner=False, least=_LEAST),
        )
    )
    return GreedySwap(importance=importance, candidates=made, constraints=(), stopwords="english")


_BLIND = MisspellBlindly(misspelling=Misspelling("keyboard", "one", inner=False))
_SUMMARY = "misspells important words as people do"
_PAPER = "after Belinkov and Bisk 2018, arXiv:1711.02173"
RECIPES: Mapping[str, Recipe] = {
    **untargeted_versions(
        {"keyboard": _search(Deletion(), "all"), "random": _search(RandomOrder(), "one")},
        name="typos",
        summary=_SUMMARY,
        paper=_PAPER,
    ),
    **untargeted_versions({"blind": _BLIND}, name="typos", summary=_SUMMARY, paper=_PAPER, needs=()),
}
