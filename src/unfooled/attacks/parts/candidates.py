"""Which words may stand in for a word."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking, require_counts
from unfooled.data.language import ENGLISH
from unfooled.text import Text, match_case

Item = TypeVar("Item")


class Candidates(Protocol):
    """A source that changes the spelling of any word says so with `spells = True`; one whose words are all of
    one language names it in `language`. Both may be left out."""

    def propose(self, a: Attempt, text: Text, index: int, /) -> Program[list[str]]:
        """Distinct replacements for the word at `index`, the best first, never the word itself."""
        ...


@dataclass(frozen=True)
class Neighbours:
    """The nearest words in a vector space, in the casing of the word they replace."""

    table: str = "counter-fitted"
    most: int = 50
    min_cosine: float = 0.5
    asks = asking("neighbours:{self.table}")

    def __post_init__(self) -> None:
        require_counts(self, "most")

    @property
    def language(self) -> str:
        from unfooled.resources.neighbours import DEFAULT

        return ENGLISH if self.table == DEFAULT else ""

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        (near,) = yield from ask(f"neighbours:{self.table}", [(word.lower(), self.most, self.min_cosine)])
        return [
            option
            for option in dict.fromkeys(match_case(near_word, word) for near_word in near)
            if option != word
        ]


@dataclass(frozen=True)
class CharacterEdits:
    """One random edit of each kind: neighbouring letters swapped, a letter replaced, dropped, added."""

    spells: ClassVar[bool] = True
    kinds: tuple[str, ...] = ("swap", "substitute", "delete", "insert")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        made = (edit_characters(word, kind, a.rng) for kind in self.kinds)
        return [changed for changed in dict.fromkeys(made) if changed != word and changed]
        yield  # no question is needed, but a program is a generator


@dataclass(frozen=True)
class AnyOf:
    """The replacements of several sources, those of the first one first."""

    sources: tuple[Candidates, ...]

    @property
    def spells(self) -> bool:
        return any(getattr(source, "spells", False) for source in self.sources)

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        found: list[str] = []
        for source in self.sources:
            found += yield from source.propose(a, text, index)
        return list(dict.fromkeys(found))


def edit_characters(word: str, kind: str, rng: np.random.Generator) -> str:
    """`word` with one random edit; unchanged where the word is too short for it."""
    n = len(word)
    if kind == "insert":
        at = int(rng.integers(n + 1))
        return added(word, at, _letter(rng))
    if kind == "substitute" and n:
        at = int(rng.integers(n))
        return exchanged(word, at, _letter(rng))
    if n < 2:
        return word
    if kind == "swap":
        return swapped(word, int(rng.integers(n - 1)))
    if kind == "delete":
        return dropped(word, int(rng.integers(n)))
    raise ValueError(f"no character edit is called {kind!r}")


def _letter(rng: np.random.Generator) -> str:
    return drawn(string.ascii_letters, rng)


# -- one edit at one place -------------------------------------------------------------------------


def swapped(word: str, at: int) -> str:
    """The character and the one behind it change places."""
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def dropped(word: str, at: int) -> str:
    return word[:at] + word[at + 1 :]


def added(word: str, at: int, characters: str) -> str:
    """With more characters before the one at that place."""
    return word[:at] + characters + word[at:]


def exchanged(word: str, at: int, characters: str) -> str:
    """With other characters in the place of one."""
    return word[:at] + characters + word[at + 1 :]


def drawn(options: Sequence[Item], rng: np.random.Generator) -> Item:
    return options[int(rng.integers(len(options)))]
