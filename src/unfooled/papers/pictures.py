"""The figures of a page, drawn from what was measured, as SVG."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from unfooled.metrics.outcomes import outcomes
from unfooled.papers.findings import Findings, Quantity
from unfooled.papers.paper import Bars, Confused, Counts, Curves, Picture, Plane
from unfooled.report.figures import PALETTE, canvas, draw_confusion, draw_words


def draw(picture: Picture, findings: Findings, folder: Path, prefix: str) -> Path | None:
    """Write `PREFIX-NAME.svg`; None where nothing of it was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{prefix}-{picture.name}"
    if isinstance(picture, Bars):
        return _bars(picture, findings, stem)
    if isinstance(picture, Curves):
        return _curves(picture, findings, stem)
    if isinstance(picture, Plane):
        return _plane(picture, findings, stem)
    return _of_run(picture, findings, stem)


def _bars(picture: Bars, findings: Findings, stem: Path) -> Path | None:
    groups = [
        (name, [(title, quantity) for title, quantity in bars if findings.has(quantity)])
        for name, bars in picture.groups
    ]
    groups = [(name, bars) for name, bars in groups if bars]
    if not groups:
        return None
    titles = list(dict.fromkeys(title for _, bars in groups for title, _ in bars))
    width = 0.8 / len(titles)
    with canvas(max(6.0, 1.6 + 0.34 * len(groups) * (len(titles) + 1)), 3.8) as figure:
        axis = figure.subplots()
        for at, title in enumerate(titles):
            places, heights, below, above = [], [], [], []
            for place, (_, bars) in enumerate(groups):
                found = dict(bars).get(title)
                estimate = findings.estimate(found) if found else None
                if estimate is None or not estimate.n or math.isnan(estimate.value):
                    continue
                places.append(place + (at - (len(titles) - 1) / 2) * width)
                heights.append(estimate.value)
                below.append(max(0.0, estimate.value - estimate.low))
                above.append(max(0.0, estimate.high - estimate.value))
            axis.bar(places, heights, width * 0.92, color=PALETTE[at % len(PALETTE)], label=title, alpha=0.85)
            axis.errorbar(
                places, heights, [below, above], fmt="none", ecolor="#222222", elinewidth=0.9, capsize=2
            )
        axis.set_xticks(range(len(groups)), [name for name, _ in groups])
        _finish(axis, picture.title, picture.axis, shares=_shares(groups[0][1][0][1]))
        axis.legend(frameon=False, fontsize=8, ncols=min(6, len(titles)), loc="upper right")
        return _save(figure, stem)


def _curves(picture: Curves, findings: Findings, stem: Path) -> Path | None:
    lines = [(name, every) for name, every in picture.lines if findings.has(*every)]
    if not lines:
        return None
    with canvas(6.4, 3.8) as figure:
        axis = figure.subplots()
        for at, (name, every) in enumerate(lines):
            found = [findings.estimate(quantity) for quantity in every]
            colour = PALETTE[at % len(PALETTE)]
            axis.plot(
                picture.xs, [estimate.value for estimate in found], "o-", ms=3, color=colour, label=name
            )
            axis.fill_between(
                picture.xs,
                [estimate.low for estimate in found],
                [estimate.high for estimate in found],
                color=colour,
                alpha=0.12,
                linewidth=0,
            )
        axis.set_xlabel(picture.x_axis)
        _finish(axis, picture.title, picture.axis, shares=True)
        axis.legend(frameon=False, fontsize=8)
        return _save(figure, stem)


def _plane(picture: Plane, findings: Findings, stem: Path) -> Path | None:
    if picture.stage not in findings.done:
        return None
    told = findings.numbers(picture.stage)
    with canvas(5.6, 4.4) as figure:
        axis = figure.subplots()
        for number, label in enumerate(told["labels"]):
            mine = [point for point, of in zip(told["points"], told["classes"], strict=True) if of == number]
            across, up = zip(*mine, strict=True) if mine else ((), ())
            colour = PALETTE[number % len(PALETTE)]
            axis.plot(across, up, ".", ms=3, alpha=0.5, color=colour, label=label)
        first, second = (f"{100 * share:.1f} % of the variance" for share in told["explained"])
        axis.set_xlabel(f"first component, {first}")
        _finish(axis, picture.title, f"second component, {second}", shares=False)
        axis.legend(frameon=False, fontsize=8)
        return _save(figure, stem)


def _of_run(picture: Counts | Confused, findings: Findings, stem: Path) -> Path | None:
    if picture.run not in findings.done:
        return None
    results = findings.results(picture.run)
    if not results:
        return None
    labels = findings.labels(picture.run)
    confusion, words = outcomes(results, labels)
    if isinstance(picture, Counts):
        written = draw_words(words, picture.title, stem) if words.n else []
    else:
        written = draw_confusion(confusion, picture.title, stem)
    for path in written:
        if path.suffix != ".svg":
            path.unlink()
    return next((path for path in written if path.suffix == ".svg"), None)


def _shares(quantity: Quantity) -> bool:
    return quantity.unit == "%"


def _finish(axis: Any, title: str, name: str, *, shares: bool) -> None:
    if shares:
        axis.set_ylim(0, 1)
        axis.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axis.set_ylabel(name)
    axis.set_title(f"{title}; whiskers: 95 % intervals" if shares else title)
    axis.spines[["top", "right"]].set_visible(False)


def _save(figure: Any, stem: Path) -> Path:
    path = stem.with_name(f"{stem.name}.svg")
    figure.savefig(path, metadata={"Date": None})
    return path
