"""Oracles about words that know the victim: its vocabulary, what it reads, and where its logits are steep.

Items are hashable and say everything. A dictionary is written `SIZE:SOURCE`, such as `10000:victim`,
`all:victim` or `all:words.txt`: the victim's own words or those of a file, the first so many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import OWN, Numbers, Projection, Pull
from unfooled.core.questions import Pool as _Pool
from unfooled.core.victim import Victim, require_choice
from unfooled.core.victim_oracle import Row, to_rows
from unfooled.errors import CapabilityError, ResourceError
from unfooled.resources.class_words import read_word_list
from unfooled.victims.torch.oracles import BATCH, steady

_CELLS = 320_000  # projections held at a time: they stay in the processor's cache
_EXACT = 24  # bits of a whole number that float32 holds
_NOISE = 2.0**-20  # of a gradient's numbers, beside its largest; float32 has 24 bits


class VocabularyOracle:
    """Any item → the words, most important first."""

    batch_size = 1

    def __init__(self, victim: Victim, dictionary: str) -> None:
        size, source = _split(dictionary)
        self._size = size
        self._listed = None if source == OWN else read_word_list(source)
        if self._listed is None and not hasattr(victim, "vocabulary"):
            raise CapabilityError(
                f"{victim.name} does not say which words it knows",
                "name a file of words, one per line, as the attack's vocabulary: `unfooled show` has the "
                "setting; a file made by `unfooled words` will do",
            )
        self._victim: Any = victim

    def __call__(self, items: Sequence[Any], /) -> list[tuple[str, ...]]:
        if self._listed is None:
            self._listed = tuple(self._victim.vocabulary())
            if not self._listed:
                raise CapabilityError(f"{self._victim.name} knows no whole word", "name a file of words")
        return [self._listed[: self._size]] * len(items)


class ReadableOracle:
    """`Marked` → indices of the words that the victim reads at all (not those behind its cut)."""

    batch_size = 1024

    def __init__(self, victim: Victim) -> None:
        self._victim = with_method(victim, "pieces", "shows no tokens")

    def __call__(self, items: Sequence[Any], /) -> list[tuple[int, ...]]:
        return [tuple(np.flatnonzero(counts).tolist()) for counts in self._victim.pieces(list(items))]


class ZeroedOracle:
    """(`Marked`, index of a word) → class probabilities with that word's vector at zero."""

    batch_size = 2048

    def __init__(self, victim: Victim) -> None:
        self._victim = with_method(victim, "zeroed", "takes no word vectors")

    def __call__(self, items: Sequence[Any], /) -> list[Row]:
        return to_rows(self._victim.zeroed(list(items)))


class DistanceOracle:
    """(text before, text after) → L1 distance of the victim's own sentence vectors."""

    batch_size = 2048

    def __init__(self, victim: Victim, pool: str) -> None:
        require_choice(pool, _Pool, "the pool")
        self._victim = with_method(victim, "sentence_vectors", "shows no sentence vectors", "embeddings")
        self._pool = pool
        # An example's own text comes with each of its questions.
        self._known: dict[Any, Numbers] = {}

    def __call__(self, items: Sequence[Any], /) -> list[float]:
        befores = dict.fromkeys(before for before, _ in items)
        new = [text for text in befores if text not in self._known]
        wanted = list(dict.fromkeys([*new, *(after for _, after in items)]))
        rows = self._victim.sentence_vectors(wanted, pool=self._pool)
        vectors = {text: steady(row) for text, row in zip(wanted, rows, strict=True)}
        self._known = {text: self._known[text] if text in self._known else vectors[text] for text in befores}
        return [_l1(self._known[before], vectors[after]) for before, after in items]


class ProjectionOracle:
    """`Pull` → `Projection`: one pass for scores and gradients, then one product with all word vectors.

    Word vectors are put on a grid, so coarse that sums of whole numbers below 2^24 are all there is, and the
    direction is made of signs: the product is exact in float32, and no batch can change which word comes
    first. Equal projections come in the dictionary's order.
    """

    batch_size = BATCH
    cacheable = False  # the text changes with every step

    def __init__(self, victim: Victim, dictionary: str) -> None:
        self._victim = with_method(victim, "slopes", "gives no gradients", "gradients")
        with_method(victim, "vocabulary_vectors", "does not say which words it knows")
        self._size, source = _split(dictionary)
        self._source = source
        self._listed = None if source == OWN else read_word_list(source)
        self._table: Numbers | None = None
        self._words: tuple[str, ...] = ()

    def __call__(self, items: Sequence[Any], /) -> list[Projection]:
        if self._table is None:
            self._table = self._load()
        asked = [Pull(*item) for item in items]
        slopes = self._victim.slopes([item.text for item in asked], [item.label for item in asked])
        steepest = [_steepest(slope.vectors) for slope in slopes]
        directions = signs(np.array([slope.vectors[at] for slope, at in zip(slopes, steepest, strict=True)]))
        ways = np.array([[1 if item.up else -1] for item in asked], dtype=np.float32)
        best = self._best(directions * ways, [item.most for item in asked])
        rows = to_rows(np.array([slope.scores for slope in slopes]))
        return [Projection(*answer) for answer in zip(rows, steepest, best, strict=True)]

    def _best(self, directions: Numbers, most: Sequence[int]) -> list[tuple[str, ...]]:
        table = self._table
        assert table is not None
        found: list[tuple[str, ...]] = []
        step = max(1, _CELLS // len(table))
        for start in range(0, len(directions), step):
            part = directions[start : start + step]
            wanted = most[start : start + step]
            moved = (part != 0).any(axis=1).tolist()
            for places, k, moves in zip(highest(part @ table.T, max(wanted)), wanted, moved, strict=True):
                found.append(tuple(self._words[place] for place in places[:k]) if moves else ())
        return found

    def _load(self) -> Numbers:
        words, vectors = self._victim.vocabulary_vectors()
        places = range(len(words))
        if self._listed is not None:
            own = {word: place for place, word in enumerate(words)}
            places = [own[word] for word in self._listed if word in own]  # type: ignore[assignment]
            if not places:
                raise ResourceError(
                    f"{self._victim.name} reads no word of {self._source} as one token, so none has a vector",
                    "list words of the victim's own vocabulary",
                )
        places = places[: self._size]
        self._words = tuple(words[place] for place in places)
        table = vectors[list(places)].astype(np.float64)
        _, exponent = np.frexp(np.abs(table).max(initial=0.0))
        bits = _EXACT - (table.shape[1] - 1).bit_length()
        return np.asarray(np.round(np.ldexp(table, bits - int(exponent))), dtype=np.float32)


def highest(values: Numbers, most: int) -> list[list[int]]:
    """Of each row the places of its highest values, the first of equals first. Overwrites `values`."""
    most = min(most, values.shape[1])
    if most > 4:
        return [_highest(row, most) for row in values]
    places = []
    for _ in range(most):
        places.append(values.argmax(axis=1))
        values[np.arange(len(values)), places[-1]] = -np.inf
    return np.array(places).T.tolist()  # type: ignore[no-any-return]


def _highest(row: Numbers, most: int) -> list[int]:
    least = np.partition(row, len(row) - most)[len(row) - most]
    near = np.flatnonzero(row >= least)
    order = near[np.argsort(-row[near], kind="stable")[:most]]
    return [int(place) for place in order]


def _steepest(vectors: Numbers) -> int:
    """The row that is longest; the first of equals."""
    if len(vectors) == 1:
        return 0
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1).astype(np.float32)
    return int(steady(lengths).argmax())


def signs(vectors: Numbers) -> Numbers:
    """Zero for what is too near to zero, beside its row's largest, to have a sign that can be trusted."""
    sizes = np.abs(vectors)
    least = sizes.max(axis=1, keepdims=True, initial=0.0) * np.float32(_NOISE)
    return np.where(sizes > least, np.sign(vectors), np.float32(0))


def _l1(before: Numbers, after: Numbers) -> float:
    return round(float(np.abs(before.astype(np.float64) - after).sum()), 6)


def _split(dictionary: str) -> tuple[int | None, str]:
    size, _, source = dictionary.partition(":")
    return None if size == "all" else int(size), source


def with_method(victim: Victim, method: str, lack: str, capability: str = "") -> Any:
    if not hasattr(victim, method) or (capability and capability not in victim.capabilities):
        raise CapabilityError(f"{victim.name} {lack}", "use a torch model, or an attack that needs none")
    return victim


def open_vocabulary(victim: Victim, dictionary: str) -> VocabularyOracle:
    """`vocabulary:10000:victim`."""
    return VocabularyOracle(victim, dictionary)


def open_readable(victim: Victim, _: str) -> ReadableOracle:
    return ReadableOracle(victim)


def open_zeroed(victim: Victim, _: str) -> ZeroedOracle:
    return ZeroedOracle(victim)


def open_distance(victim: Victim, pool: str) -> DistanceOracle:
    """`sentence-distance:head` or `sentence-distance:mean`."""
    return DistanceOracle(victim, pool or "head")


def open_projection(victim: Victim, dictionary: str) -> ProjectionOracle:
    """`projection:20000:victim`."""
    return ProjectionOracle(victim, dictionary)
