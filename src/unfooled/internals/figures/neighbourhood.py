"""Pictures of the words and vectors around the edit that tipped a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unfooled.internals.neighbourhood import Field, Neighbourhood
from unfooled.report.diffs import visible
from unfooled.report.figures import INK, MARK, PALETTE, canvas, save, shown

_MARKERS = ("o", "s", "D", "^")


def draw_neighbours(found: Neighbourhood, title: str, stem: Path) -> list[Path]:
    """One row per word: p(true class) of every model. A filled mark is right, an open one wrong."""
    rows = found.neighbours
    with canvas(8.0, 1.8 + 0.24 * len(rows)) as figure:
        axis = figure.subplots()
        figure.suptitle(visible(title))
        for at, row in enumerate(rows):
            axis.plot([min(row.p_true), max(row.p_true)], [at, at], color="#c8c8c8", linewidth=1, zorder=1)
        for number, name in enumerate(found.models):
            colour = PALETTE[number % len(PALETTE)]
            right = [row.decided[number] == found.label for row in rows]
            axis.scatter(
                [row.p_true[number] for row in rows],
                range(len(rows)),
                marker=_MARKERS[number % len(_MARKERS)],
                facecolors=[colour if good else "white" for good in right],
                edgecolors=colour,
                label=shown(name, 30),
                zorder=2,
            )
        axis.set_yticks(range(len(rows)), [shown(row.word, 24) for row in rows])
        for tick, row in zip(axis.get_yticklabels(), rows, strict=True):
            tick.set_color(MARK if row.near == "adversarial" else INK)
            tick.set_fontweight("normal" if row.rank else "bold")
        axis.invert_yaxis()
        axis.set_xlim(-0.03, 1.03)
        axis.set_xlabel(f"probability of the true class ({shown(found.labels[found.label], 30)})")
        axis.set_title("bold: the original and the adversarial word; below each its nearest ones", loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8, loc="lower left", title="filled: right, open: wrong")
        return save(figure, stem)


def draw_field(found: Field, title: str, stem: Path) -> list[Path]:
    """Vectors around the two words; the colour is the class that the model decides for."""
    with canvas(6.4, 5.2) as figure:
        axis = figure.subplots()
        figure.suptitle(visible(title))
        for number, label in enumerate(found.labels):
            for side in range(2):
                chosen = (found.decided == number) & (found.near == side)
                chosen[:2] = False
                if chosen.any():
                    word = found.words[side]
                    axis.scatter(
                        *found.points[chosen].T,
                        s=14,
                        marker=_MARKERS[side],
                        color=PALETTE[number % len(PALETTE)],
                        alpha=0.75,
                        label=f"around {shown(word)}: {shown(label)} ({int(chosen.sum())})",
                    )
        for side, word in enumerate(found.words):
            axis.annotate(
                shown(word),
                found.points[side],
                fontweight="bold",
                color=INK if side == 0 else MARK,
                ha="center",
                bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
            )
        axis.set_title(f"{shown(found.model, 40)}, standard deviation {found.sigma:.3g}, t-SNE", loc="left")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.legend(frameon=False, fontsize=8, loc="best")
        return save(figure, stem)


def wrong_share(found: Field, side: int) -> tuple[int, int]:
    """How many of the vectors around a word get another class than the true one."""
    chosen = found.near == side
    chosen[:2] = False
    return int((found.decided[chosen] != found.label).sum()), int(np.count_nonzero(chosen))
