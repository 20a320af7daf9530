"""Parts that hold a search to what a reader of English accepts: candidates in the form of the word they
replace, and constraints on names, forms, agreement, relations of words and the share of changed words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.search import require_stopwords
from unfooled.attacks.parts.sources import like
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.data.language import ENGLISH
from unfooled.language.forms import same_stem
from unfooled.language.oracles import EditEffect
from unfooled.language.protected import protected_words
from unfooled.stopwords import STOPWORDS
from unfooled.text import Text

_AROUND = 3  # words to each side
# Named after the resources that they read; the tagger's name stands beside them for the same reason.
_INFLECT, _EDIT, _TAGGER = "inflect:inflections", "edit:wordnet", "tag:perceptron-tagger"
_ALIKE = "alike:inflections"
ALIKE_ASKS = (_ALIKE, _TAGGER)


@dataclass(frozen=True)
class Interchangeable:
    """Other spellings, and words that most sentences let stand for the word, in its form."""

    language: ClassVar[str] = ENGLISH

    @property
    def asks(self) -> tuple[str, ...]:
        return ALIKE_ASKS

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        (found,) = yield from ask(_ALIKE, [(text.string, index)])
        return like(text.words[index], found, most=len(found))


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
        return like(word, [form for form in forms if form], most=len(forms))


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

    Agreement is that of a and an, of determiner and noun, of subject and verb. An inserted word passes, and
    the tag of words that `Interchangeable` knows is not asked: they are listed form by form.
    """

    language: ClassVar[str] = ENGLISH
    form: bool = True
    agreement: bool = True
    no_repetition: bool = True

    @property
    def asks(self) -> tuple[str, ...]:
        return (_EDIT, _INFLECT, _ALIKE, _TAGGER)

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        effects = yield from _effects(now, swaps)
        alike = yield from alike_words(now, swaps[0].position)
        wrong = {
            option.text
            for option, effect in zip(swaps, effects, strict=True)
            if (self.form and effect.changed and option.word.lower() not in alike)
            or (self.agreement and effect.disagreements)
            or (self.no_repetition and _repeats(option))
        }
        return [option for option in options if option.inserted or option.text not in wrong]


@dataclass(frozen=True)
class RelatedWords:
    """A replacement means the same, by WordNet and by word vectors; opposites and two of a kind are barred.

    What `Interchangeable` knows passes. Any other word must

    - be as near as `cosine` to the word it replaces in `encoder`, and lie as far between good and bad in the
      vectors `table`, give or take `polarity`: hilarious is near laughable, but no praise is a blame;
    - be a synonym where the ranks of the common sense in both words (0 is the commonest) add up to `rarest`
      at most; or an adjective of the same group in WordNet, in a common sense, and as near as `sure_cosine`;
    - or, where WordNet knows no relation, as it does not know all words that mean the same (boring,
      lackluster), be a neighbour of at least `near`, for a noun or a verb of at least `sure`, and as near as
      `sure_cosine`.

    Without `nouns` no noun passes that is not listed: what a noun means is decided by the words around it
    (a film's premise is no assumption, a transformation no shift), which neither lexicon nor vectors see.
    Nouns and verbs of more than `most_senses` senses (make, get) are too ambiguous, a word of the same stem
    (hack, hacker) tells something else in the same letters, and `stopwords` have neighbours but no synonyms:
    all are barred. An inserted word passes.
    """

    language: ClassVar[str] = ENGLISH
    rarest: int = 0
    near: float = 0.5
    sure: float = 0.85
    cosine: float = 0.45
    sure_cosine: float = 0.5
    polarity: float = 0.12
    most_senses: int = 20
    nouns: bool = False
    table: str = "counter-fitted"
    encoder: str = "potion"
    stopwords: str = "textfooler"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)

    @property
    def asks(self) -> tuple[str, ...]:
        by_table = (f"neighbours:{self.table}", f"polarity:{self.table}")
        return (_EDIT, _INFLECT, _ALIKE, _TAGGER, *by_table, f"encode:{self.encoder}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        place = swaps[0].position
        alike = yield from alike_words(now, place)
        others = [option for option in swaps if option.word.lower() not in alike]
        fits = {option.text for option in swaps if option.word.lower() in alike}
        cosines = yield from self._close(now.text.words[place].lower(), others)
        if cosines:
            fits |= yield from self._related(now, cosines)
        return [option for option in options if option.inserted or option.text in fits]

    def _close(self, word: str, options: Sequence[NextText]) -> Program[dict[NextText, float]]:
        """Those that are near the word and as good or bad, with their cosines; the tagger is slower."""
        listed = STOPWORDS[self.stopwords]
        options = [
            option
            for option in options
            if not same_stem(word, option.word) and not listed & {word, option.word.lower()}
        ]
        if not options:
            return {}
        words = [word, *(option.word.lower() for option in options)]
        vectors = np.array((yield from ask(f"encode:{self.encoder}", words)), dtype=np.float64)
        own, *values = yield from ask(f"polarity:{self.table}", words)
        cosines = np.round(vectors[1:] @ vectors[0], 6).tolist()
        return {
            option: cosine
            for option, cosine, value in zip(options, cosines, values, strict=True)
            if cosine >= self.cosine and abs(value - own) <= self.polarity
        }

    def _related(self, now: Scored, cosines: Mapping[NextText, float]) -> Program[set[Text]]:
        word = now.text.words[next(iter(cosines)).position].lower()
        effects = yield from _effects(now, list(cosines))
        neighbours = [(word, 100, least) for least in (self.near, self.sure)]
        near, sure = yield from ask(f"neighbours:{self.table}", neighbours)
        return {
            option.text
            for (option, cosine), effect in zip(cosines.items(), effects, strict=True)
            if self._fits(effect, option.word.lower() in near, option.word.lower() in sure, cosine)
        }

    def _fits(self, effect: EditEffect, near: bool, sure: bool, cosine: float) -> bool:
        relation, sense, other_sense = effect.related
        describes = effect.part in ("adj", "adv")
        if not effect.part or (not describes and effect.senses > self.most_senses):
            return False
        if effect.part == "noun" and not self.nouns:
            return False
        if relation == "synonym":
            return sense + other_sense <= self.rarest
        if cosine < self.sure_cosine:
            return False
        if relation == "similar":
            return describes and sense + other_sense <= 1
        return relation == "unrelated" and (near if describes else sure)


@dataclass(frozen=True)
class MaxChangedShare:
    """At most this share of the original's words differ, and at most so many `words`; one always may."""

    most: float = 0.2
    words: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ValueError("most is a share between 0 and 1")
        if self.words is not None and self.words < 1:
            raise ValueError("words is at least 1, or none for any number")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        limit = max(1.0, self.most * len(a.original.words))
        limit = limit if self.words is None else min(limit, self.words)
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


def alike_words(now: Scored, place: int) -> Program[frozenset[str]]:
    """Words that may stand for the word there, whatever else is known of them; in small letters."""
    (found,) = yield from ask(_ALIKE, [(now.text.string, place)])
    return frozenset(found)
