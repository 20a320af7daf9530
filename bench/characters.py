"""Attacks on characters, side by side on one model: success, queries, words changed, pixels that differ.

    python bench/characters.py minilm=.bench/victims/minilm-mr --data mr --limit 36 --budget 500

Each attack gets the same rows, drawn with seed 0, of which those count that the model gets right. Pixels are
those of the successes, drawn by Chromium. The figures are in `characters.json`, by model and attack; the same
command goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unfooled.core.result import ATTACKED
from unfooled.core.session import Settings
from unfooled.data.loading import load_data
from unfooled.metrics.measures import measure
from unfooled.rates import wilson
from unfooled.runs.attack import Run, attack
from unfooled.runs.row_choice import take
from unfooled.victims.loading import load_victim

RESULTS = Path(__file__).resolve().parent / "characters.json"
ATTACKS = (
    "input-reduction",
    "typos@random",
    "typos",
    "bad-reorderings",
    "bad-invisible",
    "bad-homoglyphs",
    "bad-deletions",
    "pruthi",
    "charmer@pruthi",
    "charmer",
    "pruthi@paper",
    "pruthi@two",
)
UNSEEN = 0.01  # share of pixels that may differ where an attack claims to be invisible


def mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def figures(run: Run, pixels: Mapping[int, float], budget: int) -> dict[str, Any]:
    results = [result for result in run.results() if result.outcome in ATTACKED]
    won = [result for result in results if result.outcome == "success"]
    seen = [pixels[result.key] for result in won if result.key in pixels]
    low, high = wilson(len(won), len(results))
    return {
        "n": len(results),
        "budget": budget,
        "broken": len(won),
        "success": [round(len(won) / len(results), 4), round(low, 4), round(high, 4)],
        "queries": mean([result.queries for result in results]),
        "changed": mean([len(result.edits) for result in won]),
        "unseen": sum(dict(result.facts).get("unseen", 0) for result in results),
        "pixels": mean(seen),
        "pixels_over": sum(share > UNSEEN for share in seen),
        "pixels_of": len(seen),
        "errors": run.summary().errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="NAME=MODEL")
    parser.add_argument("--data", default="mr")
    parser.add_argument("--limit", type=int, default=36)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS))
    parser.add_argument("--out", type=Path, default=Path(".bench/characters"))
    options = parser.parse_args()
    name, _, model = options.model.partition("=")
    victim = load_victim(model)
    rows = take(load_data(options.data), options.limit, seed=0)
    for recipe in options.attacks:
        settings = Settings(budget=options.budget)
        run = attack(victim, rows, recipe, out=options.out / name / recipe, settings=settings)
        # A reduced text is meant to be seen: nothing to compare.
        drawn = {} if recipe == "input-reduction" else measure(run, "picture")
        found = figures(run, next(iter(drawn.values()), {}), options.budget)
        print(recipe, json.dumps(found), flush=True)
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        kept.setdefault(name, {})[recipe] = found
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
