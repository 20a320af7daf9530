"""Grouping token sequences so that next to no padding is computed, and counting what was computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UNPADDED = 64  # tokens; shorter sequences are many of each length


@dataclass(slots=True)
class Meter:
    """What a model computed so far: numbers that do not jitter, and the seconds beside them."""

    calls: int = 0
    items: int = 0
    tokens: int = 0
    padding: int = 0
    seconds: float = 0.0
    largest: int = 0  # tokens of the largest pass, padding included
    out_of_memory: int = 0  # passes that did not fit into memory and were halved

    def add(self, items: int, tokens: int, padding: int, seconds: float) -> None:
        self.calls += 1
        self.items += items
        self.tokens += tokens
        self.padding += padding
        self.seconds += seconds


def same_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield lists of indices whose sequences all have the same length, at most `max_tokens` tokens each.

    Equal lengths mean no padding at all. They also make a text's scores independent of its neighbours in
    the batch: matrix products give each row the same bits for any number of rows above a handful, while a
    row padded to the longest one beside it would change with its neighbours. That makes runs repeatable.
    """
    for members, _ in like_length(lengths, max_tokens, most=0):
        yield members


def like_length(lengths: Sequence[int], max_tokens: int, *, most: int) -> Iterator[tuple[list[int], int]]:
    """Yield lists of indices and the width that their sequences are to be filled up to with padding.

    The width of a sequence follows from its own length alone, so its neighbours still do not matter. Those
    that need no padding stand apart: without a mask a model may take another path.
    """
    groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        width = padded_length(length, most)
        groups[width, width > length].append(index)
    for width, padded in sorted(groups, reverse=True):
        members = groups[width, padded]
        size = max(1, max_tokens // max(1, width))
        for start in range(0, len(members), size):
            yield members[start : start + size], width


def side_by_side(lengths: Sequence[int], max_tokens: int) -> Iterator[tuple[list[int], int]]:
    """Yield lists of indices of at most `max_tokens` tokens together, and the mean length, rounded up.

    For models that compute sequences of several lengths at once, without padding.
    """
    group: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if group and tokens + lengths[index] > max_tokens:
            yield group, -(-tokens // len(group))
            group, tokens = [], 0
        group.append(index)
        tokens += lengths[index]
    if group:
        yield group, -(-tokens // len(group))


def padded_length(length: int, most: int) -> int:
    """Itself for a short sequence; else the next multiple of up to a tenth of it, but not above `most`."""
    if length <= UNPADDED:
        return length
    step = 1 << ((length // 10).bit_length() - 1)
    return max(length, min(most, -(-length // step) * step))
