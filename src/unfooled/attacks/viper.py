"""VIPER: characters become others that look like them, at random.

Eger, Şahin, Rücklé, Lee, Schulz, Mesgar, Swarnkar, Simpson, Gurevych: *Text Processing Like Humans Do:
Visually Attacking and Shielding NLP Systems*, NAACL 2019, arXiv:1903.11508.

    1. With probability p each character of a word is exchanged for one that looks like it.
    2. Which one is drawn from a space of characters: the nearer the likelier.
    3. The victim is asked once; nothing but its decision is needed.

Versions
    @eces  the easy space: each letter has one fixed look-alike, itself with an accent.
    @dces  by description: the 12 letters whose Unicode names share most words with the letter's, weighted by
           exp(-distance / 2), the distance that of the bags of words.
    @ices  by image: the 20 characters whose drawn 24 x 24 picture has the highest cosine, weighted by it.

`search.probability` is p, 0.3 as in most of their tables; `search.draws` tries so many texts, one after the
other, until the label flips (OpenAttack draws up to 120 times, the paper once).

Differences from the authors' code
    - Characters of words only; punctuation and blanks stay.
    - The accents of @eces follow a rule (the first of circumflex, dot above, acute, caron, diaeresis, tilde
      and cedilla that Unicode has the letter with) in place of a table by hand; the letter q has none.
    - @dces knows Latin letters alone, from Python's Unicode names; they take all but some seventy scripts.
    - @ices draws DejaVu Sans, letters and digits alone; theirs is a set of fonts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.search import greedy, keep_newest
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe
from unfooled.core.victim import require_choice
from unfooled.resources.look_alikes import LookAlike
from unfooled.text import Text

Space: TypeAlias = Literal["accents", "names", "pictures"]
_ACCENTS = "\u0302\u0307\u0301\u030c\u0308\u0303\u0327"


def accented(letter: str) -> str:
    """The letter with the first accent that Unicode has it with; else the letter."""
    composed = (unicodedata.normalize("NFC", letter + accent) for accent in _ACCENTS)
    return next((character for character in composed if len(character) == 1), letter)


@dataclass(frozen=True, kw_only=True)
class RandomLookAlikes:
    """Exchange each character with some probability, and look; up to `draws` times."""

    level: ClassVar[str] = "characters"
    space: Space
    probability: float = 0.3
    draws: int = 1

    def __post_init__(self) -> None:
        require_choice(self.space, Space, "space")
        if not 0.0 < self.probability <= 1.0 or self.draws < 1:
            raise ValueError("probability is over 0 and at most 1, and draws is at least 1")

    @property
    def tries(self) -> int | None:
        return 1 if self.draws == 1 else None

    @property
    def asks(self) -> tuple[str, ...]:
        return () if self.space == "accents" else (f"look-alikes:{self.space}",)

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        table = yield from self._table(start.text)

        def draw(now: Scored, _: int) -> Program[list[Scored]]:
            return (yield from a.score([_exchanged(start.text, table, self.probability, a.rng)]))

        return (yield from greedy(start, range(self.draws), draw, keep=keep_newest))

    def _table(self, text: Text) -> Program[dict[str, tuple[LookAlike, ...]]]:
        characters = list(dict.fromkeys("".join(text.words)))
        if self.space != "accents":
            answers = yield from ask(f"look-alikes:{self.space}", characters)
            return dict(zip(characters, answers, strict=True))
        return {
            character: (LookAlike(accented(character)),)
            for character in characters
            if accented(character) != character
        }


def _exchanged(
    text: Text, table: Mapping[str, tuple[LookAlike, ...]], probability: float, rng: np.random.Generator
) -> Text:
    for place, word in enumerate(text.words):
        new = "".join(
            _drawn(table[character], rng) if chance < probability and table.get(character) else character
            for character, chance in zip(word, rng.random(len(word)).tolist(), strict=True)
        )
        if new != word:
            text = text.replace(place, new)
    return text


def _drawn(options: tuple[LookAlike, ...], rng: np.random.Generator) -> str:
    weights = np.array([option.weight for option in options])
    return options[int(rng.choice(len(options), p=weights / weights.sum()))].character


RECIPES: dict[str, Recipe] = untargeted_versions(
    {
        "eces": RandomLookAlikes(space="accents"),
        "dces": RandomLookAlikes(space="names"),
        "ices": RandomLookAlikes(space="pictures"),
    },
    name="viper",
    summary="exchanges random characters for others that look like them",
    paper="Eger et al. 2019, arXiv:1903.11508",
    needs=(),
)
