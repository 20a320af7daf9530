"""BAE: words that a masked language model puts in the place of important words, or beside them.

Garg, Ramakrishnan: *BAE: BERT-based Adversarial Examples for Text Classification*, EMNLP 2020,
arXiv:2004.01970.

    1. Rank the words by how much p(true class) falls when a word is deleted. Drop stop words.
    2. Mask the next word in the text as it is now (replace), or put a mask left and right of it (insert).
    3. Take the 50 likeliest whole words for each mask, never the word itself,
    4. that keep the sentence similar and, where they replace, the part of speech.
    5. If some flip the label, the most similar of them wins; else keep the one with the lowest p(true class).

Attacks, one per mode; `--set search.mode=R/I` changes the mode of any of them
    bae-r        R    replace the word
    bae-i        I    insert a word to its left or right
    bae-r-or-i   R/I  the best of both: one edit per word, from the union of their candidates
    bae-r-and-i  R+I  replace the word, then insert one beside it: up to two edits per word; `bae` means this

Versions
    @paper       the authors' setting: similarity 1 - arccos(cos) >= 0.8 in a window of 15 words around the
                 edit, against the text before this edit; 0.1 for texts of fewer than 15 words. TextFooler's
                 stop words, and its rule that a noun and a verb may replace each other.
    @cosine      the article read by the letter: cosine >= 0.8 between the whole new text and the original,
                 the same part of speech. TextFooler's stop words here too, of which the article says nothing.
    @textattack  bae-r only, as TextAttack 0.3.11 has it: cosine >= 0.9363 in the window, against the original
                 text, texts under 15 words unmeasured, NLTK's stop words matched with their case, tags from
                 4 words before and 3 after, words in the model's casing. Checked in `make bench`.
    @valid       bae-r only, ours: among the 3,000 likeliest words those of the same meaning, fine tag and
                 agreement, with the search and constraints of textfooler@valid (`attacks/valid.py`).

Differences from the authors' code, which is not public: their setting is known from the article and from
what they wrote to the authors of TextAttack's recipe
    - The masked language model is whatever `fill:` names (`--set search.fill.masked_lm=bert-base-uncased`),
      the encoder whatever `encode:` names. The thresholds are the published ones, chosen for the Universal
      Sentence Encoder.
    - An edit is kept only if it lowers p(true class). The article's Algorithm 1 does not say what happens
      when every candidate raises it.
    - Pieces of words are dropped as the vocabulary marks them; the authors looked words up in GloVe's.
    - The window of an insertion is compared with the same stretch before it. The article does not say how.
    - An insertion follows or precedes its word at once, ahead of a comma, and never doubles a word.
    - Casing follows the replaced word, and spacing and punctuation survive.
    - Predictions for the next few words are asked ahead in one batch, and used only if the text is still the
      same when their turn comes: fewer calls, the same result.
    - TextAttack also takes pieces of words, without their marks, for words.
"""

from __future__ import annotations

from dataclasses import replace

from unfooled.attacks.parts.constraints import SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.masks import FillMask, MaskAndFill, Mode
from unfooled.attacks.parts.planned import PlannedSwap
from unfooled.attacks.valid import FILL_VALID
from unfooled.core.recipe import Recipe

_PAPER = MaskAndFill(
    mode="R",
    importance=Deletion(),
    fill=FillMask(),
    constraints=(
        SamePartOfSpeech(),
        SentenceSimilarity(threshold=0.8, scale="arccos", short_threshold=0.1),
    ),
)
_COSINE = replace(
    _PAPER,
    constraints=(
        SamePartOfSpeech(noun_for_verb=False),
        SentenceSimilarity(threshold=0.8, scale="cosine", window=None, against="original"),
    ),
)
_TEXTATTACK = MaskAndFill(
    mode="R",
    importance=Deletion(),
    fill=FillMask(casing=False),
    constraints=(
        SamePartOfSpeech(after=3, first_equal=True),
        SentenceSimilarity(threshold=0.936338, scale="cosine", against="original"),
    ),
    stopwords="english",
    stopwords_cased=True,
    ties="text",
)


def _attack(name: str, mode: Mode, summary: str, **searches: MaskAndFill | PlannedSwap) -> dict[str, Recipe]:
    return untargeted_versions(
        {
            version: replace(search, mode=mode) if isinstance(search, MaskAndFill) else search
            for version, search in searches.items()
        },
        name=name,
        summary=f"{summary} by a masked language model",
        paper="Garg and Ramakrishnan 2020, arXiv:2004.01970",
    )


R = _attack(
    "bae-r", "R", "replaces words", paper=_PAPER, cosine=_COSINE, textattack=_TEXTATTACK, valid=FILL_VALID
)
I_ = _attack("bae-i", "I", "inserts words beside important ones", paper=_PAPER, cosine=_COSINE)
R_OR_I = _attack("bae-r-or-i", "R/I", "replaces words or inserts some", paper=_PAPER, cosine=_COSINE)
R_AND_I = _attack("bae-r-and-i", "R+I", "replaces words and inserts some", paper=_PAPER, cosine=_COSINE)
BAE = R_AND_I | {"textattack": R["textattack"]}  # what `bae` alone means
RECIPES = {recipe.full_name: recipe for attack in (R, I_, R_OR_I, R_AND_I) for recipe in attack.values()}
