"""Charmer: few character edits anywhere, found by a cheap look at every place.

Abad Rocamora, Wu, Liu, Chrysos, Cevher: *Revisiting Character-level Adversarial Attacks for Language Models*,
ICML 2024, arXiv:2405.04346.

    1. Put a blank at each place of the text: between two characters, or instead of one (where a blank stands,
       take it away). Keep the 20 places where that raises the margin loss most.
    2. At each of these try every character of an alphabet, and deletion.
    3. Take the best text; repeat up to 10 times, until the label flips.

Versions
    @paper    the steps above: 20 places, 10 edits.
    @pruthi   their setting for robust word recognition: each word once, words of four letters and more, first
              and last letters kept, a to z only.

Costs 2n + 1 + 20 times the alphabet per edit, n the characters of the text: all are asked in a few batches.

Differences from the authors' code
    - The alphabet is a setting (lower-case letters, digits, ASCII punctuation and the blank), not all
      characters of the test set.
    - Places are those of words and the blank between two words; runs of punctuation stay as they are, and a
      word keeps at least one character.
    - The margin is that of probabilities, in place of the logits, which not every victim gives.
    - Their variant that optimises a distribution over candidates is off in their scripts, and left out.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from unfooled.attacks.parts.candidates import added, exchanged
from unfooled.attacks.parts.goals import Margin
from unfooled.attacks.parts.importance import in_portions
from unfooled.attacks.parts.search import greedy
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.text import Text

ALPHABET = string.ascii_lowercase + string.digits + string.punctuation + " "


class Place(NamedTuple):
    """Before the character `at` of a word, or (`instead`) in its stead; behind the last one it is the blank
    that the next word follows."""

    word: int
    at: int
    instead: bool

    def takes(self, text: Text, character: str) -> bool:
        """Whether it is an edit to put the character there, or (no character) to take away what is there."""
        if not self.instead:
            return bool(character)
        return character != self.held(text) and bool(character or self.joins(text) or self._word(text)[1:])

    def put(self, text: Text, character: str) -> Text:
        word = self._word(text)
        if self.joins(text):
            joined = word + character + text.words[self.word + 1]
            return text.replace(self.word, joined).delete(self.word + 1)
        if not self.instead:
            return text.replace(self.word, added(word, self.at, character))
        return text.replace(self.word, exchanged(word, self.at, character))

    def held(self, text: Text) -> str:
        """The character that stands there."""
        return " " if self.joins(text) else self._word(text)[self.at] if self.instead else ""

    def joins(self, text: Text) -> bool:
        return self.instead and self.at == len(self._word(text))

    def _word(self, text: Text) -> str:
        return text.words[self.word]


@dataclass(frozen=True, kw_only=True)
class BestCharacters:
    """Up to `most` edits of single characters, each the best at the `places` where a blank does most.

    `once` edits a word no more than once; `inner` keeps its first and last characters; words of fewer than
    `least` characters stay.
    """

    level: ClassVar[str] = "characters"
    alphabet: str = ALPHABET
    places: int = 20
    most: int = 10
    once: bool = False
    inner: bool = False
    least: int = 1

    def __post_init__(self) -> None:
        if min(self.places, self.most, self.least, len(self.alphabet)) < 1:
            raise ValueError("places, most and least are at least 1, and the alphabet is not empty")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        def explore(now: Scored, _: int) -> Program[list[Scored]]:
            spots = yield from self._best_spots(a, now.text)
            tries = [
                (spot, character)
                for spot in spots
                for character in ("", *self.alphabet)
                if spot.takes(now.text, character)
            ]

            def edited(number: int) -> Text:
                spot, character = tries[number]
                return spot.put(now.text, character)

            return (
                yield from in_portions(a, len(tries), len(now.text.string), edited, lambda scored: scored)
            )

        def nothing_left(now: Scored, found: Sequence[Scored]) -> bool:
            return not found

        return (yield from greedy(start, range(self.most), explore, keep=_keep_best, stop=nothing_left))

    def _best_spots(self, a: Attempt, text: Text) -> Program[list[Place]]:
        """Where a blank does most."""
        spots = [spot for spot in self.spots(text) if spot.takes(text, _probe(spot, text))]
        told: list[tuple[bool, float]] = yield from in_portions(
            a,
            len(spots),
            len(text.string),
            lambda number: spots[number].put(text, _probe(spots[number], text)),
            lambda scored: (scored.success, scored.score),
        )
        order = sorted(range(len(spots)), key=lambda number: (not told[number][0], -told[number][1]))
        return [spots[number] for number in order[: self.places]]

    def spots(self, text: Text) -> Iterator[Place]:
        """Every place that may be edited, in reading order."""
        original = text.root.words
        for index, word in enumerate(text.words):
            came_from = text.origin[index]
            touched = came_from < 0 or word != original[came_from]
            if len(word) < self.least or (self.once and touched):
                continue
            before_blank = index + 1 < len(text.words) and text.gaps[index + 1] == " "
            first, last = (1, len(word) - 1) if self.inner else (0, len(word) + before_blank)
            for at in range(first, len(word) if self.inner else len(word) + 1):
                yield Place(index, at, instead=False)
                if at < last:
                    yield Place(index, at, instead=True)


def _probe(spot: Place, text: Text) -> str:
    """A blank, or nothing where one stands."""
    return "" if spot.held(text) == " " else " "


def _keep_best(now: Scored, found: Sequence[Scored]) -> Scored:
    """The best text of this step, be it worse than the present one; a flip before all others."""
    return max(found, key=lambda scored: (scored.success, scored.score), default=now)


def _version(version: str, search: BestCharacters) -> Recipe:
    return Recipe(
        name="charmer",
        version=version,
        summary="edits the few characters that matter most",
        paper="Abad Rocamora et al. 2024, arXiv:2405.04346",
        goal=Margin(),
        search=search,
    )


RECIPES: dict[str, Recipe] = {
    "paper": _version("paper", BestCharacters()),
    "pruthi": _version(
        "pruthi", BestCharacters(alphabet=string.ascii_lowercase, once=True, inner=True, least=4)
    ),
}
