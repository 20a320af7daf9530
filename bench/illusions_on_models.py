"""Planted illusions and honest defences around models that were really trained: who is called an illusion?

    python bench/illusions_on_models.py base=models/cnn retuned=models/retuned fact=models/fact --data mr

The models named are honest; `base` is what is wrapped for the planted ones, `retuned` the control. All are
attacked on the same rows, from one half of the data, which those that memorise know; the other half is fresh.
A planted one that gains must end as an illusion, an honest one must not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from planted_models import Abstaining, Memorising, Remembering
from unfooled.checks.evaluate import Evaluation, evaluate
from unfooled.core.recipe import load_recipe, with_everywhere
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.runs.row_choice import all_but, take
from unfooled.victims.loading import load_victim


def planted(base: Victim, train: Dataset, test: Dataset) -> dict[str, Victim]:
    rows = [(example.text().string, example.label) for example in test.aligned(base.labels)]
    learned = [example.text().string for example in train]
    return {
        "abstains": Abstaining(base, [*learned, *(text for text, _ in rows)]),
        "exact": Memorising(base, rows),
        "fuzzy": Memorising(base, rows, alike=0.5),
        "remembers": Remembering(base),
    }


def show(found: Evaluation, deceiving: Mapping[str, Victim]) -> None:
    print("\n| model | clean | under attack | all checks | verdict | cause |\n|---|---|---|---|---|---|")
    for model in found.models:
        verdict = model.verdict
        cells = [f"{100 * rate.value:.1f}" for rate in (model.clean, model.active, model.worst)]
        cells += [verdict.status, "; ".join(verdict.causes)] if verdict else [model.role, ""]
        print(f"| {model.name} | {' | '.join(cells)} |")
    for name, verdict in found.verdicts.items():
        kind = "planted" if name in deceiving else "honest"
        print(f"\n{kind} {name}: {verdict.sentence}")
        print("".join(f"\n  {finding}" for finding in verdict.findings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    parser.add_argument("--data", default="mr")
    parser.add_argument("--attack", default="textfooler")
    parser.add_argument("--encoder", default="potion", help="the fastest, for attacks that have one")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(".bench/illusions"))
    options = parser.parse_args()
    honest = {name: load_victim(spec) for name, _, spec in (model.partition("=") for model in options.models)}
    train, test = (load_data(options.data, split=split) for split in ("train", "test"))
    given = take(test, len(test) // 2, seed=0)
    deceiving = planted(honest["base"], train, given)
    recipe = load_recipe(options.attack)
    if options.attack.startswith("textfooler"):
        recipe = with_everywhere(recipe, "encoder", options.encoder)
    models = {**honest, **deceiving}
    fresh = all_but(test, given)
    found = evaluate(models, given, recipe, out=options.out, limit=options.limit, fresh=fresh)
    (options.out / "evaluation.json").write_text(
        json.dumps(found.to_dict(), indent=2) + "\n", encoding="utf-8"
    )
    show(found, deceiving)


if __name__ == "__main__":
    main()
