"""Pictures of embeddings before and after an attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unfooled.internals.embeddings import Embeddings, ExampleEmbeddings
from unfooled.internals.figures.heat import WIDTH, Axis, heat, points, window
from unfooled.report.diffs import visible
from unfooled.report.figures import INK, MARK, PALETTE, canvas, save, shown


def draw_embeddings(example: ExampleEmbeddings, title: str, stem: Path, width: int = WIDTH) -> list[Path]:
    """L2 change of every word in every layer; each layer in shades of its own largest change."""
    part = window(example.edited, width)
    axis = Axis(
        part.start,
        len(example.edited),
        [shown(word) for word in example.before[part]],
        [shown(word) for word in example.after[part]],
        list(example.edited[part]),
    )
    largest = example.l2.max(axis=1, keepdims=True)
    shades = (example.l2 / np.where(largest > 0, largest, 1.0))[:, part]
    names = [layer_name(layer) for layer in range(len(example.l2))]
    notes = [
        f"max {float(top):.3g}, R_e {_two(relative)}"
        for top, relative in zip(largest[:, 0], example.relative, strict=True)
    ]
    with canvas(max(6.0, 3.8 + 0.34 * axis.n), 2.1 + 0.36 * len(names)) as figure:
        panel = figure.subplots()
        # Like the layers of the model, the first at the bottom.
        image = heat(panel, shades[::-1], axis.both, axis.edited, "OrRd", 0.0, 1.0, rows=names[::-1])
        figure.suptitle(axis.title(title, "words"))
        side = panel.secondary_yaxis("right")
        side.set_yticks(range(len(names)), notes[::-1], fontsize=8)
        side.tick_params(length=0)
        figure.colorbar(image, ax=panel, label="L2 change, of\nthe layer's max", aspect=12, pad=0.02)
        return save(figure, stem)


def draw_embedding_layers(embeddings: Embeddings, title: str, stem: Path) -> list[Path]:
    """R_e and sparsity, layer by layer, over the run."""
    layers = range(embeddings.layers)
    with canvas(max(8.0, 4.0 + 0.8 * len(layers)), 3.8) as figure:
        left, right = figure.subplots(1, 2)
        figure.suptitle(visible(title))
        points(
            left, layers, [embeddings.mean("relative", layer) for layer in layers], INK, "words of the layer"
        )
        sentence = embeddings.sentence
        if sentence.n:
            left.axhline(sentence.value, color=MARK, label=f"sentence vector: {sentence.value:.2f}")
            left.axhspan(sentence.low, sentence.high, color=MARK, alpha=0.15, linewidth=0)
        left.set_title("relative change R_e")
        left.set_ylim(0, 1.1 * left.get_ylim()[1])
        kinds = (("on_edited", "share on edited words"), ("hoyer", "Hoyer"), ("gini", "Gini"))
        for at, (name, label) in enumerate(kinds):
            places = [layer + 0.14 * (at - 1) for layer in layers]
            points(right, places, [embeddings.mean(name, layer) for layer in layers], PALETTE[at], label)
        right.set_title("sparsity of the change (1: all on one word)")
        right.set_ylim(0, 1.03)
        for axis in (left, right):
            names = [layer_name(layer) for layer in layers]
            axis.set_xticks(list(layers), names, rotation=0 if len(layers) < 5 else 45)
            axis.set_xlim(-0.5, len(layers) - 0.5)
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(frameon=False, fontsize=8)
        return save(figure, stem)


def layer_name(layer: int) -> str:
    return "input" if layer == 0 else f"layer {layer}"


def _two(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"
