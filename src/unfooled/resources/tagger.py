"""Parts of speech: a greedy averaged-perceptron tagger, made fast for trying many words at one place.

A tag depends on two words and two tags to the left and on two words to the right. So a word that is
exchanged at position i can change the tags of i-2, i-1 and i, and what those three see of the other words is
summed once. All options of all items of a call are scored together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from unfooled.errors import OracleError, ResourceError
from unfooled.resources import perceptron, store
from unfooled.resources.perceptron import START_TAGS, Ints, Weights

Index = npt.NDArray[np.intp]
Item: TypeAlias = tuple[tuple[str, ...], int, tuple[str, ...]]  # words, position, what to put there

# Penn Treebank tag → universal tag; all others are X.
UNIVERSAL: dict[str, str] = {
    tag: coarse
    for coarse, tags in {
        "NOUN": "NN NNS NNP NNPS",
        "VERB": "VB VBD VBG VBN VBP VBZ MD",
        "ADJ": "JJ JJR JJS",
        "ADV": "RB RBR RBS WRB",
        "PRON": "PRP PRP$ WP WP$",
        "DET": "DT PDT EX WDT",
        "ADP": "IN",
        "NUM": "CD",
        "CONJ": "CC",
        "PRT": "RP TO POS",
        ".": "! # $ '' ( ) , -LRB- -RRB- . : ? ``",
    }.items()
    for tag in tags.split()
}

_KEPT_WORDS = 40_000  # bounds the memory of word vectors: about 0.9 kB each
_ROWS = 2048  # options scored at once: their score arrays stay in the processor's cache

# Ids of what stands before and after the words. Positions beyond the second pad are never looked at.
_NOTHING, _BEFORE2, _BEFORE1, _AFTER1, _AFTER2 = range(5)
_PADS = ("", "-START-", "-START2-", "-END-", "-END2-")
# What a word contributes to the position itself and to the four around it.
_OWN, _TO_NEXT, _TO_NEXT2, _TO_PREV, _TO_PREV2 = range(5)


class _Windows(NamedTuple):
    """The five words that each row sees; put together only for the rare row that needs them."""

    flat: Index
    at: Index
    slot: int  # which of the five the row's own word fills
    put: Index

    def row(self, row: int) -> list[int]:
        at = int(self.at[row])
        window: list[int] = self.flat[at - 2 : at + 3].tolist()
        window[self.slot] = int(self.put[row])
        return window


class Tagger:
    """Tags word lists. Answers depend on the words alone; what it remembers only saves time."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        tags = weights.tags + START_TAGS
        self._prev_names = tags
        self._universal = np.array([UNIVERSAL.get(tag, "X") for tag in weights.tags], dtype=object)
        self._pair_scores = self._score_tag_pairs(tags)  # bias and the features of the two previous tags
        self._word_after_tag = self._index_word_after_tag(tags)  # row of "i-1 tag+i word", 0 without one
        self._forget()

    def tag(self, words: Sequence[str]) -> list[str]:
        """Penn Treebank tags."""
        return self.tag_all([words])[0]

    def tag_all(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Penn Treebank tags of many word lists, which go through the tagger side by side."""
        flat, first = self._lay_out(sentences)
        lengths = np.array([len(words) for words in sentences], dtype=np.intp)
        found = self._tag_left_to_right(flat, self._context_scores(flat), first, lengths)
        names = self._weights.tags
        return [
            [names[tag] for tag in found[start : start + length]]
            for start, length in zip(first.tolist(), lengths.tolist(), strict=True)
        ]

    def options(self, items: Sequence[Item]) -> list[tuple[str, ...]]:
        """For each item the universal tag of its word, then of each option in that word's place."""
        answers: list[tuple[str, ...]] = []
        for block in _blocks(items):
            answers += self._options(block)
        return answers

    def _options(self, items: Sequence[Item]) -> list[tuple[str, ...]]:
        flat, first = self._lay_out([words for words, _, _ in items], [options for _, _, options in items])
        at = first + np.array([index for _, index, _ in items], dtype=np.intp)
        words = flat[at]
        scores = self._context_scores(flat)
        # Tags more than two to the left never see the option.
        tags = self._tag_left_to_right(flat, scores, first, np.maximum(at - first - 2, 0))

        counts = [1 + len(options) for _, _, options in items]
        owner = np.repeat(np.arange(len(items)), counts)
        word_id = self._ids
        put = np.array([word_id[w] for ws, i, options in items for w in (ws[i], *options)], dtype=np.intp)

        prev2, prev = tags[at - 4][owner], tags[at - 3][owner]
        for distance, part in ((2, _TO_PREV2), (1, _TO_PREV), (0, _OWN)):
            here = at - distance
            around = scores[here] - self._vectors[words, part]
            total = around[owner]
            total += self._vectors[put, part]
            seen = _Windows(flat, here[owner], 2 + distance, put)
            centre = flat[here][owner] if distance else put
            prev2, prev = prev, self._choose(total, centre, prev, prev2, seen)

        names = self._universal[prev].tolist()
        ends = np.cumsum(counts).tolist()
        return [tuple(names[end - count : end]) for end, count in zip(ends, counts, strict=True)]

    def _choose(self, total: Ints, centre: Index, prev: Index, prev2: Index, seen: _Windows) -> Index:
        """The tag of each row, given what the words around say (`total`) and the two tags before."""
        total += self._pair_scores[prev, prev2]
        total += self._weights.table[self._word_after_tag[self._after_tag_row[centre], prev]]
        best: Index = total.argmax(axis=1)
        fixed = self._fixed[centre]
        tied = total == total.max(axis=1, keepdims=True)
        if np.count_nonzero(tied) != len(best):
            for row in np.flatnonzero((tied.sum(axis=1) > 1) & (fixed < 0)).tolist():
                best[row] = self._break_tie(seen.row(row), int(prev[row]), int(prev2[row]))
        return np.where(fixed >= 0, fixed, best)

    def _break_tie(self, window: list[int], prev: int, prev2: int) -> int:
        context = [self._normal[i] for i in window]
        word, tags = self._words[window[2]], self._prev_names
        return perceptron.float_best(
            self._weights, perceptron.features(word, context, tags[prev], tags[prev2])
        )

    def _tag_left_to_right(self, flat: Index, scores: Ints, first: Index, lengths: Index) -> Index:
        """Tag the first `lengths` words of each list; pads carry the tags that stand for the start."""
        tags: Index = np.maximum(self._fixed[flat], 0)
        order = np.argsort(-lengths, kind="stable")
        starts, sorted_lengths = first[order], -lengths[order]
        for step in range(int(lengths.max(initial=0))):
            at = starts[: np.searchsorted(sorted_lengths, -step)] + step
            seen = _Windows(flat, at, 2, flat[at])
            tags[at] = self._choose(scores[at], seen.put, tags[at - 1], tags[at - 2], seen)
        return tags

    def _context_scores(self, flat: Index) -> Ints:
        """What the words in and around each position say about its tag."""
        vectors = self._vectors
        scores: Ints = vectors[flat, _OWN]
        scores[1:] += vectors[flat[:-1], _TO_NEXT]
        scores[2:] += vectors[flat[:-2], _TO_NEXT2]
        scores[:-1] += vectors[flat[1:], _TO_PREV]
        scores[:-2] += vectors[flat[2:], _TO_PREV2]
        return scores

    def _lay_out(
        self, sentences: Sequence[Sequence[str]], more: Sequence[Sequence[str]] = ()
    ) -> tuple[Index, Index]:
        """All words as ids in one row, with pads between the lists, and where each list starts."""
        self._learn(sentences, more)
        word_id = self._ids
        flat: list[int] = []
        first: list[int] = []
        for words in sentences:
            flat += (_NOTHING, _NOTHING, _BEFORE2, _BEFORE1)
            first.append(len(flat))
            flat += [word_id[word] for word in words]
            flat += (_AFTER1, _AFTER2)
        return np.array(flat, dtype=np.intp), np.array(first, dtype=np.intp)

    def _learn(self, *groups: Sequence[Sequence[str]]) -> None:
        """Make sure that every word has an id. May start afresh, so ids hold for one call only."""
        new = {word for group in groups for words in group for word in words if word not in self._ids}
        if not new:
            return
        if len(self._words) + len(new) > _KEPT_WORDS:
            self._forget()
            new = {word for group in groups for words in group for word in words}
        for word in new:
            self._add(word, perceptron.normal(word), self._weights.tagdict.get(word, -1))
            self._ids[word] = len(self._words) - 1

    def _forget(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []
        self._normal: list[str] = []
        width = len(self._weights.tags)
        self._vectors: Ints = np.zeros((1024, 5, width), dtype=np.int32)
        self._fixed: Index = np.zeros(1024, dtype=np.intp)  # the word's only tag, or -1
        self._after_tag_row: Index = np.zeros(1024, dtype=np.intp)
        for pad, fixed in zip(_PADS, (0, width + 1, width, 0, 0), strict=True):
            self._add("", pad, fixed)

    def _add(self, word: str, normal: str, fixed: int) -> None:
        at = len(self._words)
        if at == len(self._fixed):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._fixed = np.concatenate([self._fixed, np.zeros_like(self._fixed)])
            self._after_tag_row = np.concatenate([self._after_tag_row, np.zeros_like(self._after_tag_row)])
        self._words.append(word)
        self._normal.append(normal)
        self._fixed[at] = fixed
        self._after_tag_row[at] = self._after_tag_rows.get(normal, 0)
        vector, suffix = self._weights.vector, normal[-3:]
        self._vectors[at, _OWN] = vector(f"i word {normal}", f"i suffix {word[-3:]}", f"i pref1 {word[:1]}")
        self._vectors[at, _TO_NEXT] = vector(f"i-1 word {normal}", f"i-1 suffix {suffix}")
        self._vectors[at, _TO_NEXT2] = vector(f"i-2 word {normal}")
        self._vectors[at, _TO_PREV] = vector(f"i+1 word {normal}", f"i+1 suffix {suffix}")
        self._vectors[at, _TO_PREV2] = vector(f"i+2 word {normal}")

    def _score_tag_pairs(self, tags: Sequence[str]) -> Ints:
        return np.array(
            [
                [
                    self._weights.vector("bias", f"i-1 tag {a}", f"i-2 tag {b}", f"i tag+i-2 tag {a} {b}")
                    for b in tags
                ]
                for a in tags
            ],
            dtype=np.int32,
        )

    def _index_word_after_tag(self, tags: Sequence[str]) -> Ints:
        column = {tag: i for i, tag in enumerate(tags)}
        self._after_tag_rows: dict[str, int] = {}
        prefix = "i-1 tag+i word "
        found: list[tuple[int, int, int]] = []
        for feature, row in self._weights.rows.items():
            if feature.startswith(prefix):
                tag, _, word = feature[len(prefix) :].partition(" ")
                at = self._after_tag_rows.setdefault(word, len(self._after_tag_rows) + 1)
                found.append((at, column[tag], row))
        table = np.zeros((len(self._after_tag_rows) + 1, len(tags)), dtype=np.int32)
        for at, tag_column, row in found:
            table[at, tag_column] = row
        return table


def _blocks(items: Sequence[Item]) -> Iterator[list[Item]]:
    block: list[Item] = []
    rows = 0
    for item in items:
        words, index, options = item
        if not 0 <= index < len(words):
            raise OracleError(f"position {index} is outside of the {len(words)} words to tag")
        if rows and rows + len(options) >= _ROWS:
            yield block
            block, rows = [], 0
        block.append(item)
        rows += 1 + len(options)
    if block:
        yield block


class TagOracle:
    """Answers `tag` questions: item (words, index, options) → universal tags of the word and each option."""

    batch_size = 1024

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger

    def __call__(self, items: Sequence[Item], /) -> list[tuple[str, ...]]:
        return self._tagger.options(items)


@lru_cache(maxsize=2)
def _load(folder: Path) -> Tagger:
    return Tagger(perceptron.load(folder))


def load_tagger() -> Tagger:
    """The default tagger; its weights are read once per process."""
    return _load(store.path("perceptron-tagger"))


def open_tagger(variant: str = "") -> TagOracle:
    """Variant "" or "perceptron-tagger" is the default; else a folder with the same files."""
    if variant in ("", "perceptron-tagger"):
        return TagOracle(load_tagger())
    folder = Path(variant).expanduser()
    if not folder.is_dir():
        raise ResourceError(
            f"there is no tagger called {variant!r}, and no such folder",
            'use "perceptron-tagger", or a folder with the same files',
        )
    try:
        return TagOracle(_load(folder))
    except OSError as error:
        raise ResourceError(
            f"the folder {variant} holds no tagger: {error}",
            f"it needs the file {perceptron.PICKLE} or {perceptron.ARRAYS}",
        ) from error
