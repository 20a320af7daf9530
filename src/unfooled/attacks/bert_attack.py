"""BERT-Attack: words that a masked language model would rather read, for the words that matter most.

Li, Ma, Guo, Xue, Qiu: *BERT-ATTACK: Adversarial Attack Against BERT Using BERT*, EMNLP 2020,
arXiv:2004.09984.

    1. Rank the words by how much p(true class) falls when a word becomes `[UNK]`. Drop stop words.
    2. The model reads the text with nothing masked and gives the K likeliest tokens for every place;
    3. whole words as they are; a word in several pieces gets words put together of their likeliest pieces.
    4. Keep the one with the lowest p(true class), if it is better.
    5. Stop when the label flips, or when 40 % of the words are changed.

Versions
    @textattack  as TextAttack 0.3.11 has it: K = 8, of the text as it is now; of a word in several pieces the
                 first 8 combinations in the order of the product (there the ranking is thrown away); cosine
                 of the texts from their first word to their last >= 0.2; words in the model's casing; NLTK's
                 stop words with their case.
    @paper       K = 48, of the original text, the gain of the new class counted where `[UNK]` flips the
                 label, TextFooler's stop words, candidates with a counter-fitted cosine of at least 0.4 (the
                 authors ask that of sentiment data only), no similarity: they measured it on what came out.

Differences from the authors' code
    - Pieces are combined by a beam: 4 tokens for each piece, 24 combinations alive, ranked by their
      log-probability in context. The authors cut to the first 24 of the product before ranking.
    - A rejected candidate does not stay in the text, as it does there.
    - The language model is whatever `fill:` names (`--set search.candidates.masked_lm=bert-base-uncased`);
      the trigram model knows whole words only and does not see the word in its place.
    - The encoder is MiniLM by default; 0.2 was chosen for the Universal Sentence Encoder.
"""

from __future__ import annotations

from unfooled.attacks.parts.constraints import SentenceSimilarity
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Masking
from unfooled.attacks.parts.limits import MaxWords, WordDistance
from unfooled.attacks.parts.masks import FillWord
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.recipe import Recipe

_AS_TEXTATTACK = GreedySwap(
    importance=Masking(token="[UNK]"),
    candidates=FillWord(most=8, combine="product", casing=False),
    constraints=(
        MaxWords(share=0.4),
        SentenceSimilarity(threshold=0.2, scale="cosine", window=0, against="original"),
    ),
    stopwords="english",
    stopwords_cased=True,
    ties="text",
)
_AS_PAPER = GreedySwap(
    importance=Masking(token="[UNK]", flip_gain=True),
    candidates=FillWord(most=48, sees="original"),
    constraints=(MaxWords(share=0.4), WordDistance(0.4, "cosine", against="original")),
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"textattack": _AS_TEXTATTACK, "paper": _AS_PAPER},
    name="bert-attack",
    summary="swaps important words for what a masked language model would rather read",
    paper="Li et al. 2020, arXiv:2004.09984",
)
