"""Kuleshov: at each step the best synonym anywhere, while the mean word vector and a language model allow it.

Kuleshov, Thakoor, Lau, Ermon: *Adversarial Examples for Natural Language Classification Problems*, 2018.

    1. For every word that is unchanged take its 15 nearest counter-fitted neighbours,
    2. which move the mean of the text's word vectors by at most 0.2,
    3. and lose at most 2 nats to a language model at the place of the word.
    4. Of all words and neighbours make the one replacement with the lowest p(true class).
    5. Again, until the goal is reached or half of the words are changed.

Versions
    @textattack  as TextAttack 0.3.11 has it: ends when p(true class) is below 0.7, although the label may
                 stand then: such an end is a failure here, and its note says so. A step is made even if it
                 raises p(true class). 0.2 is a *squared* distance, words with capitals have no vector, and
                 the language model reads the original words before the place. NLTK's stop words, cased.
    @paper       ends when another class has a probability of at least 0.7, and returns the best text of all
                 steps; the language model reads the present words.

Differences
    - GPT-2 gets a word there without the blank before it, which is another token, and only the first piece of
      it. Here a trigram model reads the two words before, or any causal model all of them:
      `--set search.constraints.2.model=gpt2 --set search.constraints.2.before=none`.
    - Vectors are our counter-fitted ones, of length one.
"""

from __future__ import annotations

from typing import Any

from unfooled.attacks.parts.beam import BeamSwap
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Confident, untargeted_versions
from unfooled.attacks.parts.limits import MaxWords, MeanVector, WordLoss
from unfooled.core.recipe import Recipe, recipe_versions

_NEAR = Neighbours(most=15, min_cosine=-1.0)

_ABOUT: dict[str, Any] = {
    "name": "kuleshov",
    "summary": "swaps the best word anywhere, held by the mean word vector and a language model",
    "paper": "Kuleshov et al. 2018",
}
_AS_TEXTATTACK = BeamSwap(
    candidates=_NEAR,
    constraints=(MaxWords(share=0.5), MeanVector(0.2, cased=True), WordLoss(2.0)),
    floor=0.7,
)
_AS_PAPER = BeamSwap(
    candidates=_NEAR,
    constraints=(MaxWords(share=0.5), MeanVector(0.2), WordLoss(2.0, against="current")),
    result="best",
)

RECIPES: dict[str, Recipe] = {
    **untargeted_versions({"textattack": _AS_TEXTATTACK}, **_ABOUT),
    **recipe_versions({"paper": _AS_PAPER}, goal=Confident(0.7), **_ABOUT),
}
