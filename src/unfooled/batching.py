"""Grouping token sequences so that next to no padding is computed, and counting what was computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MIXED = -1  # the width of a pass of several lengths
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


def mixed_length(
    lengths: Sequence[int], max_tokens: int, *, most: int, least: int
) -> Iterator[tuple[list[int], int]]:
    """As `like_length`, but groups of fewer than `least` tokens without padding share passes: those have a
    width of MIXED and hold texts in the order of their length."""
    shared: list[int] = []
    tokens = 0
    for members, width in like_length(lengths, max_tokens, most=most):
        own = len(members) * width
        if own >= least or any(lengths[i] < width for i in members):
            yield members, width
            continue
        if tokens + own > max_tokens:
            yield _uniform(shared, lengths)
            shared, tokens = [], 0
        shared += members
        tokens += own
    if shared:
        yield _uniform(shared, lengths)


def _uniform(members: list[int], lengths: Sequence[int]) -> tuple[list[int], int]:
    widths = {lengths[i] for i in members}
    return members, widths.pop() if len(widths) == 1 else MIXED


def padded_length(length: int, most: int) -> int:
    """Itself for a short sequence; else the next multiple of up to a tenth of it, but not above `most`."""
    if length <= UNPADDED:
        return length
    step = 1 << ((length // 10).bit_length() - 1)
    return max(length, min(most, -(-length // step) * step))


def up_to(most: int, items: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in their order, as many together as do not exceed `most`; a larger one stands alone."""
    block: list[T] = []
    total = 0
    for item in items:
        more = size(item)
        if block and total + more > most:
            yield block
            block, total = [], 0
        block.append(item)
        total += more
    if block:
        yield block
