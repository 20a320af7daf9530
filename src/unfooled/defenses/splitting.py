"""Words in letters that have no blanks between them, by a list of English words and their frequencies.

The likeliest way to split is found by dynamic programming: each known word costs the logarithm of how rare
it is, each letter in an unknown one costs more than any known word of its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from unfooled.errors import ResourceError
from unfooled.resources.english import NAME, open_speller

LONGEST = 20  # letters of a word
MOST = 2000  # letters that are split; more is no message
_ALL = 2.0e10  # of a word that is every word of the list; only the order matters
_UNKNOWN = 12.0  # of a letter
_RUN = re.compile(r"(?<![\w@#/.])[A-Za-z]{13,}(?![\w@/])")
_SINGLE = ("a", "i")


class Splitter:
    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._split = lru_cache(maxsize=1 << 14)(self._find)

    def run(self, letters: str) -> str:
        """With blanks between the words found."""
        return self._split(letters) if len(letters) <= MOST else letters

    def long_words(self, text: str) -> str:
        """Unknown words of great length, split where all of their parts are known."""
        return _RUN.sub(lambda word: self._known(word.group()), text)

    def _known(self, word: str) -> str:
        if self._count(word.lower()) or len(word) > MOST:
            return word
        parts = self._split(word)
        short = sum(len(part) < 3 for part in parts.split()) > len(parts.split()) / 2
        return word if short or not all(self._count(part.lower()) for part in parts.split()) else parts

    def _find(self, letters: str) -> str:
        # For the first n letters: the least cost, and where their last word begins.
        best: list[tuple[float, int]] = [(0.0, 0)]
        lower = letters.lower()
        for end in range(1, len(letters) + 1):
            begins = range(max(0, end - LONGEST), end)
            best.append(min((best[begin][0] + self._cost(lower[begin:end]), begin) for begin in begins))
        words, end = [], len(letters)
        while end:
            words.append(letters[best[end][1] : end])
            end = best[end][1]
        return " ".join(reversed(words))

    def _cost(self, word: str) -> float:
        count = self._count(word) if len(word) > 1 or word in _SINGLE else 0
        return math.log(_ALL / count) if count else _UNKNOWN * len(word) + 2.0


@lru_cache(maxsize=1)
def _open() -> Splitter:
    return Splitter(open_speller().count)


def open_splitter(table: str) -> Splitter:
    if table != NAME:
        raise ResourceError(f"there is no list of words called {table!r}", f"use table={NAME}")
    return _open()
