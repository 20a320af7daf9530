"""English words with their frequencies, and the likeliest intended word for a misspelled one."""

from __future__ import annotations

import gzip
import json
import string
from collections.abc import Mapping
from functools import lru_cache

from unfooled.errors import ResourceError
from unfooled.resources import store

NAME = "english-words"
_ENDINGS, _BEGINNINGS = ("ed", "er", "ers", "ing", "ish", "less", "ly", "s", "y"), ("over", "re", "un")
_COMMON = 10_000  # occurrences from which a word is common enough to be what was meant


class Speller:
    """Corrects words that are one edit away from a common one. Made for short informal texts: cautious."""

    def __init__(self, counts: Mapping[str, int], *, common: int = _COMMON, shortest: int = 5) -> None:
        self._counts = counts
        self._common = common
        self._shortest = shortest

    def knows(self, word: str) -> bool:
        return word.lower() in self._counts

    def knows_parts(self, word: str) -> bool:
        """Whether the word is a known one with a common ending or beginning: texting, replane."""
        stems = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
        stems += [word.removeprefix(start) for start in _BEGINNINGS if word.startswith(start)]
        return any(len(stem) > 2 and self.knows(stem) for stem in stems)

    def count(self, word: str) -> int:
        return self._counts.get(word.lower(), 0)

    def correct(self, word: str) -> str:
        """The commonest word one edit away; the word itself where it is known, short, or there is none."""
        if len(word) < self._shortest or not (word.isascii() and word.isalpha()):
            return word
        if self.knows(word) or self.knows_parts(word):
            return word
        best, most = word, self._common - 1
        for other in sorted(_one_edit_away(word.lower())):
            if (count := self._counts.get(other, 0)) > most:
                best, most = other, count
        return best


def open_speller() -> Speller:
    """The resource `english-words`."""
    return _read(str(store.path(NAME) / "en.json.gz"))


@lru_cache(maxsize=1)
def _read(path: str) -> Speller:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            counts: dict[str, int] = json.load(file)
    except (OSError, ValueError) as error:
        raise ResourceError(
            f"the word list {path} cannot be read: {error}", f"run: unfooled resources get {NAME}"
        ) from error
    return Speller(counts)


def _one_edit_away(word: str) -> set[str]:
    """A letter dropped, two neighbours swapped, a letter replaced or added; the first letter stays."""
    found: set[str] = set()
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        found.update(head + letter + tail for letter in string.ascii_lowercase)
        if tail:
            found.add(head + tail[1:])
            found.update(head + letter + tail[1:] for letter in string.ascii_lowercase)
        if len(tail) > 1:
            found.add(head + tail[1] + tail[0] + tail[2:])
    found.discard(word)
    return found
