"""Which words mean the same, and which the opposite: pairs for counter-fitting, with their inflections."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unfooled.resources.vectors import Matrix
from unfooled.resources.wordnet import Pair, SenseKey, Synset, WordNet, read_wordnet

Rows = npt.NDArray[np.intp]  # [n, 2] row numbers, smaller first, sorted

_COMMON_SENSES = 3
# Pairs that share only a rare sense are far apart in plain vectors; these cosines leave them out.
_LEAST_SYNONYM, _LEAST_THESAURUS, _LEAST_SIMILAR, _LEAST_INFLECTION = 0.15, 0.25, 0.25, 0.35
_LEAST_ANTONYM = -0.1  # below, there is nothing to push apart
_VOWELS = "aeiou"


@dataclass(frozen=True, eq=False)
class Constraints:
    synonyms: Rows
    antonyms: Rows
    related: Rows  # inflections of a word, adjectives around a head adjective


def read_constraints(wordnet: Path, thesaurus: Path, words: Sequence[str], vectors: Matrix) -> Constraints:
    """Pairs of known words. Nothing is both near and apart: antonyms win over the rest."""
    net = read_wordnet(wordnet)
    index = {word: i for i, word in enumerate(words)}
    rows = partial(_rows, index=index, vectors=vectors)
    inflector = Inflector(net, frozenset(index))
    opposite = rows(antonyms(net, inflector), least=-1.0) | rows(
        _pairs(thesaurus / "antonyms.json.gz"), least=-1.0
    )
    same = rows(synonyms(net, inflector), least=_LEAST_SYNONYM)
    same |= rows(_pairs(thesaurus / "synonyms.json.gz"), least=_LEAST_THESAURUS)
    near = rows(similar(net), least=_LEAST_SIMILAR) | rows(inflector.pairs(), least=_LEAST_INFLECTION)
    close = {pair for pair in opposite if float(vectors[pair[0]] @ vectors[pair[1]]) > _LEAST_ANTONYM}
    return Constraints(_array(same - opposite), _array(close), _array(near - same - opposite))


def synonyms(net: WordNet, inflector: Inflector) -> Iterator[Pair]:
    """Words of one synset, where the sense is a common one of both."""
    for (part, offset), synset in net.synsets.items():
        common = [word for word in synset.words if word and _is_common(net, part, word, (part, offset))]
        for word, other in combinations(common, 2):
            yield from inflector.matched(part, word, other)


def antonyms(net: WordNet, inflector: Inflector) -> Iterator[Pair]:
    """Opposites as given, and all adjectives around one head against all around the opposite head."""
    for (part, offset), synset in net.synsets.items():
        for key, source, target in synset.antonyms:
            ones = [synset.words[source - 1]] if source else synset.words
            others = [net.synsets[key].words[target - 1]] if target else net.synsets[key].words
            for word, other in product(filter(None, ones), filter(None, others)):
                yield from inflector.matched(part, word, other)
            if part == "adj":
                here, there = _cluster(net, (part, offset), synset), _cluster(net, key, net.synsets[key])
                yield from product(here, there)


def similar(net: WordNet) -> Iterator[Pair]:
    for (part, offset), synset in net.synsets.items():
        for key in synset.similar:
            for word, other in product(filter(None, synset.words), filter(None, net.synsets[key].words)):
                if _is_common(net, part, word, (part, offset)) and _is_common(net, part, other, key):
                    yield word, other


class Inflector:
    """Forms of English words, by rule and by WordNet's list of exceptions, limited to a vocabulary."""

    def __init__(self, net: WordNet, vocabulary: frozenset[str]) -> None:
        self._net = net
        self._vocabulary = vocabulary
        self._known: dict[tuple[str, str], dict[str, str]] = {}

    def pairs(self) -> Iterator[Pair]:
        """Each base form with each of its inflections."""
        for part, base in self._net.senses:
            for slot, form in self.forms(part, base).items():
                if slot:
                    yield base, form

    def matched(self, part: str, word: str, other: str) -> Iterator[Pair]:
        """The two words, and their forms slot by slot: films with movies, filmed with shot."""
        ours, theirs = self.forms(part, word), self.forms(part, other)
        for slot, form in ours.items():
            if slot in theirs:
                yield form, theirs[slot]

    def forms(self, part: str, base: str) -> dict[str, str]:
        """Slot → form; the base form's slot is ""."""
        if (part, base) not in self._known:
            found = {"": base}
            irregular = self._net.irregular.get(part, {}).get(base, [])
            for form in irregular:
                found.setdefault(_slot(part, form), form)
            for slot, form in _regular(part, base):
                if form in self._vocabulary:
                    found.setdefault(slot, form)
            self._known[part, base] = found
        return self._known[part, base]


def _slot(part: str, form: str) -> str:
    """Which form an irregular one is."""
    if part == "noun":
        return "s"
    if part == "verb":
        return "ing" if form.endswith("ing") else "s" if form.endswith("s") else "ed"
    return "est" if form.endswith("st") else "er"


def _regular(part: str, base: str) -> Iterator[tuple[str, str]]:
    """Guesses by rule, some of them no words: the vocabulary decides."""
    soft = base[-1] == "y" and base[-2:-1] not in _VOWELS
    if part in ("noun", "verb"):
        ending = "es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s"
        yield "s", base[:-1] + "ies" if soft else base + ending
    stems = [base[:-1]] if base[-1] == "e" else [base]
    if len(base) > 2 and base[-1] not in _VOWELS + "wxy" and base[-2] in _VOWELS and base[-3] not in _VOWELS:
        stems.append(base + base[-1])
    if part == "verb":
        for stem in stems:
            yield "ing", stem + "ing"
            yield "ed", base[:-1] + "ied" if soft else stem + "ed"
    if part == "adj":
        for stem in stems:
            yield "er", base[:-1] + "ier" if soft else stem + "er"
            yield "est", base[:-1] + "iest" if soft else stem + "est"


def _is_common(net: WordNet, part: str, word: str, key: SenseKey) -> bool:
    return net.rank(part, word, key) < _COMMON_SENSES


def _cluster(net: WordNet, key: SenseKey, head: Synset) -> list[str]:
    return [word for sense in (key, *head.similar) for word in net.synsets[sense].words if word]


def _pairs(path: Path) -> Iterator[Pair]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lists: dict[str, list[str]] = json.load(file)
    for word, others in lists.items():
        for other in others:
            yield word, other


def _rows(
    pairs: Iterable[Pair], *, index: dict[str, int], vectors: Matrix, least: float
) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for word, other in pairs:
        if word != other and word in index and other in index:
            a, b = sorted((index[word], index[other]))
            if least <= -1 or float(vectors[a] @ vectors[b]) > least:
                found.add((a, b))
    return found


def _array(pairs: set[tuple[int, int]]) -> Rows:
    return np.array(sorted(pairs), dtype=np.intp).reshape(-1, 2)
