"""Attention before and after an attack, on the words (and other tokens) that both texts have.

The pieces of a word are put together: attention *to* a word is summed over its pieces, attention *from* a
word is averaged over them. Special tokens, punctuation and the other field of a pair stay single tokens.

How far two distributions p and q over the same tokens are apart is their total variation ½ Σ |p − q|: 0 where
they are equal, 1 where they have nothing in common. It is the share of the attention that has moved. Tokens
that only one side has (inserted or deleted words) are left out and the rest is scaled to sum to 1 again; how
much attention they had is reported beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfooled.internals.pairs import TextPair
from unfooled.metrics.summary import Mean
from unfooled.victims.torch.whitebox import AttentionMaps

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Column:
    """A word or token in a comparison; None on the side that lacks it."""

    before: str | None
    after: str | None
    is_word: bool
    edited: bool  # replaced, inserted or deleted


@dataclass(frozen=True, slots=True)
class LayerShift:
    """One example and one layer."""

    key: int
    layer: int  # from 1
    score: float  # of the attention each token receives, mean of heads and queries: the papers' score
    words: float  # the same over words alone, without special tokens and punctuation
    maps: float  # of each token's own attention, mean over heads and tokens
    unpaired_before: float  # attention on words that were deleted
    unpaired_after: float  # attention on words that were inserted


class Side(NamedTuple):
    """One layer on one side."""

    scores: Numbers  # [heads, columns]: received by each, mean over all query tokens
    maps: Numbers  # [heads, queries, columns]


@dataclass(frozen=True, slots=True, eq=False)
class ExampleAttention:
    """Everything of one example, for pictures. nan stands where a side has no such token."""

    key: int
    columns: tuple[Column, ...]
    before: tuple[Side, ...]  # per layer
    after: tuple[Side, ...]

    @property
    def pools(self) -> bool:
        """One query for the whole text, as in the attentive LSTM, and not one per token."""
        return bool(self.before[0].maps.shape[1] == 1)


@dataclass(frozen=True, eq=False)
class Attention:
    """The whole run: means over its examples per layer, and the examples chosen for pictures."""

    shifts: tuple[LayerShift, ...]
    examples: tuple[ExampleAttention, ...]
    pools: bool  # one query for the whole text, and not one per token

    @property
    def layers(self) -> int:
        return max((shift.layer for shift in self.shifts), default=0)

    def mean(self, what: str, layer: int | None = None) -> Mean:
        """Of `score`, `words`, `maps` …, over examples; without a layer, of each example's mean of layers."""
        chosen = [shift for shift in self.shifts if layer in (None, shift.layer)]
        per_key: dict[int, list[float]] = {}
        for shift in chosen:
            if np.isfinite(value := float(getattr(shift, what))):
                per_key.setdefault(shift.key, []).append(value)
        return Mean.of([float(np.mean(values)) for values in per_key.values()])


def compare_attention(pair: TextPair, before: AttentionMaps, after: AttentionMaps) -> ExampleAttention:
    """Both sides on one axis."""
    first, first_units = _units(before)
    then, then_units = _units(after)
    places = _merged(first_units, then_units, pair)
    kept = set(pair.origin)
    columns = []
    for i, j in places:
        left = None if i is None else first_units[i]
        right = None if j is None else then_units[j]
        word = -1 if left is None else left[1]
        new = right is not None and right[1] >= 0 and pair.origin[right[1]] < 0
        gone = word >= 0 and word not in kept
        columns.append(
            Column(
                None if left is None else left[0],
                None if right is None else right[0],
                word >= 0 or new,
                word in pair.edited or new or gone,
            )
        )
    return ExampleAttention(
        pair.key,
        tuple(columns),
        tuple(_spread(layer, first, [i for i, _ in places]) for layer in before.maps),
        tuple(_spread(layer, then, [j for _, j in places]) for layer in after.maps),
    )


def shifts_of(example: ExampleAttention) -> list[LayerShift]:
    shared = np.array([c.before is not None and c.after is not None for c in example.columns], dtype=bool)
    words = shared & np.array([c.is_word for c in example.columns], dtype=bool)
    rows = slice(None) if example.pools else shared
    found = []
    for number, (before, after) in enumerate(zip(example.before, example.after, strict=True), 1):
        first, then = before.scores.mean(axis=0), after.scores.mean(axis=0)
        found.append(
            LayerShift(
                example.key,
                number,
                _moved(first[shared], then[shared]),
                _moved(first[words], then[words]),
                _moved(before.maps[:, rows][..., shared], after.maps[:, rows][..., shared]),
                float(np.nansum(first[~shared])),
                float(np.nansum(then[~shared])),
            )
        )
    return found


def _moved(before: Numbers, after: Numbers) -> float:
    """Mean total variation of the distributions along the last axis, each scaled to sum to 1."""
    if before.shape[-1] == 0:
        return float("nan")
    sums = before.sum(axis=-1, keepdims=True), after.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = 0.5 * np.abs(before / sums[0] - after / sums[1]).sum(axis=-1)
    # A token that only looked at what the other side lacks has nothing to compare.
    kept = distances[np.isfinite(distances)]
    return float(kept.mean()) if kept.size else float("nan")


def _units(maps: AttentionMaps) -> tuple[NDArray[np.intp], list[tuple[str, int]]]:
    """The unit of each token, and each unit's label and word (-1: a single token that is no word)."""
    units: list[tuple[str, int]] = []
    at: dict[int, int] = {}
    unit_of = np.empty(len(maps.tokens), dtype=np.intp)
    for token, (label, word) in enumerate(zip(maps.tokens, maps.word_of.tolist(), strict=True)):
        if word < 0 or word not in at:
            if word >= 0:
                at[word] = len(units)
            units.append((label if word < 0 else maps.words[word], word))
            unit_of[token] = len(units) - 1
        else:
            unit_of[token] = at[word]
    return unit_of, units


def _merged(
    before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]], pair: TextPair
) -> list[tuple[int | None, int | None]]:
    """Units side by side, in reading order. Shared words are anchors; the tokens between them are matched."""
    first = {word: at for at, (_, word) in enumerate(before) if word >= 0}
    then = {word: at for at, (_, word) in enumerate(after) if word >= 0}
    anchors = [(first[i], then[j]) for i, j in pair.shared if i in first and j in then]
    places: list[tuple[int | None, int | None]] = []
    left = right = 0
    for i, j in (*anchors, (len(before), len(after))):
        places += _between(before, after, range(left, i), range(right, j))
        if i < len(before):
            places.append((i, j))
        left, right = i + 1, j + 1
    return places


def _between(
    before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]], left: range, right: range
) -> list[tuple[int | None, int | None]]:
    # Words without a partner must not be matched by their spelling.
    a = [before[i] if before[i][1] < 0 else ("", i) for i in left]
    b = [after[j] if after[j][1] < 0 else ("", -2 - j) for j in right]
    places: list[tuple[int | None, int | None]] = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            places += zip(left[i:i_end], right[j:j_end], strict=True)
        else:
            places += [(place, None) for place in left[i:i_end]]
            places += [(None, place) for place in right[j:j_end]]
    return places


def _spread(layer: NDArray[np.float32], unit_of: NDArray[np.intp], places: list[int | None]) -> Side:
    """[heads, queries, tokens] on the common columns; nan where this side has no such column."""
    tokens = len(unit_of)
    member = np.zeros((tokens, int(unit_of.max(initial=-1)) + 1))
    member[np.arange(tokens), unit_of] = 1.0
    values = layer.astype(np.float64) @ member
    to = [at for at, unit in enumerate(places) if unit is not None]
    source = [unit for unit in places if unit is not None]
    heads, queries = values.shape[:2]
    scores = np.full((heads, len(places)), np.nan)
    scores[:, to] = values.mean(axis=1)[:, source]
    if queries != tokens or tokens == 1:
        pooled = np.full((heads, queries, len(places)), np.nan)
        pooled[:, :, to] = values[:, :, source]
        return Side(scores, pooled)
    # One query per token: a word's is the mean of its pieces'.
    mean = (member / np.maximum(member.sum(axis=0), 1.0)).T
    square = np.full((heads, len(places), len(places)), np.nan)
    square[np.ix_(range(heads), to, to)] = (mean @ values)[:, source][:, :, source]
    return Side(scores, square)
