"""Which words may stand in for a word."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.data.language import ENGLISH
from unfooled.text import Text, match_case


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

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError("most is at least 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"neighbours:{self.table}",)

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


def edit_characters(word: str, kind: str, rng: np.random.Generator) -> str:
    """`word` with one random edit; unchanged where the word is too short for it."""
    n = len(word)
    if kind == "insert":
        at = int(rng.integers(n + 1))
        return word[:at] + _letter(rng) + word[at:]
    if kind == "substitute" and n:
        at = int(rng.integers(n))
        return word[:at] + _letter(rng) + word[at + 1 :]
    if n < 2:
        return word
    if kind == "swap":
        at = int(rng.integers(n - 1))
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == "delete":
        at = int(rng.integers(n))
        return word[:at] + word[at + 1 :]
    raise ValueError(f"no character edit is called {kind!r}")


def _letter(rng: np.random.Generator) -> str:
    return string.ascii_letters[int(rng.integers(len(string.ascii_letters)))]
