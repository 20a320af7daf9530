"""Pictures in files: the style that all of them share, and those that a run file alone suffices for.

Every figure is written as SVG and PNG. The same numbers give the same bytes: no dates, no random ids.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.extras import libraries_of
from unfooled.metrics.outcomes import Confusion, WordsChanged
from unfooled.report.diffs import visible

FORMATS = (".svg", ".png")
MARK = "#c1121f"  # edited words
INK = "#33658a"
SOFT = "#9dbcd4"
# Okabe and Ito (2008): told apart by people who see colours differently.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#000000")
_STYLE: Any = {
    "svg.hashsalt": "unfooled",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a word with dollar signs is a word
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.titlesize": 11,
}
_MOST_CELLS = 12  # classes whose cells are written out
_MOST_BARS = 40
_MOST_TICKS = 20


@contextmanager
def canvas(
    width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained"
) -> Iterator[Any]:
    """A figure in the house style, whatever the user's own settings are."""
    with libraries_of("plots", "matplotlib", needed_for="pictures"):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # Scripts that the font lacks show as boxes in the PNG; the SVG keeps the letters.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield Figure(figsize=(width, height), layout=layout)


def save(figure: Any, stem: Path) -> list[Path]:
    """Write `stem`.svg and `stem`.png."""
    # Laid out once and not once per format: that takes longer than drawing.
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    written = []
    for suffix in FORMATS:
        path = stem.with_name(stem.name + suffix)
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(path, dpi=130, metadata=metadata)
        written.append(path)
    return written


def shown(text: str, most: int = 18) -> str:
    """A label that stays on one line."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def draw_confusion(confusion: Confusion, title: str, stem: Path) -> list[Path]:
    """Before and after side by side: counts, and each row's share in colour."""
    n = len(confusion.labels)
    size = min(9.0, 1.6 + 0.75 * n)
    with canvas(2 * size + 0.8, size) as figure:
        axes = figure.subplots(1, 2)
        figure.suptitle(visible(title))
        names = [shown(label) for label in confusion.labels]
        for axis, when in zip(axes, ("before", "after"), strict=True):
            counts: NDArray[np.int64] = getattr(confusion, when)
            shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
            image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
            right = int(np.trace(counts))
            axis.set_title(
                f"{when} the attack: {right:,} of {confusion.n:,} right ({right / confusion.n:.1%})"
            )
            said = [shown(name) for name in confusion.decisions(when)]
            few = len(said) <= 4
            axis.set_xticks(
                range(len(said)), said, rotation=0 if few else 60, ha="center" if few else "right"
            )
            axis.set_yticks(range(n), names)
            axis.set_xlabel("decided")
            axis.tick_params(length=0)
            if n <= _MOST_CELLS:
                _write_cells(axis, counts, shares)
        axes[0].set_ylabel("true")
        figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
        return save(figure, stem)


def _write_cells(axis: Any, counts: NDArray[np.int64], shares: NDArray[np.float64]) -> None:
    for (row, column), count in np.ndenumerate(counts):
        share = shares[row, column]
        axis.text(
            column,
            row,
            f"{count:,}\n{share:.0%}",
            ha="center",
            va="center",
            color="white" if share > 0.6 else "black",
        )


def draw_words(words: WordsChanged, title: str, stem: Path) -> list[Path]:
    """Histogram of the words changed in successful attacks."""
    with canvas(7, 3.6) as figure:
        axis = figure.subplots()
        values = np.repeat(list(words.counts), list(words.counts.values()))
        width = max(1, -(-max(words.counts) // _MOST_BARS))
        edges = np.arange(min(words.counts), max(words.counts) + width + 1, width) - 0.5
        counts, _ = np.histogram(values, edges)
        there = counts > 0
        axis.bar((edges[:-1] + width / 2)[there], counts[there], width=0.9 * width, color=SOFT, edgecolor=INK)
        axis.axvline(words.words.median, color=MARK, linestyle="--", label=f"median {words.words.median:g}")
        axis.axvline(words.words.value, color=INK, linestyle=":", label=f"mean {words.words.value:.2f}")
        axis.set_xlabel("words changed" if width == 1 else f"words changed (bars of {width})")
        axis.set_ylabel("successful attacks")
        axis.set_title(visible(f"{title}: {words.n:,} successes"))
        if max(words.counts) <= _MOST_TICKS:
            axis.set_xticks(range(min(words.counts), max(words.counts) + 1))
        else:
            axis.xaxis.get_major_locator().set_params(integer=True)
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
        return save(figure, stem)
