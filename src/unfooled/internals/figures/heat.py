"""Heat maps with words below them, for pictures of attention and embeddings. Edited words are red."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.metrics.summary import Mean
from unfooled.report.diffs import visible
from unfooled.report.figures import MARK

WIDTH = 40  # columns of a picture; the numbers are always about the whole text
_ABSENT = "#e6e6e6"  # a word that this side does not have
_WRITTEN = 26  # columns up to which numbers are written into the cells
ATTENTION, CHANGE = "Blues", "RdBu_r"
_SIZES = {"large": 8, "dense": 7, "square": 5}

Numbers = NDArray[np.float64]
Kind = Literal["large", "dense", "square"]


@dataclass(frozen=True)
class Axis:
    """The columns that a picture shows: labels of both sides, and which are edited."""

    first: int
    total: int
    before: list[str]
    after: list[str]
    edited: list[bool]

    @property
    def n(self) -> int:
        return len(self.edited)

    @property
    def part(self) -> slice:
        return slice(self.first, self.first + self.n)

    @property
    def either(self) -> list[str]:
        """The label after the attack, or before it where there is none after."""
        return [new or old for old, new in zip(self.before, self.after, strict=True)]

    @property
    def both(self) -> list[str]:
        return [
            f"{old} → {new}" if old and new and old != new else new or old
            for old, new in zip(self.before, self.after, strict=True)
        ]

    def title(self, text: str, what: str) -> str:
        """Says so where the text is longer than the picture."""
        cut = (
            "" if self.n == self.total else f"\n{what} {self.first + 1}–{self.first + self.n} of {self.total}"
        )
        return visible(text) + cut


def window(edited: Sequence[bool], width: int) -> slice:
    """At most `width` columns: the first stretch with the most edits, these near its middle."""
    n = len(edited)
    if n <= width:
        return slice(0, n)
    sums = np.convolve(np.array(edited, dtype=int), np.ones(width, dtype=int), mode="valid")
    best = np.flatnonzero(sums == sums.max())
    run = best[: 1 + int(np.argmax(np.diff(best, append=n + 2) > 1))]  # the first unbroken stretch of equals
    first = int(run[len(run) // 2])
    return slice(first, first + width)


def heat(
    panel: Any,
    values: Numbers,
    labels: Sequence[str],
    edited: Sequence[bool],
    colours: str,
    low: float,
    high: float,
    *,
    rows: Sequence[str] = (),
    kind: Kind = "large",
) -> Any:
    """A heat map with words below it; the columns of edited words are framed (squares: see below)."""
    from matplotlib.colors import PowerNorm

    panel.set_facecolor(_ABSENT)
    aspect = "equal" if kind == "square" else "auto"
    # A special token often takes most of the attention; square roots keep the words visible beside it.
    norm = PowerNorm(0.5 if colours == ATTENTION else 1.0, vmin=low, vmax=high)
    image = panel.imshow(values, cmap=colours, norm=norm, aspect=aspect, interpolation="none")
    panel.set_yticks(range(len(rows)), rows)
    panel.tick_params(length=0)
    panel.set_xticks(range(len(labels)), labels, fontsize=_SIZES[kind])
    for label in panel.get_xticklabels():
        if kind == "large":
            label.set(rotation=45, horizontalalignment="right", rotation_mode="anchor")
        else:
            label.set(rotation=90)
    redden(panel.get_xticklabels(), edited)
    for at in np.flatnonzero(edited) if kind != "square" else ():
        _frame(panel, (at - 0.5, -0.5), 1, len(values), 1.5)
    return image


def frame_square(panel: Any, start: int, edited: Sequence[bool]) -> None:
    """Frame the edited words' rows and columns in the square that begins at row `start`."""
    n = len(edited)
    for at in np.flatnonzero(edited):
        _frame(panel, (at - 0.5, start - 0.5), 1, n, 0.6)
        _frame(panel, (-0.5, start + at - 0.5), n, 1, 0.6)


def _frame(panel: Any, corner: tuple[float, float], width: float, height: float, line: float) -> None:
    from matplotlib.patches import Rectangle

    panel.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor=MARK, linewidth=line, clip_on=False, zorder=3)
    )


def redden(labels: Sequence[Any], edited: Sequence[bool]) -> None:
    for label, marked in zip(labels, edited, strict=False):
        if marked:
            label.set(color=MARK, fontweight="bold")


def write_numbers(panel: Any, values: Numbers, dark: float, *, signed: bool = False) -> None:
    """Two decimals in every cell, where there is room; white on cells beyond `dark`."""
    if values.shape[1] > _WRITTEN:
        return
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            number = round(float(value), 2) + 0.0  # no minus before zero
            text = f"{number:+.2f}" if signed and number else f"{number:.2f}"
            colour = "white" if abs(value) > dark else "black"
            panel.text(column, row, text, ha="center", va="center", fontsize=6.5, color=colour)


def points(axis: Any, places: Sequence[float], means: Sequence[Mean], colour: str, label: str) -> None:
    """Means with their intervals; those of nothing are left out."""
    known = [(place, mean) for place, mean in zip(places, means, strict=True) if mean.n]
    if not known:
        return
    values = np.array([mean.value for _, mean in known])
    low, high = (np.array([getattr(mean, end) for _, mean in known]) for end in ("low", "high"))
    spread = np.maximum([values - low, high - values], 0)
    xs = [place for place, _ in known]
    axis.errorbar(xs, values, yerr=spread, fmt="o", color=colour, capsize=3, label=label, ms=5)
