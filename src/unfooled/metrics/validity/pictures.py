"""What a reader sees of a text: words drawn and compared as pictures, characters without ink left out.

A Cyrillic letter in place of a Latin one makes another string and the same picture: nobody reads a non-word
there. Letters are drawn one by one with the font that comes with matplotlib and compared by their ink. What
has no ink (zero-width spaces, tags, soft hyphens) is taken out first. Marks that change the direction of
writing are left in: what they do is known to a browser, not here, so they count as a visible edit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.language.edits import align
from unfooled.text import Text

SAME = 0.07  # share of the ink that may differ in a letter that is taken for the other one
CLEAR = 0.5  # from here on everybody sees that it is another letter
_STYLED = 0.2  # at least what differs between a letter and its bold, wide or circled form
_SIZE, _BASELINE, _MARGIN = 96, 64, 16  # of the canvas of a letter, in pixels
_POINTS = 40.0
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")

Picture = NDArray[np.float64]
Unlike = Callable[[str, str], float]  # how different two words look: 0 not at all, 1 clearly


class Pictures:
    """Draws letters, each once."""

    def __init__(self) -> None:
        self._drawn: dict[str, Picture] = {}

    @cached_property
    def _font(self) -> Any:
        import matplotlib
        from matplotlib.ft2font import FT2Font

        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        font = FT2Font(str(folder / "DejaVuSans.ttf"))
        font.set_size(_POINTS, 72.0)
        return font

    def unlike(self, word: str, other: str) -> float:
        """How different two words look by their most different letter: what a reader stumbles over."""
        letters, others = _letters(word), _letters(other)
        if len(letters) != len(others):
            return 1.0
        unlike = max((self._ink(a, b) for a, b in zip(letters, others, strict=True)), default=0.0)
        return 0.0 if unlike <= SAME else min(1.0, unlike / CLEAR)

    def _ink(self, letter: str, other: str) -> float:
        """The share of the ink of both letters that only one of them has."""
        if letter == other:
            return 0.0
        drawn, beside = self._draw(letter), self._draw(other)
        most = np.maximum(drawn, beside).sum()
        styled = _STYLED if self._drawable(letter) != letter or self._drawable(other) != other else 0.0
        return max(styled, float(np.abs(drawn - beside).sum() / most)) if most else styled

    def _draw(self, letter: str) -> Picture:
        if letter not in self._drawn:
            canvas, pen = np.zeros((_SIZE, _SIZE)), 0.0
            for char in self._drawable(letter):
                glyph = self._font.load_char(ord(char))
                left, _, _, top = (edge / 64 for edge in glyph.bbox)
                self._font.clear()
                self._font.set_text(char, 0.0)
                self._font.draw_glyphs_to_bitmap(antialiased=True)
                _put(canvas, self._font.get_image(), _BASELINE - round(top), _MARGIN + round(pen + left))
                pen += glyph.horiAdvance / 64
            self._drawn[letter] = canvas
        return self._drawn[letter]

    def _drawable(self, letter: str) -> str:
        """In place of a letter that the font lacks, the plain one that it stands for."""
        known = self._font.get_charmap()
        return "".join(char if ord(char) in known else unicodedata.normalize("NFKC", char) for char in letter)


def open_pictures() -> Unlike | None:
    """None where matplotlib is not installed: then a foreign letter is another one, however it looks."""
    try:
        import matplotlib.ft2font  # noqa: F401
    except ImportError:
        return None
    return Pictures().unlike


def as_seen(before: str, after: str, unlike: Unlike | None) -> str:
    """`after` without what has no ink, and with the old word wherever the new one looks like it."""
    text = Text(without_invisible(after))
    own = Text(without_invisible(before))
    if unlike is None or text.string.isascii():
        return text.string
    for i, j in align(own.words, text.words):
        if i is None or j is None or text.words[j].isascii():
            continue
        if not unlike(own.words[i], text.words[j]):
            text = text.replace(j, own.words[i])
    return text.string


def without_invisible(text: str) -> str:
    """Without control and format characters that leave no trace on a page."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in _DIRECTION or char.isspace() or not _invisible(char))


def _invisible(char: str) -> bool:
    return unicodedata.category(char) in ("Cf", "Cc") or char in "\u115f\u1160\u3164\u2800\ufe0e\ufe0f"


def _letters(word: str) -> list[str]:
    """Each letter with the marks that are drawn over it."""
    letters: list[str] = []
    for char in unicodedata.normalize("NFC", without_invisible(word)):
        if letters and unicodedata.combining(char):
            letters[-1] += char
        else:
            letters.append(char)
    return letters


def _put(canvas: Picture, image: Any, row: int, column: int) -> None:
    """Draw the image at this place, as far as it lies on the canvas."""
    ink = np.asarray(image, dtype=np.float64) / 255.0
    top, left = max(0, row), max(0, column)
    ink = ink[top - row :, left - column :][: _SIZE - top, : _SIZE - left]
    part = canvas[top : top + ink.shape[0], left : left + ink.shape[1]]
    np.maximum(part, ink, out=part)
