"""A2T: an attack cheap enough for training, which ranks words by one look at the gradient.

Yoo, Qi: *Towards Improving Adversarial Training of NLP Models*, Findings of EMNLP 2021, arXiv:2109.00544.

    1. Rank the words by the L1 length of the loss gradient for their embeddings, once. Drop stop words.
    2. For the next word take 20 counter-fitted neighbours with cosine >= 0.8 (`a2t`), or the 20 likeliest
       words of a masked language model (`a2t-mlm`),
    3. of the same part of speech,
    4. with which the text stays similar to the original (cosine >= 0.9).
    5. Keep the best if it is better; stop at the flip, or at 10 % changed words, but not before four.

Versions
    @textattack  as TextAttack 0.3.11 has it, whose authors wrote the attack: tags from 4 words before and 3
                 after, NLTK's stop words with their case, words of the model in its casing.

Differences
    - TextAttack takes the gradient in training mode, with dropout: its order is partly random. Ours is not.
      It also cuts the text behind the last word that may be edited before it takes the gradient.
    - It looks at as many *words* as the victim reads tokens; here words behind the victim's cut come last.
    - The encoder is whatever `encode:` names, MiniLM by default; 0.9 was chosen for stsb-distilbert-base.
"""

from __future__ import annotations

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.gradient_importance import GradientSum
from unfooled.attacks.parts.limits import MaxWords, WordDistance
from unfooled.attacks.parts.masks import FillMask, MaskAndFill
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.attempt import Search
from unfooled.core.recipe import Recipe

_LIMITS = (
    SamePartOfSpeech(after=3, first_equal=True, noun_for_verb=False),
    MaxWords(share=0.1, floor=4),
    SentenceSimilarity(
        threshold=0.9,
        scale="cosine",
        window=0,
        against="original",
        published_for="stsb-distilbert-base",
    ),
)


def _recipe(name: str, summary: str, search: Search) -> dict[str, Recipe]:
    paper = "Yoo and Qi 2021, arXiv:2109.00544"
    return untargeted_versions({"textattack": search}, name=name, summary=summary, paper=paper)


A2T = _recipe(
    "a2t",
    "swaps the words with the largest gradient for near synonyms",
    GreedySwap(
        importance=GradientSum(),
        candidates=Neighbours(most=20, min_cosine=-1.0),
        constraints=(*_LIMITS, WordDistance(0.8, "cosine", against="original")),
        stopwords="english",
        stopwords_cased=True,
        ties="text",
    ),
)
A2T_MLM = _recipe(
    "a2t-mlm",
    "swaps the words with the largest gradient for words of a masked language model",
    MaskAndFill(
        mode="R",
        importance=GradientSum(),
        fill=FillMask(most=20, casing=False),
        constraints=_LIMITS,
        stopwords="english",
        stopwords_cased=True,
        ties="text",
    ),
)
