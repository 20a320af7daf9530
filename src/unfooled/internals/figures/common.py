"""Pictures of an analysis that need no look inside the victim, and what all pictures share.

Every figure is written as SVG and PNG. The same numbers give the same bytes: no dates, no random ids.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.errors import MissingExtraError
from unfooled.internals.outcomes import Confusion, WordsChanged
from unfooled.internals.pca import Projection
from unfooled.internals.theorem import Check, Theorem
from unfooled.report.diffs import visible

FORMATS = (".svg", ".png")
MARK = "#c1121f"  # edited words
INK = "#33658a"
SOFT = "#9dbcd4"
# Okabe and Ito (2008): told apart by people who see colours differently.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#000000")
_MARKERS = "os^Dv<>P"
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
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("pictures", "plots") from None
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
            axis.set_xticks(range(n), names, rotation=0 if n <= 4 else 60, ha="center" if n <= 4 else "right")
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


def draw_theorem(theorem: Theorem, title: str, stem: Path) -> list[Path]:
    """Measured expectations against the bound: by dimension, and head by head of the model."""
    random, model = theorem.of("random"), theorem.of("model")
    with canvas(11 if model else 5.8, 4.4) as figure:
        axes = np.atleast_1d(figure.subplots(1, 2 if model else 1))
        figure.suptitle(visible(title))
        _draw_dimensions(axes[0], random)
        if model:
            _draw_heads(axes[1], model)
        return save(figure, stem)


def _draw_dimensions(axis: Any, checks: Sequence[Check]) -> None:
    d = [one.d for one in checks]
    axis.plot(d, [one.bound for one in checks], "-", color=MARK, label="bound Cδ/√d")
    axis.plot(d, [one.exact for one in checks], ":", color="black", label="worst Δx, exact")
    axis.plot(d, [one.worst for one in checks], "o", color=INK, label="worst Δx, measured")
    axis.plot(d, [one.random for one in checks], "s", color=PALETTE[1], label="random Δx, measured")
    axis.set_xscale("log", base=2)
    _logarithmic(axis.yaxis)
    axis.set_xticks(d, [str(one) for one in d])
    axis.set_xlabel("dimension d")
    axis.set_ylabel("E|s′ − s|")
    axis.set_title(f"random matrices, δ = {checks[0].delta:g}")
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.25)


def _draw_heads(axis: Any, checks: Sequence[Check]) -> None:
    bounds = [one.bound for one in checks]
    ends = 0.9 * min(bounds), 1.1 * max(bounds)
    axis.plot(ends, ends, "-", color=MARK, label="bound")
    colours = [one.layer for one in checks]
    kinds = (
        ("worst", "o", "worst Δx"),
        ("random", "s", "random Δx"),
        ("biased", "x", "random Δx, with bias"),
    )
    for name, marker, label in kinds:
        values = [getattr(one, name) for one in checks]
        points = axis.scatter(
            bounds, values, c=colours, marker=marker, s=18, cmap="viridis", label=label, linewidths=0.8
        )
    _logarithmic(axis.xaxis)
    _logarithmic(axis.yaxis)
    axis.set_xlabel("bound Cδ/√d")
    axis.set_ylabel("E|s′ − s|")
    axis.set_title(f"the model's own W^Q and W^K: {len(checks)} heads, d = {checks[0].d}")
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.25)
    layers = max(colours)
    if layers > 1:
        axis.figure.colorbar(points, ax=axis, label="layer", ticks=range(1, layers + 1, 1 + layers // 13))


def _logarithmic(axis: Any) -> None:
    """Ticks at 1, 2 and 5 of each decade, as plain numbers: words are never read as formulas here."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_pca(pca: Projection, stem: Path) -> list[Path]:
    with canvas(6.4, 5) as figure:
        axis = figure.subplots()
        for at, label in enumerate(pca.labels):
            mine = pca.classes == at
            axis.scatter(
                *pca.points[mine].T,
                s=max(3.0, min(22.0, 4000 / len(pca.classes))),
                alpha=0.55,
                color=PALETTE[at % len(PALETTE)],
                marker=_MARKERS[at // len(PALETTE) % len(_MARKERS)],
                linewidths=0,
                label=f"{shown(label)} ({int(mine.sum()):,})",
                rasterized=True,  # thousands of points would make a huge SVG
            )
        axis.set_xlabel(f"first component ({pca.explained[0]:.1%} of the variance)")
        axis.set_ylabel(f"second component ({pca.explained[1]:.1%})")
        axis.set_title(
            f"{shown(pca.data, 40)}: PCA of {pca.features}\n"
            f"nearest class mean: {pca.nearest.value:.1%} right, largest class {pca.largest:.1%}"
        )
        axis.legend(fontsize=8, markerscale=2, loc="best")
        return save(figure, stem)
