"""Hard-label attacks side by side: success, similarity and words changed after so many queries.

    python bench/hard_label.py MODEL --data mr --limit 100 --budget 1000 --encoder potion \
        --attacks hlbb texthoaxer hqa limeattack --out .bench/hard-label/lstm-mr

The model tells its decision only. Every attack gets the same rows, candidates and encoder. What a budget
below `--budget` finds is read off the curve that each result keeps. Similarities are compared with those of
the first attack over the rows that both broke by then, with the interval of the mean difference. `--check`
measures the texts found in the end with another encoder, which no attack has raised. The same command goes
on.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite import Decides
from unfooled.core.curve import CurvePoint, best_within, curve_of
from unfooled.core.recipe import load_recipe, with_everywhere
from unfooled.core.result import ATTACKED, Result
from unfooled.core.session import Settings
from unfooled.data.loading import load_data
from unfooled.metrics.progress import MARKS
from unfooled.report import figures
from unfooled.resources.encoders import open_encoder
from unfooled.runs.attack import attack
from unfooled.runs.row_choice import take
from unfooled.victims.loading import load_victim

DRAWN_FROM = 30
Curves = Mapping[int, list[CurvePoint]]  # row → its curve; empty where the attack failed


def mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % of the mean, by the normal approximation."""
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))
    reach = 1.96 * spread / math.sqrt(len(values))
    return round(middle - reach, 4), round(middle + reach, 4)


def compared(curves: Mapping[str, Curves], budget: int) -> list[dict[str, Any]]:
    """A row for each attack and mark."""
    first = next(iter(curves.values()))
    table = []
    for mark in (mark for mark in MARKS if mark <= budget):
        base = {key: best_within(points, mark) for key, points in first.items()}
        for name, rows in curves.items():
            best = {key: best_within(points, mark) for key, points in rows.items()}
            found = [point for point in best.values() if point is not None]
            gains = [
                best[key].similarity - base[key].similarity
                for key in best
                if best[key] is not None and base.get(key) is not None
            ]
            table.append(
                {
                    "queries": mark,
                    "attack": name,
                    "n": len(rows),
                    "broken": len(found),
                    "similarity": mean([point.similarity for point in found]),
                    "changed": mean([point.changed for point in found]),
                    "both": len(gains),
                    "gain": mean(gains),
                    "gain_interval": interval(gains),
                }
            )
    return table


def draw(curves: Mapping[str, Curves], budget: int, stem: Path) -> None:
    """Mean similarity over queries, of the rows that every attack had broken after `DRAWN_FROM` queries."""
    marks = sorted({round(DRAWN_FROM * (budget / DRAWN_FROM) ** (step / 40)) for step in range(41)})
    shared = [
        key
        for key in next(iter(curves.values()))
        if all(best_within(rows.get(key, []), DRAWN_FROM) is not None for rows in curves.values())
    ]
    with figures.canvas(5.2, 3.2) as figure:
        axes = figure.subplots()
        for (name, rows), colour in zip(curves.items(), figures.PALETTE, strict=False):
            means = [
                sum(point.similarity for key in shared if (point := best_within(rows[key], mark)))
                / len(shared)
                for mark in marks
            ]
            axes.plot(marks, means, label=name, color=colour)
        axes.set_xscale("log")
        ticks = [mark for mark in (30, 100, 300, 1000, 3000) if mark <= budget]
        axes.set_xticks(ticks, labels=[f"{mark:,}" for mark in ticks])
        axes.set_xlabel("queries per text")
        axes.set_ylabel("mean similarity of the best text")
        axes.set_title(f"{len(shared)} texts that all broke within {DRAWN_FROM} queries")
        axes.legend(frameon=False)
        figures.save(figure, stem)


def _before(result: Result) -> str:
    return result.original


def _after(result: Result) -> str:
    return result.perturbed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", default="mr")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--encoder", default="potion")
    parser.add_argument("--check", default="")
    parser.add_argument("--attacks", nargs="+", default=["hlbb", "texthoaxer", "hqa", "limeattack"])
    parser.add_argument("--figure", type=Path, help="stem of a picture of similarity over queries")
    parser.add_argument("--out", type=Path, default=Path(".bench/hard-label"))
    options = parser.parse_args()
    victim = Decides(load_victim(options.model))
    rows = take(load_data(options.data), options.limit, seed=0)
    curves: dict[str, Curves] = {}
    ends: dict[str, Any] = {}
    for name in options.attacks:
        recipe = with_everywhere(load_recipe(name), "encoder", options.encoder)
        run = attack(victim, rows, recipe, out=options.out / name, settings=Settings(budget=options.budget))
        results = [result for result in run.results() if result.outcome in ATTACKED]
        curves[name] = {result.key: curve_of(result.facts) for result in results}
        won = [result for result in results if result.outcome == "success"]
        ends[name] = {"queries": mean([result.queries for result in results]), "errors": run.summary().errors}
        if options.check:
            encoder = open_encoder(options.check)
            pairs = zip(
                *(encoder([text(result) for result in won]) for text in (_before, _after)), strict=True
            )
            ends[name][f"similarity by {options.check}"] = mean([float(old @ new) for old, new in pairs])
        print(name, json.dumps(ends[name]), flush=True)
    if options.figure:
        draw(curves, options.budget, options.figure)
    table = compared(curves, options.budget)
    for row in table:
        print(json.dumps(row))
    (options.out / "table.json").write_text(
        json.dumps(
            {"model": options.model, "encoder": options.encoder, "ends": ends, "table": table}, indent=2
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
