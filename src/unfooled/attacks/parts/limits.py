"""Limits that word-level attacks share: how much may change, which words, and how far from the old ones.

Each is a constraint as in `constraints.py`: it sees all options for one word and returns those it allows.
Where not said otherwise an inserted word passes. A word without a vector passes too: nothing is known of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from unfooled.attacks.parts.beam import untouched
from unfooled.attacks.parts.constraints import NextText
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking, require_counts
from unfooled.core.victim import require_choice
from unfooled.data.language import ENGLISH

Against = Literal["original", "current"]
Distance = Literal["cosine", "squared"]


# -- how much, and which words ---------------------------------------------------------------------


@dataclass(frozen=True)
class MaxWords:
    """At most so many words differ from the original: a share of all, rounded up, or a number, or both.

    The share counts the words of the shorter text. `floor` words may differ whatever the share says.
    """

    share: float | None = None
    number: int | None = None
    floor: int = 0

    def __post_init__(self) -> None:
        if self.share is None and self.number is None:
            raise ValueError("give a share of the words, a number of words, or both")
        if self.share is not None and not 0.0 <= self.share <= 1.0:
            raise ValueError("share is between 0 and 1")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        return [option for option in options if option.text.changes <= self.limit(a, option)]
        yield  # no question is needed, but a program is a generator

    def limit(self, a: Attempt, option: NextText) -> float:
        most = math.inf
        if self.share is not None:
            words = min(len(a.original.words), len(option.text.words))
            most = max(math.ceil(words * self.share), self.floor)
        return most if self.number is None else min(most, self.number)


@dataclass(frozen=True)
class MinLetters:
    """Words of fewer letters stay."""

    letters: int = 4

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        words = now.text.words
        return [
            option for option in options if option.inserted or len(words[option.position]) >= self.letters
        ]
        yield  # no question is needed, but a program is a generator


@dataclass(frozen=True)
class OncePerPlace:
    """A word that was replaced or inserted stays as it is now."""

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        return [option for option in options if option.inserted or untouched(now.text, option.position)]
        yield  # no question is needed, but a program is a generator


@dataclass(frozen=True)
class OnlyTags:
    """Only words of these parts of speech are replaced, as the tagger reads them in the present text."""

    tags: tuple[str, ...] = ("ADJ", "ADV", "NOUN", "VERB")
    tagger: str = "perceptron-tagger"
    around: int = 4  # words to each side that the tagger sees

    asks = asking("tag:{self.tagger}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        places = dict.fromkeys(option.position for option in options if not option.inserted)
        items = [self._context(now, place) for place in places]
        told = yield from ask(f"tag:{self.tagger}", items)
        fits = {place for place, (tag, *_) in zip(places, told, strict=True) if tag in self.tags}
        return [option for option in options if option.inserted or option.position in fits]

    def _context(self, now: Scored, place: int) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
        first = max(0, place - self.around)
        return now.text.words[first : place + self.around + 1], place - first, ()


@dataclass(frozen=True)
class NoAntonyms:
    """A word is not replaced by one that WordNet knows as its opposite."""

    language: ClassVar[str] = ENGLISH

    asks: ClassVar[tuple[str, ...]] = ("edit:wordnet", "tag:perceptron-tagger", "inflect:inflections")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        words = tuple(option.word for option in swaps)
        (effects,) = yield from ask("edit:wordnet", [(now.text.string, swaps[0].position, words)])
        opposite = {
            option.text
            for option, effect in zip(swaps, effects, strict=True)
            if effect.related.relation == "antonym"
        }
        return [option for option in options if option.inserted or option.text not in opposite]


# -- how far, by word vectors ----------------------------------------------------------------------


@dataclass(frozen=True)
class WordDistance:
    """The new word's vector is near that of the word it replaces, or of the original one in its place.

    By `cosine`, which is at least `bound`; or by the `squared` Euclidean distance, which is at most `bound`.
    """

    bound: float
    by: Distance = "squared"
    table: str = "counter-fitted"
    against: Against = "current"
    asks = asking("vectors:{self.table}")

    def __post_init__(self) -> None:
        require_choice(self.by, Distance, "by")
        require_choice(self.against, Against, "against")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        pairs = {
            option.text: (replaced(a, now, option, self.against).lower(), option.word.lower())
            for option in options
            if not option.inserted
        }
        vectors = yield from _vectors(self.table, (word for pair in pairs.values() for word in pair))
        return [
            option
            for option in options
            if option.inserted or self._near(*(vectors[word] for word in pairs[option.text]))
        ]

    def _near(self, old: Any, new: Any) -> bool:
        if old is None or new is None:
            return True
        if self.by == "squared":
            return round(float(((old - new) ** 2).sum()), 6) <= self.bound
        lengths = max(float(np.linalg.norm(old) * np.linalg.norm(new)), 1e-12)
        return round(float(old @ new) / lengths, 6) >= self.bound


@dataclass(frozen=True)
class MeanVector:
    """The mean of the vectors of all words lies within a squared distance of that of the original text.

    `cased` looks words up as they are written, so that one with a capital has no vector.
    """

    most: float = 0.2
    table: str = "counter-fitted"
    cased: bool = False

    asks = asking("vectors:{self.table}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        if not options:
            return []
        words = {word for text in (a.original, now.text) for word in text.words}
        words |= {option.word for option in options}
        vectors = yield from _vectors(self.table, map(self._key, sorted(words)))

        def mean(text: Sequence[str]) -> Any:
            known = [vectors[key] for key in map(self._key, text) if vectors[key] is not None]
            return np.mean(known, axis=0, dtype=np.float64) if known else None

        middle = mean(a.original.words)
        moved = [mean(option.text.words) for option in options]
        return [option for option, new in zip(options, moved, strict=True) if self._near(middle, new)]

    def _key(self, word: str) -> str:
        return word if self.cased else word.lower()

    def _near(self, old: Any, new: Any) -> bool:
        return old is None or new is None or round(float(((old - new) ** 2).sum()), 6) <= self.most


# -- what a language model says of the new word ----------------------------------------------------


@dataclass(frozen=True)
class WordLoss:
    """After the words before it, the new word is less than `most_loss` nats less likely than the old one.

    A word with no letter before it passes. `against` the original means its words before
    and its word; `before` bounds how many words are looked at (a trigram model reads two).
    """

    most_loss: float
    model: str = "trigram"
    against: Against = "original"
    before: int | None = 2
    asks = asking("fluency:{self.model}")

    def __post_init__(self) -> None:
        require_choice(self.against, Against, "against")
        _require_before(self.before)

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        pairs: dict[int, tuple[str, str]] = {}
        for number, option in enumerate(options):
            head = "" if option.inserted else _head(a, now, option, self.against, self.before)
            if head:
                old = replaced(a, now, option, self.against)
                pairs[number] = head + old, head + option.word
        told = yield from _likelihoods(self.model, (text for pair in pairs.values() for text in pair))
        losses = {number: round(told[old] - told[new], 6) for number, (old, new) in pairs.items()}
        return [
            option for number, option in enumerate(options) if losses.get(number, -math.inf) < self.most_loss
        ]


@dataclass(frozen=True)
class KeepLikeliest:
    """Of the options for one word the `most` that a language model finds likeliest after the words before.

    Equals keep their order. Inserted words are among the options that compete.
    """

    most: int = 4
    model: str = "trigram"
    before: int | None = 2
    asks = asking("fluency:{self.model}")

    def __post_init__(self) -> None:
        _require_before(self.before)
        require_counts(self, "most")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        if len(options) <= self.most:
            return list(options)
        texts = [_head(a, now, option, "current", self.before) + option.word for option in options]
        told = yield from _likelihoods(self.model, texts)
        order = sorted(range(len(options)), key=lambda number: -told[texts[number]])
        return [options[number] for number in sorted(order[: self.most])]


@dataclass(frozen=True)
class FirstOptions:
    """The first `most` options for a word, whatever they are."""

    most: int = 4

    def __post_init__(self) -> None:
        require_counts(self, "most")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        return list(options[: self.most])
        yield  # no question is needed, but a program is a generator


def replaced(a: Attempt, now: Scored, option: NextText, against: Against) -> str:
    """The word that the option replaces: the present one, or the original one of its place."""
    origin = now.text.origin[option.position]
    if against == "current" or origin < 0:
        return now.text.words[option.position]
    return a.original.words[origin]


def _head(a: Attempt, now: Scored, option: NextText, against: Against, before: int | None) -> str:
    """The words before the option's, and the gap between; nothing where no letter stands before it."""
    text, place = option.text, option.position
    if against == "original" and not option.inserted and now.text.origin[place] >= 0:
        text, place = a.original, now.text.origin[place]
    if not any(map(str.isalpha, text.string[: text.starts[place]])):
        return ""
    first = 0 if before is None else max(0, place - before)
    return text.string[text.starts[first] : text.starts[place]]


def _vectors(table: str, words: Iterable[str]) -> Program[dict[str, Any]]:
    """The vector of each word, or None, by word."""
    asked = list(dict.fromkeys(words))
    return dict(zip(asked, (yield from ask(f"vectors:{table}", asked)), strict=True))


def _likelihoods(model: str, texts: Iterable[str]) -> Program[dict[str, float]]:
    """The log-probability of each text, by text; of two that differ in their last word, that word's."""
    asked = list(dict.fromkeys(texts))
    scores = yield from ask(f"fluency:{model}", asked)
    return {text: score.log_probability for text, score in zip(asked, scores, strict=True)}


def _require_before(words: int | None) -> None:
    if words is not None and words < 1:
        raise ValueError("before is at least 1, or none for all words")
