"""Where words lie between bad and good, by the direction from words of blame to words of praise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from unfooled.resources.vectors import load_word_vectors, unit_rows

# The ends of the axis of polarity: what is good and what is bad, whatever is spoken of.
_GOOD = """good great excellent wonderful superb fantastic enjoyable brilliant delightful best love loved
beautiful amazing perfect interesting funny"""
_BAD = """bad terrible awful horrible poor worst boring dreadful dull hate hated ugly disappointing waste
stupid annoying lame"""


@dataclass(frozen=True, eq=False)
class WordLookup:
    """Unit vectors of words, and where each word lies between bad and good."""

    index: dict[str, int]
    rows: npt.NDArray[np.float32]

    @cached_property
    def polarity(self) -> npt.NDArray[np.float32]:
        good, bad = (
            self.rows[[self.index[word] for word in words.split() if word in self.index]].mean(axis=0)
            for words in (_GOOD, _BAD)
        )
        axis = good - bad
        values: npt.NDArray[np.float32] = self.rows @ (axis / max(float(np.linalg.norm(axis)), 1e-9))
        return values

    def cosine(self, word: str, other: str) -> float:
        """0 where one of them is not known: nothing speaks for the same meaning."""
        place, other_place = self.index.get(word.lower()), self.index.get(other.lower())
        return (
            0.0 if place is None or other_place is None else float(self.rows[place] @ self.rows[other_place])
        )

    def polarity_of(self, word: str) -> float:
        place = self.index.get(word.lower())
        return 0.0 if place is None else float(self.polarity[place])


@lru_cache(maxsize=1)
def open_word_lookup(name: str) -> WordLookup:
    """Of word vectors by their name or file; opened once per process."""
    words, matrix = load_word_vectors(name)
    return WordLookup({word: i for i, word in enumerate(words)}, unit_rows(np.asarray(matrix)))
