"""Parts that hold a search to what a reader of English accepts: candidates in the form of the word they
replace, and constraints on names, forms, agreement, relations of words and the share of changed words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.constraints import NextText
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.data.language import ENGLISH
from unfooled.language.forms import same_stem
from unfooled.language.oracles import EditEffect
from unfooled.language.protected import protected_words
from unfooled.text import Text, match_case

_AROUND = 3  # words to each side
# Named after the resources that they read; the tagger's name stands beside them for the same reason.
_INFLECT, _EDIT, _TAGGER = "inflect:inflections", "edit:wordnet", "tag:perceptron-tagger"


@dataclass(frozen=True)
class InForm:
    """The words of other sources, in the form of the word they replace: better for nicer, saw for watched.

    Words that cannot take that form are left out.
    """

    language: ClassVar[str] = ENGLISH
    sources: tuple[Candidates, ...] = (Neighbours(),)

    @property
    def asks(self) -> tuple[str, ...]:
        return (_INFLECT, _TAGGER)

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        found: list[str] = []
        for source in self.sources:
            found += yield from source.propose(a, text, index)
        if not found:
            return []
        (forms,) = yield from ask(_INFLECT, [(text.string, index, tuple(dict.fromkeys(found)))])
        cased = (match_case(form, word) for form in forms if form and form.lower() != word.lower())
        return list(dict.fromkeys(cased))


@dataclass(frozen=True)
class ProtectedWords:
    """Names, numbers, negations, links, handles and hashtags stay, and no edit brings in a new one.

    `names=False` and so on give a kind free.
    """

    names: bool = True
    numbers: bool = True
    negations: bool = True
    links: bool = True
    handles: bool = True
    hashtags: bool = True

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        if not options:
            return []
        kept = {
            kind
            for kind, protected in (
                ("name", self.names),
                ("number", self.numbers),
                ("negation", self.negations),
                ("link", self.links),
                ("handle", self.handles),
                ("hashtag", self.hashtags),
            )
            if protected
        }
        present = protected_words(now.text)
        return [option for option in options if not self._touches(option, present, kept)]
        yield  # no question is needed, but a program is a generator

    def _touches(self, option: NextText, present: Mapping[int, str], kept: set[str]) -> bool:
        if not option.inserted and present.get(option.position) in kept:
            return True
        return protected_words(option.text).get(option.position) in kept


@dataclass(frozen=True)
class GoodGrammar:
    """A replacement keeps the fine Penn tag (number, tense, verb form, degree), breaks no agreement, and does
    not repeat the stem of a word up to three words away.

    Agreement is that of a and an, of determiner and noun, of subject and verb. An inserted word passes.
    """

    language: ClassVar[str] = ENGLISH
    form: bool = True
    agreement: bool = True
    no_repetition: bool = True

    @property
    def asks(self) -> tuple[str, ...]:
        return (_EDIT, _INFLECT, _TAGGER)

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        effects = yield from _effects(now, swaps)
        wrong = {
            option.text
            for option, effect in zip(swaps, effects, strict=True)
            if (self.form and effect.changed)
            or (self.agreement and effect.disagreements)
            or (self.no_repetition and _repeats(option))
        }
        return [option for option in options if option.inserted or option.text not in wrong]


@dataclass(frozen=True)
class RelatedWords:
    """A replacement means the same, by WordNet and by word vectors; opposites and two of a kind are barred.

    A synonym in the commonest senses passes if it is a neighbour of at least `sure` in the vectors `table`.
    Any other word must be as near as `cosine` to the word it replaces in `encoder`, which keeps words of
    praise and words of blame apart, and be

    - a synonym, or of the same group of adjectives, where the ranks of the common sense in both words (0 is
      the commonest) add up to `rarest` at most; a noun or a verb is replaced in its commonest sense only;
    - not related in WordNet, which does not know all words that mean the same (boring, lackluster), but a
      neighbour of at least `near`; a noun or a verb, of at least `sure`.

    Nouns and verbs of more than `most_senses` senses (make, get) are too ambiguous, and a word of the same
    stem (hack, hacker) tells something else in the same letters: both are barred. An inserted word passes.
    """

    language: ClassVar[str] = ENGLISH
    rarest: int = 4
    near: float = 0.6
    sure: float = 0.85
    cosine: float = 0.5
    most_senses: int = 10
    table: str = "counter-fitted"
    encoder: str = "potion"

    @property
    def asks(self) -> tuple[str, ...]:
        return (_EDIT, _INFLECT, _TAGGER, f"neighbours:{self.table}", f"encode:{self.encoder}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        word = now.text.words[swaps[0].position].lower()
        others = [option.word.lower() for option in swaps]
        effects = yield from _effects(now, swaps)
        neighbours = [(word, 100, least) for least in (self.near, self.sure)]
        near, sure = yield from ask(f"neighbours:{self.table}", neighbours)
        vectors = np.array((yield from ask(f"encode:{self.encoder}", [word, *others])), dtype=np.float64)
        alike = np.round(vectors[1:] @ vectors[0], 6) >= self.cosine
        fits = {
            option.text
            for option, other, effect, close in zip(swaps, others, effects, alike.tolist(), strict=True)
            if not same_stem(word, other) and self._fits(effect, other in near, other in sure, close)
        }
        return [option for option in options if option.inserted or option.text in fits]

    def _fits(self, effect: EditEffect, near: bool, sure: bool, alike: bool) -> bool:
        relation, sense, other_sense = effect.related
        describes = effect.part in ("adj", "adv")
        if not describes and effect.senses > self.most_senses:
            return False
        if relation == "synonym" and sure and sense == other_sense == 0:
            return True
        if relation in ("synonym", "similar"):
            return alike and sense + other_sense <= self.rarest and (describes or sense == 0)
        return alike and relation == "unrelated" and (near if describes else sure)


@dataclass(frozen=True)
class MaxChangedShare:
    """At most this share of the original's words differ; one change is always allowed."""

    most: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ValueError("most is a share between 0 and 1")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        limit = max(1.0, self.most * len(a.original.words))
        return [option for option in options if option.text.changes <= limit]
        yield  # no question is needed, but a program is a generator


def _repeats(option: NextText) -> bool:
    words, place = option.text.words, option.position
    around = (*words[max(0, place - _AROUND) : place], *words[place + 1 : place + 1 + _AROUND])
    return any(same_stem(option.word, other) for other in around)


def _effects(now: Scored, swaps: Sequence[NextText]) -> Program[tuple[EditEffect, ...]]:
    """What each replacement would do, in their order."""
    words = tuple(option.word for option in swaps)
    (told,) = yield from ask(_EDIT, [(now.text.string, swaps[0].position, words)])
    effects: tuple[EditEffect, ...] = told
    return effects
