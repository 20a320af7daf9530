"""Characters that look like a character, by tables that are too large to be written down here.

    item    character                    a single one
    answer  tuple[LookAlike, ...]        those that look like it, the nearest first; none where none is known

`confusables`: Unicode's table of confusable characters, from the package confusable-homoglyphs. `names`:
Latin letters whose Unicode name differs by few words (Eger et al. 2019). `pictures`: characters whose drawn
shape is nearest, in the font that comes with matplotlib.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of

EXTRA = "characters"
LAST = 30_000  # code points that names and pictures look at, as Eger et al. do
NEAREST_NAMES = 12
NEAREST_PICTURES = 20
_SIDE = 24  # pixels of a picture
_LEFT_TO_RIGHT = "\u200e"  # put around right-to-left characters in the package's file


class LookAlike(NamedTuple):
    """`weight` says how much likelier than others it is drawn where a search draws one."""

    character: str
    weight: float = 1.0


Finder = Callable[[str], tuple[LookAlike, ...]]


class LookAlikeOracle:
    batch_size = 1 << 12

    def __init__(self, find: Finder) -> None:
        self._find = find

    def __call__(self, items: Sequence[str], /) -> list[tuple[LookAlike, ...]]:
        return [self._find(character) for character in items]


def open_look_alikes(variant: str) -> LookAlikeOracle:
    finders: dict[str, Callable[[], Finder]] = {
        "confusables": open_confusables,
        "names": lambda: by_name,
        "pictures": open_pictures,
    }
    if variant not in finders:
        raise ResourceError(
            f"there are no look-alikes called {variant!r}", f"choose one of {', '.join(finders)}"
        )
    return LookAlikeOracle(finders[variant]())


def fingerprint(variant: str) -> str:
    """The version of what the table is read from; one that cannot be had is found out before a run begins."""
    open_look_alikes(variant)
    library = {"confusables": "confusable-homoglyphs", "pictures": "matplotlib"}.get(variant)
    return version(library) if library else unicodedata.unidata_version


# -- Unicode's confusables -------------------------------------------------------------------------


@cache
def open_confusables() -> Finder:
    with libraries_of(EXTRA, "confusable_homoglyphs", needed_for="a table of confusable characters"):
        import confusable_homoglyphs  # noqa: F401

        content = files("confusable_homoglyphs").joinpath("confusables.json").read_text(encoding="utf-8")
    table = {
        character: [entry["c"].strip(_LEFT_TO_RIGHT) for entry in entries]
        for character, entries in json.loads(content).items()
    }

    @cache
    def find(character: str) -> tuple[LookAlike, ...]:
        # All members of a class are listed at one of them, and that one alone at each other.
        direct = table.get(character, [])
        known = {*direct, *(other for member in direct for other in table.get(member, []))} - {character}
        single = [other for other in known if len(other) == 1]
        return tuple(
            LookAlike(other) for other in sorted(single, key=lambda other: _unlike(character, other))
        )

    return find


def _unlike(character: str, other: str) -> tuple[bool, bool, int]:
    """Letters of their own come first, then other forms of the same letter; low code points before high."""
    other_kind = unicodedata.category(other) != unicodedata.category(character)
    return other_kind, unicodedata.decomposition(other).startswith("<"), ord(other)


# -- by name ---------------------------------------------------------------------------------------


@cache
def _named_letters() -> dict[tuple[str, str], list[tuple[str, frozenset[str]]]]:
    """(SMALL or CAPITAL, the letter) → Latin characters of that letter and the words of their names."""
    found: dict[tuple[str, str], list[tuple[str, frozenset[str]]]] = {}
    for character in map(chr, range(LAST + 1)):
        words = unicodedata.name(character, "").split()
        if words[:1] == ["LATIN"] and words[2:3] == ["LETTER"] and len(words) > 3:
            found.setdefault((words[1], words[3]), []).append((character, frozenset(words)))
    return found


@cache
def by_name(character: str) -> tuple[LookAlike, ...]:
    """Of the same letter and case, those whose names share most words; the likelier the fewer differ."""
    words = unicodedata.name(character, "").split()
    if words[:1] != ["LATIN"] or len(words) < 4:
        return ()
    own = frozenset(words)
    far = sorted(
        (math.sqrt(len(own ^ other_words)), other)
        for other, other_words in _named_letters().get((words[1], words[3]), [])
        if other != character
    )
    return tuple(LookAlike(other, math.exp(-0.5 * distance)) for distance, other in far[:NEAREST_NAMES])


# -- by picture ------------------------------------------------------------------------------------


@cache
def open_pictures() -> Finder:
    with libraries_of("plots", "matplotlib", "PIL", needed_for="look-alikes by their pictures"):
        import matplotlib
        from matplotlib.ft2font import FT2Font
        from PIL import Image, ImageDraw, ImageFont

    path = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    known = (chr(code) for code in FT2Font(path).get_charmap() if code <= LAST)
    characters = [character for character in known if unicodedata.category(character)[0] in "LN"]
    font = ImageFont.truetype(path, _SIDE * 2 // 3)
    pictures = np.zeros((len(characters), _SIDE * _SIDE), dtype=np.float32)
    for picture, character in zip(pictures, characters, strict=True):
        image = Image.new("L", (_SIDE, _SIDE))
        ImageDraw.Draw(image).text((_SIDE // 2, _SIDE * 3 // 4), character, fill=255, font=font, anchor="ms")
        picture[:] = np.asarray(image, dtype=np.float32).ravel()
    pictures /= np.maximum(np.linalg.norm(pictures, axis=1, keepdims=True), 1.0)
    place = {character: number for number, character in enumerate(characters)}

    @cache
    def find(character: str) -> tuple[LookAlike, ...]:
        if character not in place:
            return ()
        cosines = np.round(pictures @ pictures[place[character]], 6)
        cosines[place[character]] = -1.0
        order = np.argsort(-cosines, kind="stable")[:NEAREST_PICTURES]
        return tuple(LookAlike(characters[i], max(0.0, float(cosines[i]))) for i in order)

    return find
