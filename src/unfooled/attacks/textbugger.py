"""TextBugger: five kinds of bugs in important words, the best of which is kept.

Li, Ji, Du, Li, Wang: *TextBugger: Generating Adversarial Text Against Real-world Applications*, NDSS 2019,
arXiv:1812.05271.

    1. Rank the words by how much p(true class) falls when a word is deleted.
    2. For the next word make bugs: a blank inside it; an inner letter dropped; two inner neighbours swapped;
       a letter exchanged for one that looks like it; the word exchanged for one of its 5 nearest.
    3. Leave out texts whose similarity to the original is below 0.8.
    4. Keep the bug with the lowest p(true class), if it is better.
    5. Stop when the label flips.

Versions
    @textattack  as TextAttack 0.3.11 has it: one drawn bug of each of the first three kinds, one for every
                 letter that has a look-alike (a table of 38 letters, digits and signs, some of which become
                 other ASCII), angular similarity of the texts from their first word to their last, NLTK's
                 stop words matched with their case. A blank is never put just before the last letter.
    @white-box   the same in the order of the loss gradient's length, which is the article's white-box way.

Differences from the article
    - Its first step orders the *sentences* by p(true class) of each alone. Here, as in TextAttack, the words
      of the whole text are ranked at once. Its similarity is a cosine.
    - Neighbours are counter-fitted; the article's are GloVe's, which do not keep opposites apart.
    - The encoder is whatever `encode:` names, MiniLM by default; 0.8 was chosen for the Universal Sentence
      Encoder.
    - A word with a blank in it stays one word here, so that later places do not shift.
"""

from __future__ import annotations

from dataclasses import replace

from unfooled.attacks.parts.candidates import AnyOf, Neighbours
from unfooled.attacks.parts.characters import LookAlikes, Misspelling
from unfooled.attacks.parts.constraints import SentenceSimilarity
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.gradient_importance import Gradient
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.recipe import Recipe

_BUGS = AnyOf(
    (
        Misspelling("blank", "one", before_last=False),
        Misspelling("drop", "one"),
        Misspelling("swap", "one"),
        LookAlikes("textbugger"),
        Neighbours(most=5, min_cosine=-1.0),
    )
)


_BY_DELETION = GreedySwap(
    importance=Deletion(),
    candidates=_BUGS,
    constraints=(SentenceSimilarity(threshold=0.8, scale="angular", window=0, against="original"),),
    stopwords="english",
    stopwords_cased=True,
    ties="text",
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"textattack": _BY_DELETION, "white-box": replace(_BY_DELETION, importance=Gradient())},
    name="textbugger",
    summary="puts the best of five kinds of bugs into important words",
    paper="Li et al. 2019, arXiv:1812.05271",
)
