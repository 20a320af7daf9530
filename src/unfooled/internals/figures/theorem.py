"""Measured expectations of attention scores against the theorem's bound, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.internals.theorem import BoundCheck, Theorem
from unfooled.report.diffs import visible
from unfooled.report.figures import INK, MARK, PALETTE, canvas, save


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


def _draw_dimensions(axis: Any, checks: Sequence[BoundCheck]) -> None:
    d = [check.d for check in checks]
    axis.plot(d, [check.bound for check in checks], "-", color=MARK, label="bound Cδ/√d")
    axis.plot(d, [check.exact for check in checks], ":", color="black", label="worst Δx, exact")
    axis.plot(d, [check.worst for check in checks], "o", color=INK, label="worst Δx, measured")
    axis.plot(d, [check.random for check in checks], "s", color=PALETTE[1], label="random Δx, measured")
    axis.set_xscale("log", base=2)
    _logarithmic(axis.yaxis)
    axis.set_xticks(d, [str(dimension) for dimension in d])
    axis.set_xlabel("dimension d")
    axis.set_ylabel("E|s′ − s|")
    axis.set_title(f"random matrices, δ = {checks[0].delta:g}")
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.25)


def _draw_heads(axis: Any, checks: Sequence[BoundCheck]) -> None:
    bounds = [check.bound for check in checks]
    ends = 0.9 * min(bounds), 1.1 * max(bounds)
    axis.plot(ends, ends, "-", color=MARK, label="bound")
    colours = [check.layer for check in checks]
    kinds = (
        ("worst", "o", "worst Δx"),
        ("random", "s", "random Δx"),
        ("biased", "x", "random Δx, with bias"),
    )
    for name, marker, label in kinds:
        values = [getattr(check, name) for check in checks]
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
