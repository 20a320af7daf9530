"""Grouping token sequences so that no forward pass computes padding, and counting what was computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Meter:
    """What a model computed so far: numbers that do not jitter, and the seconds beside them."""

    calls: int = 0
    items: int = 0
    tokens: int = 0
    padding: int = 0
    seconds: float = 0.0

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
    padded row would change with the longest row beside it. That is what makes runs repeatable.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    for length in sorted(groups, reverse=True):
        members = groups[length]
        size = max(1, max_tokens // max(1, length))
        for start in range(0, len(members), size):
            yield members[start : start + size]
