"""An analysis as a folder: pictures as SVG and PNG, numbers as CSV, `index.md` and `summary.json`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.errors import UserError
from unfooled.files import write_table
from unfooled.internals.analysis import PARTS, Analysis
from unfooled.internals.attention import ExampleAttention, LayerShift
from unfooled.internals.embeddings import ExampleEmbeddings, LayerChange
from unfooled.internals.figures import attention as figures_attention
from unfooled.internals.figures import embeddings as figures_embeddings
from unfooled.internals.figures import neighbourhood as figures_neighbourhood
from unfooled.internals.figures.heat import WIDTH
from unfooled.internals.figures.pca import draw_pca
from unfooled.internals.figures.theorem import draw_theorem
from unfooled.internals.tables import analysis_dict, analysis_rows, layer_tables
from unfooled.internals.theorem import BoundCheck
from unfooled.progress import ProgressObserver
from unfooled.report import figures
from unfooled.report.diffs import visible

_OURS = re.compile(r"[a-z0-9-]+\.(csv|svg|png)")
_SUMMARY = "summary.json"


class AnalysisFolder:
    """Writes into one folder and remembers what it wrote, with a line about each.

    Tables are written at once, pictures when `draw` is called: numbers must not wait for drawings.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.entries: list[tuple[str, list[str]]] = []
        self._drawings: list[tuple[str, Callable[[Path], list[Path]]]] = []
        out.mkdir(parents=True, exist_ok=True)
        _remove_earlier(out)

    @property
    def files(self) -> list[str]:
        return [name for _, names in self.entries for name in names]

    def picture(self, stem: str, about: str, draw: Callable[[Path], list[Path]]) -> None:
        self._add(about, [f"{stem}{suffix}" for suffix in figures.FORMATS])
        self._drawings.append((stem, draw))

    def table(self, name: str, about: str, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
        self._add(about, [name])
        write_table(self.out / name, header, ([_cell(value) for value in row] for row in rows))

    def draw(self, observer: ProgressObserver) -> None:
        observer.started(len(self._drawings), what="drawing")
        for stem, draw in self._drawings:
            draw(self.out / stem)
            observer.advanced()

    def _add(self, about: str, names: list[str]) -> None:
        self.entries.append((about, names))
        self.summarise({"kind": "analysis", "finished": False})  # an interrupted one can be cleared away

    def summarise(self, content: dict[str, Any]) -> None:
        text = json.dumps(_plain(content | {"files": self.files}), indent=2, ensure_ascii=False)
        (self.out / _SUMMARY).write_text(text + "\n", encoding="utf-8")


def write_analysis(
    analysis: Analysis,
    out: str | Path,
    *,
    width: int = WIDTH,
    every_head: bool = False,
    observer: ProgressObserver | None = None,
) -> Path:
    """Write everything of `analysis` to the folder `out`; files of an earlier analysis there are replaced.

    `width` is the most words a picture shows. `every_head` adds the full attention map of every single head.
    """
    if not any(getattr(analysis, part) for part in PARTS):
        raise UserError(f"nothing can be made: {'; '.join(analysis.notes)}", "see unfooled analyse --help")
    path = Path(out).expanduser()
    title = f"{analysis.attack} on {analysis.victim}, {analysis.data}"
    try:
        folder = AnalysisFolder(path)
        _write_outcomes(folder, analysis, title)
        _write_attention(folder, analysis, title, width, every_head)
        _write_embeddings(folder, analysis, title, width)
        _write_theorem_and_pca(folder, analysis)
        _write_neighbourhood(folder, analysis, title)
        (path / "index.md").write_text(_index(analysis, title, folder), encoding="utf-8")
        numbers = analysis_dict(analysis)
        folder.summarise(numbers | {"finished": False})
        folder.draw(observer or ProgressObserver())
        folder.summarise(numbers | {"finished": True})
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror or error})",
            "free some space or choose another --out",
        ) from error
    return path


def _write_outcomes(folder: AnalysisFolder, analysis: Analysis, title: str) -> None:
    if (confusion := analysis.confusion) is not None:
        folder.picture(
            "confusion",
            "Confusion matrices before and after the attack",
            lambda stem: figures.draw_confusion(confusion, title, stem),
        )
        folder.table(
            "confusion.csv",
            "the same as numbers",
            ("when", "true", "decided", "count"),
            (
                (when, confusion.labels[row], confusion.decisions(when)[column], int(count))
                for when in ("before", "after")
                for (row, column), count in np.ndenumerate(getattr(confusion, when))
            ),
        )
    if (words := analysis.words) is not None:
        folder.picture(
            "words-changed",
            "Words changed in successful attacks",
            lambda stem: figures.draw_words(words, title, stem),
        )
        folder.table(
            "words-changed.csv", "the same as numbers", ("words_changed", "successes"), words.counts.items()
        )


def _write_layers(
    folder: AnalysisFolder,
    stem: str,
    about: str,
    draw: Callable[[Path], list[Path]],
    kind: type[LayerShift] | type[LayerChange],
    rows: Iterable[LayerShift | LayerChange],
) -> None:
    folder.picture(stem, about, draw)
    header = [field.name for field in fields(kind)]
    folder.table(f"{stem}.csv", "the same for each example", header, (asdict(row).values() for row in rows))


def _write_attention(
    folder: AnalysisFolder, analysis: Analysis, title: str, width: int, every_head: bool
) -> None:
    attention = analysis.attention
    if attention is None:
        return
    _write_layers(
        folder,
        "attention-layers",
        "Share of the attention that moved, per layer, mean over the run",
        lambda stem: figures_attention.draw_attention_layers(attention, title, stem),
        LayerShift,
        attention.shifts,
    )
    for example in attention.examples:
        _write_attention_of(folder, example, title, width, every_head)


def _write_attention_of(
    folder: AnalysisFolder, example: ExampleAttention, title: str, width: int, every_head: bool
) -> None:
    key = example.key
    heading = f"{title}, example {key}"
    folder.picture(
        f"attention-{key}",
        f"Example {key}: attention that each word receives, per layer",
        lambda stem: figures_attention.draw_scores(example, heading, stem, width),
    )
    if sum(len(side.scores) for side in example.before) > 1:
        folder.picture(
            f"attention-{key}-heads",
            f"Example {key}: the same for every head",
            lambda stem: figures_attention.draw_heads(example, heading, stem, width),
        )
    if not example.pools:
        folder.picture(
            f"attention-{key}-maps",
            f"Example {key}: who looks at whom, mean of the heads",
            lambda stem: figures_attention.draw_maps(example, heading, stem, width=width),
        )
        for layer in range(len(example.before)) if every_head else ():
            _write_heads_of_layer(folder, example, heading, layer, width)
    folder.table(
        f"attention-{key}.csv",
        f"Example {key}: attention received as numbers",
        ("layer", "head", "column", "before_token", "after_token", "edited", "before", "after", "change"),
        (
            (layer, head, at, column.before, column.after, column.edited, first, then, then - first)
            for layer, (before, after) in enumerate(zip(example.before, example.after, strict=True), 1)
            for head, (old, new) in enumerate(zip(before.scores, after.scores, strict=True), 1)
            for at, (column, first, then) in enumerate(zip(example.columns, old, new, strict=True))
        ),
    )


def _write_heads_of_layer(
    folder: AnalysisFolder, example: ExampleAttention, heading: str, layer: int, width: int
) -> None:
    folder.picture(
        f"attention-{example.key}-layer-{layer + 1}",
        f"Example {example.key}: who looks at whom, every head of layer {layer + 1}",
        lambda stem: figures_attention.draw_maps(
            example, f"{heading}, layer {layer + 1}", stem, layer=layer, width=width
        ),
    )


def _write_embeddings(folder: AnalysisFolder, analysis: Analysis, title: str, width: int) -> None:
    embeddings = analysis.embeddings
    if embeddings is None:
        return
    _write_layers(
        folder,
        "embedding-layers",
        "Relative change R_e and sparsity of the change, per layer, mean over the run",
        lambda stem: figures_embeddings.draw_embedding_layers(embeddings, title, stem),
        LayerChange,
        embeddings.changes,
    )
    folder.table(
        "sentence-change.csv", "R_e of each sentence vector", ("key", "relative"), embeddings.sentences
    )
    for example in embeddings.examples:
        if example.before:
            _write_embeddings_of(folder, example, title, width)


def _write_embeddings_of(folder: AnalysisFolder, example: ExampleEmbeddings, title: str, width: int) -> None:
    key = example.key
    folder.picture(
        f"embedding-{key}",
        f"Example {key}: L2 change of each word's embedding, per layer",
        lambda stem: figures_embeddings.draw_embeddings(example, f"{title}, example {key}", stem, width),
    )
    folder.table(
        f"embedding-{key}.csv",
        f"Example {key}: the same as numbers",
        ("layer", "position", "before_word", "after_word", "edited", "l2", "length_before"),
        (
            (layer, place, before, after, edited, change, length)
            for layer, (changes, lengths) in enumerate(zip(example.l2, example.lengths, strict=True))
            for place, before, after, edited, change, length in zip(
                example.places, example.before, example.after, example.edited, changes, lengths, strict=True
            )
        ),
    )


def _write_theorem_and_pca(folder: AnalysisFolder, analysis: Analysis) -> None:
    if (theorem := analysis.theorem) is not None:
        folder.picture(
            "theorem",
            "Theorem 1: measured change of attention scores against the bound",
            lambda stem: draw_theorem(theorem, "Theorem 1: E|s′ − s| ≤ Cδ/√d", stem),
        )
        folder.table(
            "theorem.csv",
            "the same as numbers",
            [field.name for field in fields(BoundCheck)],
            (asdict(check).values() for check in theorem.checks),
        )
    if (pca := analysis.pca) is not None:
        folder.picture("pca", f"PCA of {pca.data}", lambda stem: draw_pca(pca, stem))
        folder.table(
            "pca.csv",
            "the same as numbers",
            ("key", "label", "first", "second"),
            (
                (key, pca.labels[int(label)], *point)
                for key, label, point in zip(pca.keys, pca.classes, pca.points, strict=True)
            ),
        )


def _write_neighbourhood(folder: AnalysisFolder, analysis: Analysis, title: str) -> None:
    for area in analysis.neighbours:
        heading = f"{title}, example {area.key}"
        folder.picture(
            f"neighbours-{area.key}",
            f"Example {area.key}: the nearest words of the original and of the adversarial one, in its place",
            partial(figures_neighbourhood.draw_neighbours, area, heading),
        )
        folder.table(
            f"neighbours-{area.key}.csv",
            "the same as numbers",
            ("near", "rank", "word", "model", "decided", "p_true"),
            (
                (word.near, word.rank, word.word, name, area.labels[word.decided[at]], word.p_true[at])
                for word in area.neighbours
                for at, name in enumerate(area.models)
            ),
        )
    for place, field in enumerate(analysis.field):
        heading = f"{title}, example {field.key}"
        stem = f"field-{field.key}-{place}"
        folder.picture(
            stem,
            f"Example {field.key}: vectors around both words, and what {field.model} makes of them",
            partial(figures_neighbourhood.draw_field, field, heading),
        )
        folder.table(
            f"{stem}.csv",
            "the same as numbers",
            ("around", "decided", "x", "y"),
            (
                (field.words[int(near)], field.labels[int(said)], *point)
                for near, said, point in zip(field.near, field.decided, field.points, strict=True)
            ),
        )


def _index(analysis: Analysis, title: str, folder: AnalysisFolder) -> str:
    lines = [
        f"# Analysis of {_safe(title)}",
        "",
        f"Run {_safe(analysis.run)}: "
        + ", ".join(f"{count} {name}" for name, count in analysis.counts.items())
        + (f"; {analysis.looked_at} successes looked at from the inside." if analysis.looked_at else "."),
        "Only words that exist before and after the attack, and that the model reads, are compared.",
        "",
        "| | value | 95 % interval | n |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {_safe(row.name)} | {row.value} | {row.interval} | {row.n} |" for row in analysis_rows(analysis)
    ]
    for table in layer_tables(analysis):
        lines += ["", f"## {_safe(table.title)}", "", f"| {' | '.join(map(_safe, table.header))} |"]
        lines += ["|" + "---|" * len(table.header), *(f"| {' | '.join(row)} |" for row in table.rows)]
    if analysis.notes:
        lines += ["", "## Left out", "", *(f"- {_safe(note)}" for note in analysis.notes)]
    lines += ["", "## Files", ""]
    for about, names in folder.entries:
        links = " · ".join(f"[{name}]({name})" for name in names)
        lines.append(f"- {_safe(about)}: {links}")
    for about, names in folder.entries:
        if names[0].endswith(".svg"):
            lines += ["", f"### {_safe(about)}", "", f"![{_safe(about)}]({names[0]})"]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    """Text that cannot start markup of its own."""
    shown = " ".join(visible(text).split())
    for mark, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        shown = shown.replace(mark, instead)
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", shown)


def _remove_earlier(out: Path) -> None:
    """Pictures of examples that are not chosen any more must not stay behind."""
    summary = out / _SUMMARY
    try:
        earlier = json.loads(summary.read_text(encoding="utf-8")) if summary.is_file() else {}
    except ValueError:
        return
    if isinstance(earlier, dict) and earlier.get("kind") == "analysis":
        for name in earlier.get("files", []):
            if isinstance(name, str) and _OURS.fullmatch(name):
                (out / name).unlink(missing_ok=True)


def _cell(value: Any) -> Any:
    """Six digits: more would change with the machine."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return int(value) if isinstance(value, bool | np.bool_) else "" if value is None else value


def _plain(value: Any) -> Any:
    """JSON without nan, floats rounded as in the tables."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.6g}")
    return value
