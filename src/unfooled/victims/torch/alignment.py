"""Which tokens stand for which words: matched by character offsets on the original string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.questions import Span


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Meetings of tokens and words: token `tokens[m]` covers a character of word `words[m]`.

    A word may have several pieces. It has none when it lies behind the cut of a long text, or when the
    tokenizer drops all its characters. A token that spans two words is a piece of both.
    """

    length: int  # tokens of the whole sequence, special ones included
    pieces: NDArray[np.int64]  # [words]
    tokens: NDArray[np.intp]
    words: NDArray[np.intp]

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """[..., tokens, dim] summed to [..., words, dim]; zero for a word without pieces."""
        matrix = np.zeros((len(self.pieces), self.length), dtype=values.dtype)
        matrix[self.words, self.tokens] = 1
        return np.asarray(matrix @ values)

    def mean(self, values: NDArray[Any]) -> NDArray[Any]:
        """[..., tokens, dim] averaged to [..., words, dim]; zero for a word without pieces."""
        share = np.maximum(self.pieces, 1).astype(values.dtype)
        return np.asarray(self.total(values) / share[:, None])


def align(
    spans: Sequence[Span], offsets: Sequence[Span], fields: Sequence[int | None], field: int
) -> Alignment:
    """`offsets` are the tokens' characters in their field, `fields` which field each token is from."""
    where = np.asarray(offsets, dtype=np.intp).reshape(-1, 2)
    return align_own(spans, where, np.array([number == field for number in fields], dtype=bool))


def align_own(spans: Sequence[Span], where: NDArray[Any], own: NDArray[np.bool_] | bool = True) -> Alignment:
    """`where` are the tokens' characters; `own` says of which tokens these are in the words' field."""
    some = own & (where[:, 1] > where[:, 0])  # a token that stands for no character belongs to no word
    edges = np.fromiter(chain.from_iterable(spans), dtype=np.intp, count=2 * len(spans)).reshape(-1, 2)
    # Words are in order and do not overlap, so a token meets a run of them.
    first = np.searchsorted(edges[:, 1], where[:, 0], side="right")
    behind = np.searchsorted(edges[:, 0], where[:, 1], side="left")
    counts = np.where(some, np.maximum(behind - first, 0), 0)
    tokens = np.repeat(np.arange(len(where)), counts)
    runs = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
    words = first[tokens] + runs
    pieces = np.bincount(words, minlength=len(edges)).astype(np.int64)
    return Alignment(len(where), pieces, tokens, words)
