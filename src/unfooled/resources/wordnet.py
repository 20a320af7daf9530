"""WordNet's own files, read directly: senses in order of use, and the pointers between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

PARTS = ("noun", "verb", "adj", "adv")

_LETTER = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}

SenseKey: TypeAlias = tuple[str, int]  # part of speech and byte offset in its data file
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Synset:
    """Words that share a meaning. Single words in lower case only; phrases keep their place as ""."""

    words: tuple[str, ...]
    antonyms: tuple[tuple[SenseKey, int, int], ...]  # of which sense, from which word, to which (0: all)
    similar: tuple[SenseKey, ...]  # the adjectives around a head adjective
    hypernyms: tuple[SenseKey, ...] = ()  # more general senses, one step up
    groups: tuple[SenseKey, ...] = ()  # senses of verbs that are much the same
    written: tuple[str, ...] = ()  # every word with its capitals, phrases with their underscores


@dataclass(frozen=True, slots=True)
class WordNet:
    synsets: dict[SenseKey, Synset]
    senses: dict[tuple[str, str], list[SenseKey]]  # (part of speech, word) → commonest first
    irregular: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # part → base → inflected forms

    def rank(self, part: str, word: str, key: SenseKey) -> int:
        """0 for the word's commonest sense in that part of speech."""
        senses = self.senses.get((part, word), [])
        return senses.index(key) if key in senses else len(senses)


def read_wordnet(folder: Path) -> WordNet:
    synsets: dict[SenseKey, Synset] = {}
    senses: dict[tuple[str, str], list[SenseKey]] = {}
    irregular: dict[str, dict[str, list[str]]] = {}
    for part in PARTS:
        for fields in _lines(folder / f"data.{part}"):
            synsets[part, int(fields[0])] = _synset(fields)
        for fields in _lines(folder / f"index.{part}"):
            count = int(fields[2])
            if "_" not in fields[0]:
                senses[part, fields[0]] = [(part, int(offset)) for offset in fields[-count:]]
        forms: dict[str, list[str]] = defaultdict(list)
        for inflected, *bases in _lines(folder / f"{part}.exc"):
            for base in bases:
                forms[base].append(inflected)
        irregular[part] = dict(forms)
    return WordNet(synsets, senses, irregular)


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith("  "):  # the licence at the top is indented
                yield line.partition("|")[0].split()


def _synset(fields: list[str]) -> Synset:
    count = int(fields[3], 16)
    written = tuple(fields[4 + 2 * i].partition("(")[0] for i in range(count))  # "(a)" marks some adjectives
    words = tuple("" if "_" in word else word.lower() for word in written)
    at = 4 + 2 * count
    antonyms: list[tuple[SenseKey, int, int]] = []
    others: dict[str, list[SenseKey]] = defaultdict(list)
    for i in range(int(fields[at])):
        symbol, offset, letter, ends = fields[at + 1 + 4 * i : at + 5 + 4 * i]
        key = (_LETTER[letter], int(offset))
        if symbol == "!":
            antonyms.append((key, int(ends[:2], 16), int(ends[2:], 16)))
        else:
            others[symbol].append(key)
    general = (*others["@"], *others["@i"])
    return Synset(words, tuple(antonyms), tuple(others["&"]), general, tuple(others["$"]), written)
