"""A trigram model of English, read from the packed binary file of the Sphinx speech tools.

The file holds probabilities of single words, and of words after one or two others, as a tree that starts at
the *last* word: word → the word before it → the word before that. Numbers are logarithms to the base 1.0001,
pairs and triples point into tables of 65,536 values. Reading it takes about a second and gives plain arrays,
so that a whole vocabulary is scored at once (`cloze`), or many texts (`Trigrams.log_probabilities`).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unfooled.errors import ResourceError
from unfooled.resources import store
from unfooled.text import WORD

NAME = "trigram"
FILE = "en-us.lm.bin"
START, END = "<s>", "</s>"

_MAGIC = b"Trie Language Model"
_TABLE = 1 << 16
_NATURAL = math.log(1.0001)
_TOKEN = re.compile(rf"{WORD.pattern}|(?P<end>[.!?…]+(?=\s|$))")
_NODE = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<u4")])

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Trigrams:
    """Natural log-probabilities and back-off weights, with the n-grams sorted by their last word.

    Pairs of last word `w` lie in `pair_from[w]:pair_from[w + 1]`, ordered by the word before; triples of
    pair `p` in `triple_from[p]:triple_from[p + 1]`, ordered by the first word. Unknown words are -1.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        single: Floats,
        single_backoff: Floats,
        pair_from: Ints,
        pair_before: Ints,
        pair: Floats,
        pair_backoff: Floats,
        triple_from: Ints,
        triple_before: Ints,
        triple: Floats,
    ) -> None:
        self.words = tuple(words)
        self.index = {word: i for i, word in enumerate(self.words)}
        self.single, self.single_backoff = single, single_backoff
        self.pair_from, self.pair_before = pair_from, pair_before
        self.pair, self.pair_backoff = pair, pair_backoff
        self.triple_from, self.triple_before, self.triple = triple_from, triple_before, triple
        size = len(self.words)
        # Keys that ascend with the place, so that any number of n-grams is found by one binary search.
        last = np.repeat(np.arange(size), np.diff(pair_from))
        self._pair_key = last * size + pair_before
        self._triple_key = np.repeat(np.arange(len(pair)), np.diff(triple_from)) * size + triple_before
        # An unknown word is as rare as the rarest known one.
        usual = np.array([not word.startswith("<") for word in self.words])
        self.unknown = float(single[usual].min()) if usual.any() else -20.0

    def find_pairs(self, before: Ints, last: Ints) -> Ints:
        """Places of the pairs, -1 where there is none."""
        return _find(self._pair_key, last * len(self.words) + before, (before >= 0) & (last >= 0))

    def find_triples(self, first: Ints, pairs: Ints) -> Ints:
        """Places of the triples made of `first` and a pair; -1 where there is none."""
        return _find(self._triple_key, pairs * len(self.words) + first, (first >= 0) & (pairs >= 0))

    def log_probability(self, first: Ints, before: Ints, last: Ints) -> npt.NDArray[np.float64]:
        """log P(last | first before), row by row; a word of the history that is unknown ends the history."""
        pairs, histories = self.find_pairs(before, last), self.find_pairs(first, before)
        triples = self.find_triples(first, pairs)
        single = np.where(last >= 0, self.single[last], self.unknown)
        backed = single + np.where(before >= 0, self.single_backoff[before], 0.0)
        backed = np.where(pairs >= 0, self.pair[pairs], backed)
        backed = backed + np.where(histories >= 0, self.pair_backoff[histories], 0.0)
        return np.where(triples >= 0, self.triple[triples], backed).astype(np.float64)

    def ids(self, words: Sequence[str]) -> list[int]:
        return [self.index.get(word, -1) for word in words]


def _find(keys: Ints, wanted: Ints, possible: npt.NDArray[np.bool_]) -> Ints:
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    found = possible & (keys[place] == wanted) if len(keys) else np.zeros(len(wanted), dtype=bool)
    return np.where(found, place, -1)


def tokens(text: str) -> list[str]:
    """Words in lower case as the model knows them, and an end mark behind each sentence."""
    found = _TOKEN.finditer(text.lower().replace("’", "'"))
    return [END if match["end"] else match.group() for match in found]


@lru_cache(maxsize=2)
def load(path: Path) -> Trigrams:
    """Read a packed file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResourceError(
            f"the trigram model {path} cannot be read: {error.strerror}",
            f"run: unfooled resources get {NAME}",
        ) from error
    try:
        return _parse(content)
    except (ValueError, IndexError, struct.error) as error:
        raise ResourceError(
            f"{path} is no packed trigram model: {error}",
            f'use "{NAME}", or a file of order 3 in the binary format of the Sphinx tools',
        ) from error


def _parse(content: bytes) -> Trigrams:
    if not content.startswith(_MAGIC):
        raise ValueError("it does not start with its mark")
    order, *counts = struct.unpack_from("<B3I", content, len(_MAGIC))
    (tables_kind,) = struct.unpack_from("<I", content, len(_MAGIC) + 13)
    if order != 3 or tables_kind != 1:
        raise ValueError(f"it has order {order} and tables of kind {tables_kind}; 3 and 1 are known")
    at = len(_MAGIC) + 17
    tables = np.frombuffer(content, "<f4", 3 * _TABLE, at).reshape(3, _TABLE) * np.float32(_NATURAL)
    at += 3 * _TABLE * 4
    nodes = np.frombuffer(content, _NODE, counts[0] + 1, at)
    at += nodes.nbytes
    word, place = counts[0].bit_length(), counts[2].bit_length()
    (before, backoff, prob, following), at = _unpack(content, at, counts[1], (word, 16, 16, place))
    (first, last_prob), at = _unpack(content, at, counts[2], (word, 16))
    (length,) = struct.unpack_from("<I", content, at)
    words = content[at + 4 : at + 4 + length].decode("utf-8").split("\0")[:-1]
    pair_from = nodes["next"].astype(np.int64)
    pairs = int(pair_from[-1])
    triples = int(following[pairs])
    if len(words) != counts[0] or pairs > counts[1] or triples > counts[2]:
        raise ValueError("its parts do not fit together")
    return Trigrams(
        words,
        single=nodes["prob"][:-1] * np.float32(_NATURAL),
        single_backoff=nodes["backoff"][:-1] * np.float32(_NATURAL),
        pair_from=pair_from,
        pair_before=before[:pairs],
        pair=tables[0][prob[:pairs]],
        pair_backoff=tables[1][backoff[:pairs]],
        triple_from=following[: pairs + 1],
        triple_before=first[:triples],
        triple=tables[2][last_prob[:triples]],
    )


def _unpack(content: bytes, at: int, count: int, widths: Sequence[int]) -> tuple[list[Ints], int]:
    """`count` + 1 records of bit fields that follow each other without gaps; and where they end."""
    total = sum(widths)
    size = ((count + 1) * total + 7) // 8 + 8
    if at + size > len(content):
        raise ValueError("it is cut short")
    # Eight bytes from every byte on: any field of up to 57 bits lies in one of them.
    eights: npt.NDArray[np.uint64] = np.ndarray((size - 7,), "<u8", content, at, (1,))
    fields, start = [], 0
    for width in widths:
        bit = np.arange(count + 1, dtype=np.int64) * total + start
        value = eights[bit >> 3] >> (bit & 7).astype(np.uint64)
        fields.append((value & np.uint64((1 << width) - 1)).astype(np.int64))
        start += width
    return fields, at + size


def open_model(variant: str = NAME) -> Trigrams:
    """The default one, or a file of the same format."""
    if variant in ("", NAME):
        return load(store.path(NAME) / FILE)
    return load(Path(variant).expanduser())
