"""Parts that hold a search to what a reader of English accepts: candidates in the form of the word they
replace, and constraints on names, forms, agreement, relations of words and the share of changed words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.constraints import Option
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.data.language import ENGLISH
from unfooled.language.oracles import Verdict
from unfooled.language.protected import protected_words
from unfooled.text import Text, match_case

_INFLECT, _EDIT = "inflect:english", "edit:english"


@dataclass(frozen=True)
class InForm:
    """The words of other sources, in the form of the word they replace: better for nicer, saw for watched.

    Words that cannot take that form are left out.
    """

    language: ClassVar[str] = ENGLISH
    sources: tuple[Candidates, ...] = (Neighbours(),)

    @property
    def asks(self) -> tuple[str, ...]:
        return (_INFLECT,)

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

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
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

    def _touches(self, option: Option, present: dict[int, str], kept: set[str]) -> bool:
        if not option.inserted and present.get(option.position) in kept:
            return True
        return protected_words(option.text).get(option.position) in kept


@dataclass(frozen=True)
class GoodGrammar:
    """A replacement keeps the fine Penn tag (number, tense, verb form, degree) and breaks no agreement.

    Agreement is that of a and an, of determiner and noun, of subject and verb. An inserted word passes.
    """

    language: ClassVar[str] = ENGLISH
    form: bool = True
    agreement: bool = True

    @property
    def asks(self) -> tuple[str, ...]:
        return (_EDIT,)

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        verdicts = yield from _verdicts(now, options)
        return [
            option
            for option, verdict in zip(options, verdicts, strict=True)
            if verdict is None
            or not ((self.form and verdict.changed) or (self.agreement and verdict.disagreements))
        ]


@dataclass(frozen=True)
class RelatedWords:
    """A replacement means the same to WordNet: a synonym, or an adjective of the same group.

    `rarest` bounds how rare the common sense may be: the ranks of the sense in both words, added, where 0 is
    each word's commonest. Opposites, two of a kind (summer, winter), more general and more special words are
    barred. WordNet does not relate all adjectives and adverbs that mean the same (boring, lackluster): those
    that it does not relate pass if they are neighbours of at least `near` in the vectors of `table`.
    An inserted word passes.
    """

    language: ClassVar[str] = ENGLISH
    rarest: int = 3
    near: float = 0.7
    table: str = "counter-fitted"
    synonyms_only: bool = False

    @property
    def asks(self) -> tuple[str, ...]:
        return (_EDIT, f"neighbours:{self.table}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        verdicts = yield from _verdicts(now, options)
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        word = now.text.words[swaps[0].position].lower()
        (near,) = yield from ask(f"neighbours:{self.table}", [(word, 100, self.near)])
        return [
            option
            for option, verdict in zip(options, verdicts, strict=True)
            if verdict is None or self._fits(verdict, option.word.lower() in near)
        ]

    def _fits(self, verdict: Verdict, near: bool) -> bool:
        relation, sense, other_sense = verdict.related
        if relation == "synonym" or (relation == "similar" and not self.synonyms_only):
            return sense + other_sense <= self.rarest
        return relation == "unrelated" and near and verdict.part in ("adj", "adv")


@dataclass(frozen=True)
class MaxChangedShare:
    """At most this share of the original's words differ; one change is always allowed."""

    most: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ValueError("most is a share between 0 and 1")

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        limit = max(1.0, self.most * len(a.original.words))
        return [option for option in options if option.text.changes <= limit]
        yield  # no question is needed, but a program is a generator


def _verdicts(now: Scored, options: Sequence[Option]) -> Program[list[Verdict | None]]:
    """What each option would do, in their order; None of an inserted word."""
    swaps = [option for option in options if not option.inserted]
    if not swaps:
        return [None] * len(options)
    item = (now.text.string, swaps[0].position, tuple(option.word for option in swaps))
    (told,) = yield from ask(_EDIT, [item])
    answers = iter(told)
    return [None if option.inserted else next(answers) for option in options]
