"""Texts of several lengths in one pass, without padding: their tokens one behind the other.

Nearly all of a transformer's work, its linear layers, treats every token alone; only attention looks from
token to token. So a pass may hold any lengths, if attention is computed for each length by itself. A pass of
few tokens costs up to three times as much per token as a full one, and an attack asks about many lengths.

Whatever is said of a token is computed as in a pass of its own length, so scores are the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """So many texts of one length, one behind the other."""

    texts: int
    length: int


def stretches(lengths: Sequence[int]) -> list[Stretch]:
    return [Stretch(len(list(same)), length) for length, same in groupby(lengths)]


def attended(
    attention: Any, query: Any, key: Any, value: Any, *, parts: Sequence[Stretch], **how: Any
) -> Any:
    """`attention` over [1, heads, tokens, width], in which each text sees itself alone."""
    import torch

    _, heads, tokens, width = query.shape
    rows = [states.transpose(1, 2)[0] for states in (query, key, value)]
    found = torch.empty(tokens, heads, width, dtype=value.dtype, device=value.device)
    first = 0
    for texts, length in parts:
        last = first + texts * length
        own = (row[first:last].view(texts, length, heads, width).transpose(1, 2) for row in rows)
        found[first:last].view(texts, length, heads, width).copy_(attention(*own, **how).transpose(1, 2))
        first = last
    return found[None].transpose(1, 2)
