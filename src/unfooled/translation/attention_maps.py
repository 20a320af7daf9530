"""Attention of a translation before and after an attack, as two maps side by side: source × output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unfooled.report.charts import HALF, heat_map, side_by_side
from unfooled.report.interpretation import Chart


def attention_charts(kept: Sequence[Mapping[str, Any]], run: str = "") -> list[Chart]:
    """One picture per example that was kept in the run."""
    found = []
    for example in kept:
        title = f"Attention, example {example['key']}{f' of {run}' if run else ''}: before and after"
        maps = [
            heat_map(
                example[when]["read"],
                example[when]["written"],
                example[when]["weights"],
                title=when,
                width=HALF,
            )
            for when in ("before", "after")
        ]
        lines = [
            (when, token, example[when]["read"][place], f"{row[place]:.2f}")
            for when in ("before", "after")
            for token, row in zip(example[when]["written"], example[when]["weights"], strict=True)
            for place in [max(range(len(row)), key=row.__getitem__)]
        ]
        found.append(
            Chart(
                title=title,
                svg=side_by_side(maps, title=title),
                caption="Each row is a token that was written, each column one that was read; a stronger "
                "field is more attention (mean over layers and heads).",
                columns=("when", "written", "looks most at", "weight"),
                lines=tuple(lines),
            )
        )
    return found
