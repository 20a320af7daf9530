"""Which tokens stand for which words: matched by character offsets on the original string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import TextValue
from unfooled.text import Text

Span: TypeAlias = tuple[int, int]  # first character, and the one behind the last


class Marked(NamedTuple):
    """What a victim reads, and where in it the words stand that are asked about.

    Hashable, and everything that an answer depends on: an oracle takes it as (part of) an item. The spans are
    kept because an edited text may hold words that nobody would find again in its string ("f!lm", "so so").
    """

    value: TextValue
    field: int
    spans: tuple[Span, ...]

    @property
    def words(self) -> tuple[str, ...]:
        string = self.value if isinstance(self.value, str) else self.value[self.field]
        return tuple(string[start:end] for start, end in self.spans)


Readable: TypeAlias = Text | Marked | TextValue


def mark(text: Readable) -> Marked:
    """The words of a `Text`'s editable field; of a plain string; of the last field of a plain tuple."""
    if isinstance(text, Marked):
        return text
    if not isinstance(text, Text):
        text = Text(text if isinstance(text, str) else {str(i): part for i, part in enumerate(text)})
    starts = text.starts
    spans = tuple(zip(starts, map(add, starts, map(len, text.words)), strict=True))
    return Marked(text.value, text.field, spans)


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
    mine = np.array([one == field for one in fields], dtype=bool)
    mine &= where[:, 1] > where[:, 0]  # a token that stands for no character belongs to no word
    edges = np.asarray(spans, dtype=np.intp).reshape(-1, 2)
    # Words are in order and do not overlap, so a token meets a run of them.
    first = np.searchsorted(edges[:, 1], where[:, 0], side="right")
    behind = np.searchsorted(edges[:, 0], where[:, 1], side="left")
    counts = np.where(mine, np.maximum(behind - first, 0), 0)
    tokens = np.repeat(np.arange(len(where)), counts)
    runs = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
    words = first[tokens] + runs
    pieces = np.bincount(words, minlength=len(edges)).astype(np.int64)
    return Alignment(len(where), pieces, tokens, words)
