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

Natural typos come from a file of yours, one word and its typos per line (the lists of Belinkov and Bisk, made
from learners' corrections, are such files): `--candidates table:en.natural.txt`. Words that it does not list
stay as they are.

Differences from the paper
    - There every word of a text is misspelled at random and the victim translates; here a classifier's words
      are misspelled one after the other, the most important first, until it errs. `typo` is the paper's noise
      for translation models.
    - Words of fewer than four letters are left alone, for a reader's sake.
"""

from __future__ import annotations

from unfooled.attacks.parts.candidates import AnyOf
from unfooled.attacks.parts.characters import Misspelling, Pick
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Deletion, Importance, RandomOrder
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.recipe import Recipe

_LEAST = 4  # letters


def _search(importance: Importance, pick: Pick) -> GreedySwap:
    made = AnyOf(
        (
            Misspelling("swap", pick, least=_LEAST),
            Misspelling("keyboard", pick, inner=False, least=_LEAST),
        )
    )
    return GreedySwap(importance=importance, candidates=made, constraints=(), stopwords="english")


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"keyboard": _search(Deletion(), "all"), "random": _search(RandomOrder(), "one")},
    name="typos",
    summary="misspells important words as people do",
    paper="after Belinkov and Bisk 2018, arXiv:1711.02173",
)
