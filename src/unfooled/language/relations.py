"""How two words relate in WordNet: synonyms, opposites, one the more general, or two of a kind.

Two of a kind (summer and winter, brother and sister) have near vectors and fit the same places, and yet tell
another thing: what a search for synonyms by vectors most often gets wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

from unfooled.resources.synonyms import WordForm
from unfooled.resources.wordnet import SenseKey, WordNet

Relation: TypeAlias = Literal[
    "same", "synonym", "similar", "antonym", "hypernym", "hyponym", "co-hyponym", "unrelated", "unknown"
]

_OPPOSITE_SENSES = 4  # of each word, for opposites by way of the adjectives around a head


class Related(NamedTuple):
    """The relation of a word to another, and by which senses: 0 is the commonest; -1 where none is meant.

    hypernym: the other word is the more general one; hyponym: the more special one.
    """

    relation: Relation
    sense: int = -1
    other_sense: int = -1


class Relations:
    """Looks words up in WordNet, in any form; `readings` tells what a form may be."""

    def __init__(self, net: WordNet, readings: Callable[[str], Sequence[WordForm]]) -> None:
        self._net = net
        self._readings = readings

    def of(self, word: str, other: str, part: str = "") -> Related:
        """As `part` (noun, verb, adj, adv), or as any part of speech that both words have.

        Of several relations the first of this list counts: same, antonym, synonym, similar, hypernym,
        hyponym, co-hyponym; of several senses the commonest.
        """
        word, other = word.lower(), other.lower()
        if word == other:
            return Related("same")
        bases = [(reading.part, reading.base) for reading in self._readings(word)]
        others = [(reading.part, reading.base) for reading in self._readings(other)]
        if not bases or not others:
            return Related("unknown")
        pairs = [
            (own_part, base, other_base)
            for (own_part, base), (other_part, other_base) in product(
                dict.fromkeys(bases), dict.fromkeys(others)
            )
            if own_part == other_part and part in ("", own_part)
        ]
        if not pairs:
            return Related("unknown" if part else "unrelated")
        if any(base == other_base for _, base, other_base in pairs):
            return Related("same")
        ways = [self._antonym, self._synonym, self._similar, self._hypernym, self._hyponym, self._co_hyponym]
        for way in ways:
            found = [related for pair in pairs for related in way(*pair)]
            if found:
                return min(found, key=lambda related: related.sense + related.other_sense)
        return Related("unrelated")

    def ambiguity(self, word: str, part: str) -> int:
        """How many senses the word has as that part of speech; 0 for an unknown one."""
        readings = [reading for reading in self._readings(word.lower()) if reading.part == part]
        return max((len(self._senses(part, reading.base)) for reading in readings), default=0)

    def _senses(self, part: str, base: str) -> list[SenseKey]:
        return self._net.senses.get((part, base), [])

    def _synonym(self, part: str, base: str, other: str) -> Iterator[Related]:
        others = self._senses(part, other)
        for rank, key in enumerate(self._senses(part, base)):
            if key in others:
                yield Related("synonym", rank, others.index(key))

    def _antonym(self, part: str, base: str, other: str) -> Iterator[Related]:
        net = self._net
        for rank, key in enumerate(self._senses(part, base)):
            synset = net.synsets[key]
            for there, source, target in synset.antonyms:
                if source and synset.words[source - 1] != base:
                    continue
                words = net.synsets[there].words
                if other in (words[target - 1 : target] if target else words):
                    yield Related("antonym", rank, net.rank(part, other, there))
        if part == "adj":
            yield from self._opposite_clusters(base, other)

    def _opposite_clusters(self, base: str, other: str) -> Iterator[Related]:
        """Adjectives around one head against those around its opposite: superb and awful."""
        heads = [
            (rank, head)
            for rank, key in enumerate(self._senses("adj", base)[:_OPPOSITE_SENSES])
            for head in self._heads(key)
        ]
        others = [
            (rank, head)
            for rank, key in enumerate(self._senses("adj", other)[:_OPPOSITE_SENSES])
            for head in self._heads(key)
        ]
        for (rank, head), (other_rank, other_head) in product(heads, others):
            if any(there == other_head for there, _, _ in self._net.synsets[head].antonyms):
                yield Related("antonym", rank, other_rank)

    def _heads(self, key: SenseKey) -> list[SenseKey]:
        """The head adjectives of a sense: itself, if it has an opposite, or those it stands around."""
        synset = self._net.synsets[key]
        return [key] if synset.antonyms else [*synset.similar]

    def _similar(self, part: str, base: str, other: str) -> Iterator[Related]:
        """Adjectives around one head, or the head itself; verb senses of one group."""
        others = self._senses(part, other)
        for rank, key in enumerate(self._senses(part, base)):
            synset = self._net.synsets[key]
            around = {*synset.similar, *synset.groups}
            if not synset.antonyms:
                around |= {near for head in synset.similar for near in self._net.synsets[head].similar}
            for other_rank, other_key in enumerate(others):
                if other_key in around:
                    yield Related("similar", rank, other_rank)

    def _hypernym(self, part: str, base: str, other: str) -> Iterator[Related]:
        others = self._senses(part, other)
        for rank, key in enumerate(self._senses(part, base)):
            above = self._net.synsets[key].hypernyms
            further = [up for near in above for up in self._net.synsets[near].hypernyms]
            for up in (*above, *further):
                if up in others:
                    yield Related("hypernym", rank, others.index(up))

    def _hyponym(self, part: str, base: str, other: str) -> Iterator[Related]:
        for related in self._hypernym(part, other, base):
            yield Related("hyponym", related.other_sense, related.sense)

    def _co_hyponym(self, part: str, base: str, other: str) -> Iterator[Related]:
        others = [set(self._net.synsets[key].hypernyms) for key in self._senses(part, other)]
        for rank, key in enumerate(self._senses(part, base)):
            above = self._net.synsets[key].hypernyms
            for other_rank, other_above in enumerate(others):
                if other_above.intersection(above):
                    yield Related("co-hyponym", rank, other_rank)
