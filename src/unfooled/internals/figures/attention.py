"""Pictures of attention before and after an attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unfooled.internals.attention import Attention, ExampleAttention
from unfooled.internals.figures.heat import (
    ATTENTION,
    CHANGE,
    WIDTH,
    Axis,
    Numbers,
    frame_square,
    heat,
    points,
    redden,
    window,
    write_numbers,
)
from unfooled.report.diffs import visible
from unfooled.report.figures import PALETTE, canvas, save, shown

_WHEN = ("before", "after", "change")


def draw_scores(example: ExampleAttention, title: str, stem: Path, width: int = WIDTH) -> list[Path]:
    """Attention that each word receives, per layer (mean of heads) and on average: before, after, change."""
    axis = _axis_of(example, width)
    sides = [
        [side.scores.mean(axis=0)[axis.part] for side in layers] for layers in (example.before, example.after)
    ]
    names = _with_mean(sides, "layer")
    before, after = np.array(sides[0]), np.array(sides[1])
    top, reach = _limits(before, after)
    with canvas(max(6.0, 2.4 + 0.36 * axis.n), 3.4 + 0.7 * len(names)) as figure:
        panels = figure.subplots(3, 1)
        figure.suptitle(axis.title(title, "tokens"))
        for panel, values, labels in zip(panels, (before, after), (axis.before, axis.after), strict=False):
            image = heat(panel, values, labels, axis.edited, ATTENTION, 0.0, top, rows=names)
            write_numbers(panel, values, 0.36 * top)
        figure.colorbar(image, ax=panels[:2].tolist(), label="attention received", aspect=15, pad=0.01)
        change = after - before
        image = heat(panels[2], change, axis.either, axis.edited, CHANGE, -reach, reach, rows=names)
        write_numbers(panels[2], change, 0.6 * reach, signed=True)
        figure.colorbar(image, ax=panels[2], aspect=8, pad=0.01)
        for panel, when in zip(panels, _WHEN, strict=True):
            panel.set_ylabel(when)
        return save(figure, stem)


def draw_heads(example: ExampleAttention, title: str, stem: Path, width: int = WIDTH) -> list[Path]:
    """The same for every head of every layer, side by side."""
    axis = _axis_of(example, width)
    before, after = (
        np.concatenate([side.scores for side in layers])[:, axis.part]
        for layers in (example.before, example.after)
    )
    heads = np.array([len(side.scores) for side in example.before])
    top, reach = _limits(before, after)
    with canvas(max(8.0, 1.8 + 3 * (0.4 + 0.19 * axis.n)), 2.4 + max(0.11 * heads.sum(), 1.2)) as figure:
        panels = figure.subplots(1, 3, sharey=True)
        figure.suptitle(axis.title(title, "tokens"))
        for panel, values, labels in zip(panels, (before, after), (axis.before, axis.after), strict=False):
            image = heat(panel, values, labels, axis.edited, ATTENTION, 0.0, top, kind="dense")
        figure.colorbar(
            image, ax=panels[:2].tolist(), location="bottom", label="attention received", aspect=50
        )
        image = heat(panels[2], after - before, axis.either, axis.edited, CHANGE, -reach, reach, kind="dense")
        figure.colorbar(image, ax=panels[2], location="bottom", label="change", aspect=25)
        ends = np.cumsum(heads)
        for panel, when in zip(panels, _WHEN, strict=True):
            panel.set_title(when)
            for end in ends[:-1]:
                panel.axhline(end - 0.5, color="black", linewidth=0.6)
        panels[0].set_yticks(ends - heads / 2 - 0.5, [f"layer {at}" for at in range(1, len(heads) + 1)])
        panels[0].set_ylabel(f"{heads[0]} heads per layer, the first on top")
        return save(figure, stem)


def draw_maps(
    example: ExampleAttention, title: str, stem: Path, *, layer: int | None = None, width: int = WIDTH
) -> list[Path]:
    """Who (row) looks at whom (column): the mean of the heads of every layer, or every head of one layer."""
    axis = _axis_of(example, width)
    sides: list[list[Numbers]] = [
        [attention.maps.mean(axis=0) for attention in layers] if layer is None else list(layers[layer].maps)
        for layers in (example.before, example.after)
    ]
    names = _with_mean(sides, "layer" if layer is None else "head")
    before, after = (_stack([weights[axis.part, axis.part] for weights in side]) for side in sides)
    top, reach = _limits(before, after)
    pitch = axis.n + 1  # an empty row between two squares
    size = 0.13 * pitch
    with canvas(max(6.0, 2.6 + 3 * size), 2.4 + size * len(names), "compressed") as figure:
        panels = figure.subplots(1, 3)
        figure.suptitle(axis.title(title, "tokens"))
        for panel, values, labels in zip(panels, (before, after), (axis.before, axis.after), strict=False):
            image = heat(panel, values, labels, axis.edited, ATTENTION, 0.0, top, kind="square")
        figure.colorbar(image, ax=panels[:2].tolist(), location="bottom", label="attention", aspect=40)
        image = heat(
            panels[2], after - before, axis.either, axis.edited, CHANGE, -reach, reach, kind="square"
        )
        figure.colorbar(image, ax=panels[2], location="bottom", label="change", aspect=20)
        starts = range(0, len(before), pitch)
        for panel, when in zip(panels, _WHEN, strict=True):
            panel.set_title(when)
            for start in starts:
                frame_square(panel, start, axis.edited)
                panel.axhspan(start + axis.n - 0.5, start + axis.n + 0.5, color="white", linewidth=0)
            panel.set_ylim(len(before) - 0.5, -0.5)
        panels[0].set_yticks(
            [start + at for start in starts for at in range(axis.n)], axis.before * len(names), fontsize=5
        )
        redden(panels[0].get_yticklabels(), axis.edited * len(names))
        panels[2].set_yticks([start + (axis.n - 1) / 2 for start in starts], names)
        panels[2].yaxis.tick_right()
        panels[2].tick_params(length=0)
        return save(figure, stem)


def draw_attention_layers(attention: Attention, title: str, stem: Path) -> list[Path]:
    """How much attention moved, layer by layer, over the run."""
    layers = range(1, attention.layers + 1)
    kinds = [("score", "received by each token"), ("words", "received by words only")]
    if not attention.pools:
        kinds.append(("maps", "given by each token"))
    with canvas(max(5.0, 2.5 + 0.6 * len(layers)), 3.6) as figure:
        axis = figure.subplots()
        for at, (name, label) in enumerate(kinds):
            places = [layer + 0.16 * (at - (len(kinds) - 1) / 2) for layer in layers]
            points(axis, places, [attention.mean(name, layer) for layer in layers], PALETTE[at], label)
        axis.set_ylim(0, max(0.1, 1.05 * axis.get_ylim()[1]))
        axis.set_xticks(list(layers))
        axis.set_xlim(0.5, len(layers) + 0.5)
        axis.set_xlabel("layer")
        axis.set_ylabel("share of the attention that moved")
        axis.set_title(visible(title))
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
        return save(figure, stem)


def token_label(token: str | None) -> str:
    """Without the marks that tokenizers put at the beginning of words."""
    return "" if token is None else shown(token.lstrip("Ġ▁") or token)


def _axis_of(example: ExampleAttention, width: int) -> Axis:
    part = window([column.edited for column in example.columns], width)
    columns = example.columns[part]
    return Axis(
        part.start,
        len(example.columns),
        [token_label(column.before) for column in columns],
        [token_label(column.after) for column in columns],
        [column.edited for column in columns],
    )


def _stack(squares: list[Numbers]) -> Numbers:
    """One below the other, an empty row between two."""
    gap = np.full((1, squares[0].shape[1]), np.nan)
    return np.concatenate([part for square in squares for part in (square, gap)][:-1])


def _with_mean(sides: list[list[Numbers]], name: str) -> list[str]:
    """Names of the rows; where there are several, their mean joins both sides."""
    names = [f"{name} {number}" for number in range(1, len(sides[0]) + 1)]
    if len(names) > 1:
        for side in sides:
            side.append(np.mean(side, axis=0))
        names.append("mean")
    return names


def _limits(before: Numbers, after: Numbers) -> tuple[float, float]:
    """The largest attention and the largest change, for the colours."""
    top = float(np.nanmax([before, after], initial=0.0)) or 1.0
    return top, float(np.nanmax(np.abs(after - before), initial=0.0)) or 1.0
