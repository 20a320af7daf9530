"""Seq2Sick, without a look inside: synonyms that leave no word of a translation in its place.

Cheng, Yi, Chen, Zhang, Hsieh: *Seq2Sick: Evaluating the Robustness of Sequence-to-Sequence Models with
Adversarial Examples*, AAAI 2020, arXiv:1803.01128.

    1. Rank the words by what `[UNK]` in their place does to the goal's score. Drop stop words.
    2. For the next word take its 50 nearest counter-fitted neighbours,
    3. as long as the text stays within 30 character edits of the original.
    4. Keep the one with which most places of the output hold another word, if it is better.
    5. Stop when no place holds the word that the reference has there.

Versions
    @textattack  as TextAttack 0.3.11 has it: the steps above, NLTK's stop words matched with their case. An
                 output shorter than the reference can never reach the goal.

Differences
    - The article descends the gradient of a hinge loss on the logits with a group lasso on the added vectors,
      and projects to the nearest word; `targeted-keyword` and `non-overlapping` have its goals.
    - Character edits are summed over the words; TextAttack measures the whole text.
    - Without a reference the output before the attack takes its place.
"""

from __future__ import annotations

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import MaxCharacterEdits
from unfooled.attacks.parts.importance import Masking
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.recipe import Recipe
from unfooled.translation.attacks.output_goals import PlacesChanged

RECIPES: dict[str, Recipe] = {
    "textattack": Recipe(
        name="seq2sick",
        version="textattack",
        summary="leaves no word of a translation in its place, by synonyms",
        paper="Cheng et al. 2020, arXiv:1803.01128",
        goal=PlacesChanged(),
        search=GreedySwap(
            importance=Masking(token="[UNK]"),
            candidates=Neighbours(most=50, min_cosine=-1.0),
            constraints=(MaxCharacterEdits(30),),
            stopwords="english",
            stopwords_cased=True,
            ties="text",
        ),
        needs=("translations",),
    )
}
