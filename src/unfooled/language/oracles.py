"""Answers questions of a search about English words in their place.

    inflect   item (text, index, words)    answer  the words in the form of the word that stands there, or ""
    edit      item (text, index, words)    answer  what each would do there: a `EditEffect` each
    forms     item (word, part)            answer  all forms of the word's first lemma of that part of speech
    alike     item (text, index)           answer  words that may stand for the word there, in its form
    polarity  item word                    answer  where it lies between bad (-1) and good (1)

`index` counts words of the text. The first three open the tagger and the lexicons of `open_english`; their
variants name the resource that each reads first, that of the last the word vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from unfooled.batching import up_to
from unfooled.errors import OracleError
from unfooled.language.agreement import broken_rules
from unfooled.language.alike import interchangeable
from unfooled.language.english import English, open_english
from unfooled.language.forms import Change, changed_form
from unfooled.language.inflection import has_form, inflect, lemmas, part_of, tag_by_form
from unfooled.language.polarity import WordLookup, open_word_lookup
from unfooled.language.relations import Related
from unfooled.language.tagging import tag_texts
from unfooled.resources.inflections import InflectionTable, open_inflections
from unfooled.text import Text

Item: TypeAlias = tuple[str, int, tuple[str, ...]]
_REMEMBERED = 1 << 15
_AT_ONCE = 1 << 20  # characters of edited texts that an answer is worked out from side by side


class EditEffect(NamedTuple):
    """What a word would do in the place of another: which form is lost, how many rules of agreement break,
    how the two words relate, and how many senses the more ambiguous of them has."""

    part: str  # of speech, of the word that stands there: noun, verb, adj, adv, or ""
    changed: frozenset[Change]
    disagreements: int
    related: Related
    senses: int = 0


class InflectOracle:
    batch_size = 1024

    def __init__(self, english: English) -> None:
        self._english = english

    def __call__(self, items: Sequence[Item], /) -> list[tuple[str, ...]]:
        texts = _texts(items)
        table = self._english.inflections
        found = []
        for text, tags, (_, index, words) in zip(
            texts, tag_texts(texts, self._english.tagger), items, strict=True
        ):
            tag = tag_by_form(text.words[index], tags[index], table)
            found.append(tuple(self._formed(word.lower(), tag) for word in words))
        return found

    def _formed(self, word: str, tag: str) -> str:
        """A word that has the form already stays; else the first lemma that can take it gives the form."""
        table = self._english.inflections
        if not part_of(tag) or has_form(word, tag, table):
            return word
        if not any(reading.part == part_of(tag) for reading in table.readings(word)):
            return ""  # no such word of this part of speech is known
        return next(filter(None, (inflect(lemma, tag, table) for lemma in lemmas(word, tag, table))), "")


class EditOracle:
    batch_size = 256

    def __init__(self, english: English) -> None:
        self._english = english
        self._related = lru_cache(maxsize=_REMEMBERED)(english.relations.of)

    def __call__(self, items: Sequence[Item], /) -> list[tuple[EditEffect, ...]]:
        blocks = up_to(_AT_ONCE, items, lambda item: len(item[0]) * (1 + len(item[2])))
        return [effects for block in blocks for effects in self._of_all(block)]

    def _of_all(self, items: Sequence[Item]) -> list[tuple[EditEffect, ...]]:
        texts = [
            text
            for own, (_, index, words) in zip(_texts(items), items, strict=True)
            for text in (own, *(own.replace(index, word) for word in words))
        ]
        table = self._english.inflections
        tags = [
            [tag_by_form(word, tag, table) for word, tag in zip(text.words, found, strict=True)]
            for text, found in zip(texts, tag_texts(texts, self._english.tagger), strict=True)
        ]
        answers, first = [], 0
        for _, index, words in items:
            last = first + 1 + len(words)
            answers.append(self._effects(texts[first:last], tags[first:last], index))
            first = last
        return answers

    def _effects(
        self, texts: Sequence[Text], tags: Sequence[Sequence[str]], index: int
    ) -> tuple[EditEffect, ...]:
        (own, *others), (own_tags, *other_tags) = texts, tags
        part = part_of(own_tags[index])
        broken = broken_rules(own.words, own_tags)
        ambiguity = self._english.relations.ambiguity
        return tuple(
            EditEffect(
                part,
                changed_form(own_tags[index], found[index]),
                (broken_rules(text.words, found) - broken).total(),
                self._related(own.words[index].lower(), text.words[index].lower(), part),
                max(ambiguity(own.words[index], part), ambiguity(text.words[index], part)),
            )
            for text, found in zip(others, other_tags, strict=True)
        )


class AlikeOracle:
    batch_size = 1024

    def __init__(self, english: English) -> None:
        self._english = english

    def __call__(self, items: Sequence[tuple[str, int]], /) -> list[tuple[str, ...]]:
        texts = _texts(items)
        table = self._english.inflections
        return [
            interchangeable(text.words[index], tag_by_form(text.words[index], tags[index], table), table)
            for text, tags, (_, index) in zip(
                texts, tag_texts(texts, self._english.tagger), items, strict=True
            )
        ]


class PolarityOracle:
    batch_size = 4096

    def __init__(self, vectors: WordLookup) -> None:
        self._vectors = vectors

    def __call__(self, items: Sequence[str], /) -> list[float]:
        return [round(self._vectors.polarity_of(word), 6) for word in items]


def _texts(items: Sequence[Sequence[Any]]) -> list[Text]:
    """The text of each item; equal ones are parsed once."""
    known = {string: Text(string) for string in {item[0] for item in items}}
    for string, index, *_ in items:
        if not 0 <= index < len(known[string].words):
            raise OracleError(
                f"position {index} is outside of the {len(known[string].words)} words of the text"
            )
    return [known[item[0]] for item in items]


class FormsOracle:
    batch_size = 1 << 14

    def __init__(self, table: InflectionTable) -> None:
        self._table = table

    def __call__(self, items: Sequence[tuple[str, str]], /) -> list[tuple[str, ...]]:
        return [self._forms(*item) for item in items]

    def _forms(self, word: str, part: str) -> tuple[str, ...]:
        lemma = next((reading.lemma for reading in self._table.readings(word) if reading.part == part), word)
        found = dict.fromkeys(form for forms in self._table.forms(lemma, part).values() for form in forms)
        return tuple(form for form in found if form != word)


def open_forms(variant: str = "") -> FormsOracle:
    return FormsOracle(open_inflections())


def open_inflect(variant: str = "") -> InflectOracle:
    return InflectOracle(open_english())


def open_edit(variant: str = "") -> EditOracle:
    return EditOracle(open_english())


def open_alike(variant: str = "") -> AlikeOracle:
    return AlikeOracle(open_english())


def open_polarity(variant: str = "") -> PolarityOracle:
    return PolarityOracle(open_word_lookup(variant or "counter-fitted"))
