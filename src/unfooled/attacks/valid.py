"""The searches of `textfooler@valid` and `bae-r@valid`: only texts that a reader would accept.

A filter behind a search throws most of its successes away, because the search has spent its edits on what the
filter bars; here the search itself goes only where a reader could follow.

    1. Rank the words by how much p(true class) falls when a word is deleted. Drop stop words and protected
       words: names, numbers, negations, links, handles, hashtags.
    2. For the next word take its counter-fitted neighbours and WordNet synonyms, each in the word's own form
       (`textfooler`), or the likeliest words of a masked language model (`bae-r`),
    3. keep those with the same fine Penn tag and agreement, that mean the same by WordNet in a common sense
       and by two sets of word vectors: no opposites, no two of a kind, nothing more general or more special,
    4. that keep the whole text similar, however short it is, and nearly as likely to a language model.
    5. If some flip the label, the most similar of them wins; else keep the one with the lowest p(true class).
       After a success every edit without which it still succeeds is taken back.

The thresholds are ours, chosen by reading successes on movie sentences; they belong to counter-fitted
vectors, potion and the trigram model, none of which is a large network: a search takes a fraction of a
second. `--set search.constraints.5.model=smollm2` asks a larger language model, a second or more per text.
"""

from __future__ import annotations

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import Constraint, SentenceSimilarity
from unfooled.attacks.parts.english import GoodGrammar, InForm, MaxChangedShare, ProtectedWords, RelatedWords
from unfooled.attacks.parts.fluency import Fluency
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.masks import FillMask
from unfooled.attacks.parts.sources import WordNetSynonyms
from unfooled.attacks.parts.undoing import UndoingFill, UndoingSwap

_VALID: tuple[Constraint, ...] = (
    ProtectedWords(),
    MaxChangedShare(most=0.25),
    RelatedWords(),
    GoodGrammar(),
    SentenceSimilarity(
        threshold=0.7,
        scale="cosine",
        encoder="potion",
        window=None,
        against="original",
        published_for="potion",
    ),
    Fluency(most_loss=5.0, model="trigram", measure="text", against="current"),
)

SWAP_VALID = UndoingSwap(
    importance=Deletion(),
    candidates=InForm(sources=(Neighbours(most=50, min_cosine=0.5), WordNetSynonyms(senses=2))),
    constraints=_VALID,
    stopwords="textfooler",
)
FILL_VALID = UndoingFill(
    mode="R", importance=Deletion(), fill=FillMask(most=200), constraints=_VALID, stopwords="textfooler"
)
