"""The searches of `textfooler@valid` and `bae-r@valid`: only texts that a reader would accept.

A filter behind a search throws most of its successes away, because the search has spent its edits on what the
filter bars; here the search itself goes only where a reader could follow.

    1. At every word but protected ones (names, numbers, negations, links, handles, hashtags) take words that
       may stand for it: by a list of interchangeable words and spellings, its counter-fitted neighbours and
       WordNet synonyms, each in the word's own form (`textfooler`); of these only the 3,000 likeliest words
       of a masked language model (`bae-r`).
    2. Keep those that mean the same with the same attitude: listed as interchangeable, or, if no nouns, by
       WordNet in the commonest sense and by two sets of word vectors; no opposites, no two of a kind, nothing
       more general or more special;
    3. that keep the fine Penn tag and agreement, and the whole text similar, however short it is.
    4. Ask the victim of each alone. Make the edits in the order of their gain until the label flips, then
       take back those without which it stays flipped.
    5. A second sentence encoder and a causal language model read the text with each edit and without it. An
       edit that moves its meaning, or makes it much less likely as prose, is barred, and step 4 begins again.

The thresholds are ours, chosen by readers' judgements of successes on movie sentences; they belong to
counter-fitted vectors, potion, MiniLM and SmolLM2. The last is slow, a tenth of a second or more per text,
and is asked of a few texts only, where a success is in reach. `--set search.checks.1.model=trigram` does
without it, less careful.
"""

from __future__ import annotations

from typing import Literal

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import Constraint, SentenceSimilarity
from unfooled.attacks.parts.english import (
    GoodGrammar,
    InForm,
    Interchangeable,
    MaxChangedShare,
    ProtectedWords,
    RelatedWords,
)
from unfooled.attacks.parts.masks import FillMask
from unfooled.attacks.parts.planned import PlannedSwap
from unfooled.attacks.parts.prose import ReadsOn
from unfooled.attacks.parts.sources import InAll, Several, WordNetSynonyms


def _similar(threshold: float, encoder: str, against: Literal["current", "original"]) -> SentenceSimilarity:
    """The whole text, however short."""
    return SentenceSimilarity(
        threshold, "cosine", encoder, window=None, against=against, published_for=encoder
    )


_VALID: tuple[Constraint, ...] = (
    MaxChangedShare(most=0.25, words=3),
    RelatedWords(),
    ProtectedWords(),
    GoodGrammar(),
    _similar(0.7, "potion", "original"),
)
_CHECKS: tuple[Constraint, ...] = (
    _similar(0.9, "minilm", "current"),
    ReadsOn(most_loss=4.5, unlisted=3.0, model="smollm2"),
)

_SYNONYMS = Several(
    sources=(Interchangeable(), InForm(sources=(Neighbours(most=50, min_cosine=0.5), WordNetSynonyms())))
)

SWAP_VALID = PlannedSwap(candidates=_SYNONYMS, constraints=_VALID, checks=_CHECKS, stopwords="none")
# A masked language model does not see the word that it replaces: its synonyms are far down in the list.
FILL_VALID = PlannedSwap(
    candidates=InAll(sources=(FillMask(most=3000), _SYNONYMS)),
    constraints=_VALID,
    checks=_CHECKS,
    stopwords="none",
)
