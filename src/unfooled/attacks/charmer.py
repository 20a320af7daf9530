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
    - A blank that flips the label ends the search at once.
    - Their variant that optimises a distribution over candidates is off in their scripts, and left out.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unfooled.attacks.parts.candidates import added, dropped, exchanged
from unfooled.attacks.parts.goals import Margin
from unfooled.attacks.parts.importance import PORTION
from unfooled.attacks.parts.search import keep_highest
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.text import Text

ALPHABET = string.ascii_lowercase + string.digits + string.punctuation + " "
_GONE = ""


class Place(NamedTuple):
    """Before the character `at` of a word, or (`instead`) in its stead; behind the last one it is the blank
    that the next word follows."""

    word: int
    at: int
    instead: bool

    def put(self, text: Text, character: str) -> Text | None:
        """The text with a character there, or without the one that stood there; None: no edit."""
        word = text.words[self.word]
        if self.at == len(word) and self.instead:
            return self._joined(text, character)
        if not self.instead:
            return text.replace(self.word, added(word, self.at, character)) if character else None
        if character == word[self.at] or (character == _GONE and len(word) == 1):
            return None
        new = exchanged(word, self.at, character) if character else dropped(word, self.at)
        return text.replace(self.word, new)

    def _joined(self, text: Text, character: str) -> Text | None:
        if character == " ":
            return None
        word, following = text.words[self.word], text.words[self.word + 1]
        return text.replace(self.word, word + character + following).delete(self.word + 1)

    def probed(self, text: Text) -> Text | None:
        """With a blank there, or without the one that stands there."""
        word = text.words[self.word]
        blank = self.instead and (self.at == len(word) or word[self.at] == " ")
        return self.put(text, _GONE if blank else " ")


@dataclass(frozen=True, kw_only=True)
class BestCharacters:
    """Up to `most` edits of single characters, each the best at the `places` where a blank does most.

    `once` edits a word no more than once; `inner` keeps its first and last characters; words of fewer than
    `least` characters stay.
    """

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
        now = start
        for _ in range(self.most):
            spots = list(self.spots(now.text))
            probed = yield from _scored(a, [(spot, spot.probed(now.text)) for spot in spots])
            if won := [scored for _, scored in probed if scored.success]:
                return keep_highest(now, won)
            best = sorted(probed, key=lambda found: -found[1].score)[: self.places]
            tries = [(spot, spot.put(now.text, one)) for spot, _ in best for one in ("", *self.alphabet)]
            found = yield from _scored(a, tries)
            if not found:
                break
            now = max((scored for _, scored in found), key=lambda scored: (scored.success, scored.score))
            if now.success:
                break
        return now

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


def _scored(a: Attempt, tries: Sequence[tuple[Place, Text | None]]) -> Program[list[tuple[Place, Scored]]]:
    """What the victim says of each text that is one, in portions that do not fill the memory."""
    real = [(spot, text) for spot, text in tries if text is not None]
    size = max(1, PORTION // max(1, len(a.original.string)))
    found: list[tuple[Place, Scored]] = []
    for first in range(0, len(real), size):
        portion = real[first : first + size]
        scored = yield from a.score([text for _, text in portion])
        found += zip((spot for spot, _ in portion), scored, strict=True)
    return found


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
