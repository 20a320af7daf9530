"""How much of what a reader sees differs: both texts drawn by a browser, compared as pictures.

The share of pixels whose grey differs by more than a tenth, even from all greys one pixel around, of those in
the smallest box around the ink of either. A word swapped in a line moves all that stands behind it: this
measures whether a reader could see that anything was done, not how much was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure, before_and_after
from unfooled.resources.pictures import DEFAULT_FONT, Picture

Greys = NDArray[np.int16]
_INK = 230  # darker is ink
_DIFFERENT = 25  # of 255: what smoothed edges differ by is seen by nobody


def values(ask: Ask, results: Sequence[Result]) -> list[float]:
    return [difference(before, after) for before, after in before_and_after(ask, results)]


def difference(before: Picture, after: Picture) -> float:
    """Share of pixels that differ in the box around all ink; 0 of two empty pictures."""
    height = max(len(before), len(after))
    first, second = (
        np.pad(picture.astype(np.int16), ((0, height - len(picture)), (0, 0)), constant_values=255)
        for picture in (before, after)
    )
    rows, columns = np.nonzero(np.minimum(first, second) < _INK)
    if not len(rows):
        return 0.0
    box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    return round(float((_unlike(first, second) | _unlike(second, first))[box].mean()), 6)


def _unlike(picture: Greys, other: Greys) -> NDArray[np.bool_]:
    """Pixels that are darker or lighter than all of the other picture at that place and around it."""
    height, width = picture.shape
    wide = np.pad(other, 1, mode="edge")
    around = np.stack([wide[i : i + height, j : j + width] for i in range(3) for j in range(3)])
    found: NDArray[np.bool_] = (picture < around.min(axis=0) - _DIFFERENT) | (
        picture > around.max(axis=0) + _DIFFERENT
    )
    return found


MEASURE = Measure(
    name="picture",
    title="pixels that differ for a reader, share",
    better="low",
    oracle="picture",
    default=DEFAULT_FONT,
    values=values,
)
