"""The main numbers of an analysis, once for the terminal and once for files."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unfooled.internals.analysis import Analysis
from unfooled.internals.figures.embeddings import layer_name
from unfooled.internals.figures.neighbourhood import wrong_share
from unfooled.internals.neighbourhood import Side
from unfooled.internals.theorem import BoundCheck, Theorem
from unfooled.metrics.summary import Mean, Rate
from unfooled.report.tables import TableRow


def analysis_rows(analysis: Analysis) -> list[TableRow]:
    """Every number with its 95 % interval and the number of examples behind it."""
    return [
        *_outcome_rows(analysis),
        *_attention_rows(analysis),
        *_embedding_rows(analysis),
        *_theorem_rows(analysis),
        *_pca_rows(analysis),
        *_neighbour_rows(analysis),
    ]


def _outcome_rows(analysis: Analysis) -> list[TableRow]:
    rows = []
    if (confusion := analysis.confusion) is not None:
        for when in ("before", "after"):
            right = int(np.trace(getattr(confusion, when)))
            rows.append(_rate(f"right {when} the attack", Rate.of(right, confusion.n)))
    if (words := analysis.words) is not None:
        rows.append(_mean("words changed (of successes)", words.words))
        rows.append(_rate("successes with one word changed", Rate.of(words.counts.get(1, 0), words.n)))
    return rows


def _attention_rows(analysis: Analysis) -> list[TableRow]:
    attention = analysis.attention
    if attention is None:
        return []
    last = attention.layers
    places: list[tuple[str, int | None]] = [("", None)] if last == 1 else [(", mean of layers", None)]
    if last > 1:
        places += [(", layer 1", 1), (f", layer {last}", last)]
    rows = [_mean(f"attention moved{where}", attention.mean("score", layer)) for where, layer in places]
    rows.append(_mean(f"attention moved, words only{places[0][0]}", attention.mean("words")))
    return rows


def _embedding_rows(analysis: Analysis) -> list[TableRow]:
    embeddings = analysis.embeddings
    if embeddings is None:
        return []
    rows = [_mean("R_e, sentence vector", embeddings.sentence)]
    last = embeddings.layers - 1
    if last > 1:
        rows.append(_mean("R_e, words, mean of layers", embeddings.mean("relative")))
    for layer in dict.fromkeys((1, last)) if last >= 1 else (last,):
        where = layer_name(layer)
        rows.append(_mean(f"R_e, words, {where}", embeddings.mean("relative", layer)))
        rows.append(_mean(f"change on edited words, {where}", embeddings.mean("on_edited", layer)))
        rows.append(_mean(f"sparsity (Hoyer), {where}", embeddings.mean("hoyer", layer)))
    return rows


def _theorem_rows(analysis: Analysis) -> list[TableRow]:
    if analysis.theorem is None:
        return []
    rows = []
    for source, name in (("random", "random matrices"), ("model", "the model's heads")):
        if checks := analysis.theorem.of(source):
            kept = sum(check.holds for check in checks)
            rows.append(TableRow(f"Theorem 1 holds, {name}", f"{kept}/{len(checks)}", "", str(len(checks))))
            rows.append(
                TableRow(
                    f"  largest E|s'−s| / bound, {name}", f"{largest_ratio(checks):.3f}", "", str(len(checks))
                )
            )
    return rows


def _pca_rows(analysis: Analysis) -> list[TableRow]:
    pca = analysis.pca
    if pca is None:
        return []
    shares = f"{pca.explained[0]:.1%} + {pca.explained[1]:.1%}"
    return [
        TableRow("variance of the two components", shares, "", str(len(pca.classes))),
        _rate("nearest class mean in the plane", pca.nearest),
    ]


def _neighbour_rows(analysis: Analysis) -> list[TableRow]:
    rows = []
    sides: tuple[Side, ...] = ("original", "adversarial")
    for at, name in enumerate(analysis.neighbours[0].models if analysis.neighbours else ()):
        for side in sides:
            wrong, n = np.sum([around.wrong(at, side) for around in analysis.neighbours], axis=0).tolist()
            rows.append(_rate(f"neighbours of the {side} word that fool it, {name}", Rate.of(wrong, n)))
    for name in dict.fromkeys(field.model for field in analysis.field):
        for place, side in enumerate(sides):
            counted = [wrong_share(field, place) for field in analysis.field if field.model == name]
            wrong, n = np.sum(counted, axis=0).tolist()
            rows.append(_rate(f"vectors around the {side} word that fool it, {name}", Rate.of(wrong, n)))
    return rows


class LayerTable(NamedTuple):
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


def layer_tables(analysis: Analysis) -> list[LayerTable]:
    """The same numbers layer by layer, and the theorem's by dimension and layer."""
    tables = []
    if (attention := analysis.attention) is not None:
        names = ("score", "words", "maps", "unpaired_before", "unpaired_after")
        header = ("layer", "received", "words only", "given", "on deleted words", "on inserted words")
        rows = [
            (str(layer), *(_three(attention.mean(name, layer).value) for name in names))
            for layer in range(1, attention.layers + 1)
        ]
        tables.append(LayerTable("Attention that moved (total variation)", header, rows))
    if (embeddings := analysis.embeddings) is not None:
        names = ("l2", "relative", "on_edited", "hoyer", "gini")
        header = ("layer", "L2 per word", "R_e", "on edited words", "Hoyer", "Gini")
        rows = [
            (layer_name(layer), *(_three(embeddings.mean(name, layer).value) for name in names))
            for layer in range(embeddings.layers)
        ]
        tables.append(LayerTable("Change of the embeddings", header, rows))
    if analysis.theorem is not None:
        tables += _theorem_tables(analysis.theorem)
    return tables


def _theorem_tables(theorem: Theorem) -> list[LayerTable]:
    names = ("constant", "bound", "random", "worst", "exact")
    common = ("C", "bound", "random Δx", "worst Δx", "worst Δx, exact")
    rows = [
        (str(check.d), *(_three(getattr(check, name)) for name in names)) for check in theorem.of("random")
    ]
    tables = [LayerTable("Theorem 1, random matrices: E|s′ − s|", ("d", *common), rows)]
    model = theorem.of("model")
    if model:
        rows = []
        for layer in sorted({check.layer for check in model}):
            heads = [check for check in model if check.layer == layer]
            means = (_three(float(np.mean([getattr(head, name) for head in heads]))) for name in names)
            above = sum(head.biased > head.bound for head in heads)
            rows.append((str(layer), *means, _three(largest_ratio(heads)), f"{above}/{len(heads)}"))
        header = ("layer", *common, "largest ratio to the bound", "heads above it with bias")
        tables.append(LayerTable("Theorem 1, the model's own matrices: mean of the heads", header, rows))
    return tables


def largest_ratio(checks: list[BoundCheck]) -> float:
    """How near any check comes to the bound; above 1 it is broken."""
    return max(
        (max(check.random, check.worst) / check.bound for check in checks if check.bound), default=math.nan
    )


def analysis_dict(analysis: Analysis) -> dict[str, Any]:
    """Everything but the single examples, as JSON; nan becomes null."""
    found: dict[str, Any] = {
        "kind": "analysis",
        "run": analysis.run,
        "attack": analysis.attack,
        "victim": analysis.victim,
        "data": analysis.data,
        "counts": analysis.counts,
        "looked_at": analysis.looked_at,
        "notes": list(analysis.notes),
    }
    if (confusion := analysis.confusion) is not None:
        found["confusion"] = {
            "labels": list(confusion.labels),
            "decisions": {when: list(confusion.decisions(when)) for when in ("before", "after")},
            "before": confusion.before.tolist(),
            "after": confusion.after.tolist(),
        }
    if (words := analysis.words) is not None:
        found["words"] = {
            "counts": {str(number): count for number, count in words.counts.items()},
            "words": words.words.to_dict(),
            "share": words.share.to_dict(),
        }
    if (attention := analysis.attention) is not None:
        names = ("score", "words", "maps", "unpaired_before", "unpaired_after")
        found["attention"] = {
            "mean": {name: attention.mean(name).to_dict() for name in names},
            "layers": [
                {"layer": layer} | {name: attention.mean(name, layer).to_dict() for name in names}
                for layer in range(1, attention.layers + 1)
            ],
        }
    if (embeddings := analysis.embeddings) is not None:
        names = ("l2", "relative", "on_edited", "hoyer", "gini")
        found["embeddings"] = {
            "sentence_relative": embeddings.sentence.to_dict(),
            "edited_words_not_read": embeddings.unread,
            "layers": [
                {"layer": layer} | {name: embeddings.mean(name, layer).to_dict() for name in names}
                for layer in range(embeddings.layers)
            ],
        }
    if (theorem := analysis.theorem) is not None:
        found["theorem"] = {
            source: {
                "checks": len(checks),
                "holds": sum(check.holds for check in checks),
                "largest_ratio": largest_ratio(checks),
                "above_bound_with_bias": sum(check.biased > check.bound for check in checks),
            }
            for source in ("random", "model")
            if (checks := theorem.of(source))
        }
    if (pca := analysis.pca) is not None:
        found["pca"] = {
            "data": pca.data,
            "features": pca.features,
            "rows": len(pca.classes),
            "skipped": pca.skipped,
            "explained": list(pca.explained),
            "nearest_class_mean": pca.nearest.to_dict(),
            "largest_class": pca.largest,
        }
    return found


def _three(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _rate(name: str, rate: Rate) -> TableRow:
    if not rate.n:
        return TableRow(name, "–", "", "0")
    return TableRow(name, f"{rate.value:.1%}", f"{rate.low:.1%} – {rate.high:.1%}", str(rate.n))


def _mean(name: str, mean: Mean) -> TableRow:
    if not mean.n:
        return TableRow(name, "–", "", "0")
    return TableRow(name, f"{mean.value:.3f}", f"{mean.low:.3f} – {mean.high:.3f}", str(mean.n))
