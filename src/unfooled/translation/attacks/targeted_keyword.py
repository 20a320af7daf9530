"""Targeted keyword: make a given word appear in a translation with a few edits of the source (GS-EC).

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019, section 6; the
goal is that of Cheng, Yi, Chen, Zhang, Hsieh: *Seq2Sick*, AAAI 2020.

    1. A keyword is given, or drawn for each sentence from the training's target words by frequency; it must
       not be in the translation already. Score: its best log-probability over the places of the output.
    2. Select the word whose deletion raises the score most.
    3. Try each word of the victim's source vocabulary in its place.
    4. If the keyword appears, take the word that moves the encoder's mean vector least (L1), and stop;
    5. else keep the word with the best score and go on with another position, up to three edits (the Δ).

Versions
    @fast   Δ = 3. Of all words, only the 100 that the gradient of the score points to most are tried in
            step 3, in the two most important positions: the one to use.
    @strict as @fast, without words that the victim translates by the keyword when they stand alone: to put
            "bench" into a sentence and find "Bank" in its translation is no mistake of the victim.
    @paper  Δ = 3, every one of the 1,000 most frequent words, one position per edit.

Settings: `goal.keyword` (or --target) is the keyword; `goal.first` and `goal.last` are the ranks to draw
from; `search.edits` is Δ; `search.size` how many words of the vocabulary; `search.shortlist` how many of
them the gradient leaves (none: all); `search.tried` how many of these are translated to the end;
`search.strict` leaves out words that mean the keyword.

Differences from the paper, which gives few details
    - Steps 2 and 3 score a changed sentence along the present output (teacher forcing): one pass instead of
      one per token. Only the `tried` best words of a position are translated, and only these can succeed.
    - A word is selected by deletion, where the paper sets its vector to zero.
    - @paper tries the 1,000 most frequent source words of the training, where the paper has them all; @fast
      has them all, but those of several pieces, and lets the gradient choose.
    - The place of a keyword of several pieces is the best of its first piece.
"""

from __future__ import annotations

from unfooled.core.recipe import Recipe, recipe_versions
from unfooled.translation.attacks.keyword_search import KeywordSearch
from unfooled.translation.attacks.output_goals import Keyword

RECIPES: dict[str, Recipe] = recipe_versions(
    {
        "fast": KeywordSearch(),
        "strict": KeywordSearch(strict=True),
        "paper": KeywordSearch(size=1000, positions=1, shortlist=None),
    },
    name="targeted-keyword",
    summary="makes a chosen word appear in a translation with up to three edits",
    paper="Hsieh et al. 2019, ACL 2019",
    goal=Keyword(),
    needs=("translations", "embeddings"),
)
