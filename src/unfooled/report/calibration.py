"""A calibration in the terminal: a table of thresholds, and the line of equal shares in characters."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from unfooled.metrics.calibration import Calibration
from unfooled.report.diffs import visible
from unfooled.report.terminal import say

_SHOWN = (5, 10, 20, 50, 80, 90, 95)
_WIDTH, _HEIGHT = 56, 14


def print_calibration(console: Console, found: Calibration) -> None:
    source, target = found.source, found.target
    stretch = "whole texts" if found.window is None else f"windows of {found.window} words"
    console.print(
        f"{found.pairs:,} pairs from {visible(found.data)}, {stretch}", highlight=False, markup=False
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("pairs below", justify="right")
    table.add_column(f"{source.encoder} ({source.scale})", justify="right")
    table.add_column(f"{target.encoder} ({target.scale})", justify="right")
    rows = [(float(p), ours, theirs, False) for p, ours, theirs in found.curve if p in _SHOWN]
    rows.append((100.0 * (1.0 - found.passing), source.value, target.value, True))
    for share, ours, theirs, chosen in sorted(rows):
        style = "bold" if chosen else ""
        mark = " ←" if chosen else ""
        table.add_row(f"{share:.1f} %", f"{ours:.4f}", f"{theirs:.4f}{mark}", style=style)
    console.print(table)
    console.print(_text_curve(found), highlight=False, markup=False)
    for kind, (ours, theirs) in found.passing_by_kind.items():
        say(
            console,
            f"pairs with {kind} that pass: {ours:.1%} of {source.encoder}, {theirs:.1%} of {target.encoder}",
        )
    say(
        console,
        f"both decide alike on {found.agreement:.1%} of the pairs; rank correlation {found.correlation:.2f}",
    )
    say(
        console,
        f"\n{source.encoder} {source.value:g} ({source.scale}) is {target.encoder} {target.value:.4f} "
        f"({target.scale}), 95 % interval {found.low:.4f} – {found.high:.4f}",
    )
    say(
        console,
        f"use it: --encoder {target.encoder} --set search.constraints.N.threshold={target.value:.4f} "
        "(`unfooled show ATTACK` tells N)",
    )


def _text_curve(found: Calibration) -> str:
    """The line of equal shares in characters: the source's values to the right, the target's upwards."""
    points = [(ours, theirs, "·") for _, ours, theirs in found.curve]
    points.append((found.source.value, found.target.value, "●"))
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    left, right, bottom, top = min(xs), max(xs), min(ys), max(ys)
    if right <= left or top <= bottom:
        return ""
    canvas = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    steps = np.linspace(left, right, _WIDTH)
    order = np.argsort(xs[:-1], kind="stable")
    line = np.interp(steps, np.array(xs[:-1])[order], np.array(ys[:-1])[order])
    drawn = [*zip(steps, line, "·" * _WIDTH, strict=True), *points]
    for x, y, mark in drawn:
        column = round((x - left) / (right - left) * (_WIDTH - 1))
        row = round((top - y) / (top - bottom) * (_HEIGHT - 1))
        canvas[row][column] = mark
    lines = ["".join(row).rstrip() for row in canvas]
    lines[0] = f"{top:7.3f} │{lines[0]}"
    lines[-1] = f"{bottom:7.3f} │{lines[-1]}"
    lines[1:-1] = [f"{'':7} │{line}" for line in lines[1:-1]]
    foot = f"{'':7} └{'─' * _WIDTH}\n{'':9}{left:<.3f}{right:>{_WIDTH - 5}.3f}"
    return "\n".join([f"{'':9}{found.target.encoder}", *lines, foot + f"  {found.source.encoder}"])
