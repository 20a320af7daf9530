"""Texts of a data set in two dimensions, coloured by class."""

from __future__ import annotations

from pathlib import Path

from unfooled.internals.pca import PcaProjection
from unfooled.report.figures import PALETTE, canvas, save, shown

_MARKERS = "os^Dv<>P"


def draw_pca(pca: PcaProjection, stem: Path) -> list[Path]:
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
