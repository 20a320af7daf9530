"""Choose a suite by measurement: the fewest attacks that find nearly all that all of them find.

    python bench/suite.py nb=models/naive-bayes cnn=models/word-cnn --data mr --limit 200 --out .bench/suite

Every attack that fits attacks every row that a model gets right. Then attacks are taken one by one, each time
the one that breaks most for its queries among what still stands, until `--share` of all that any of them
breaks is found; what turned out not to be needed is dropped, and the rest is ordered so that it costs least.
A cheap attack that is not needed joins where it makes the whole cheaper: it leaves less to dearer ones.
The suite's cost is what its attacks ask of the rows that still stand when their turn comes; it is compared
with all attacks on all rows. The same command goes on where it stopped; `--kind` is the suite it is for.

Attacks that ask a language model take a hundred times as long as others. With `--sample N` they attack
what the others leave standing, and N rows more of each model: what all attacks together break is the same,
and what these would ask of the other rows is estimated by the mean over the N. `--budget` caps the queries
of each row. `--also FOLDER` adds what an earlier measurement of the same models and rows has found, so that a
new attack needs no old one measured again; an attack that is in both counts as it is now.

A suite that is chosen and counted on the same rows looks better than it is. So, beside the choice on all
rows, one is made on every second row of each model and counted on the others, and the other way round;
`--against` names suites that are counted on the same rows, and `--chosen-on N` the number of rows on which
they were chosen (a sample grows with `--limit`): they are counted on all rows and on those that came since.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unfooled.attacks.parts.goals import KeepLabel
from unfooled.checks.illusions.wrappers import Wrapped
from unfooled.checks.stress import stress
from unfooled.checks.suites import Suite, SuiteAttack, load_suite
from unfooled.checks.worst_case import read_state
from unfooled.core.recipe import all_recipes
from unfooled.core.session import Settings
from unfooled.core.victim import CLASSIFICATION, Probabilities, one_hot
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.rates import mean_interval, wilson
from unfooled.runs.file import RunFile
from unfooled.runs.row_choice import take
from unfooled.victims.loading import load_victim

GIVES = {
    "decisions": frozenset[str](),
    "standard": frozenset({"probabilities"}),
    "whitebox": frozenset({"probabilities", "gradients", "attention", "embeddings"}),
}
# One draw per row: the others only estimate a rate.
SETTINGS = {"random@paper": (("search.draws", "1"),)}
ONLY = {"breaking-bert@paper": "any", "breaking-bert@flip": "any"}
# They put in words whatever these mean, often of the other class: a reader changes the label, too.
ANY_WORDS = ("gs-", "asmin-", "asmax-", "random@", "strongest-words@", "tack-on@", "jsma@paper")
# Counted among all, never chosen: those that disguise every letter fall to a filter, and tell nothing else of
# a model than which class it gives to what it cannot read; jsma puts in words of the other class.
NOT_CHOSEN = ("smuggle-", "spacing@", "leetspeak@", "viper@", "jsma@")
DEAR = ("bae-", "clare@", "a2t-mlm@", "gbda@paper", "textfooler@valid", "alzantot@", "faster-alzantot@")
MOST_ORDERED = 7  # attacks whose orders are all tried


@dataclass(frozen=True)
class Found:
    """What one attack did to one model: the keys it broke, and what it asked for each key."""

    broken: frozenset[int]
    queries: Mapping[int, float]

    def only(self, keys: Collection[int]) -> Found:
        asked = {key: count for key, count in self.queries.items() if key in keys}
        return Found(self.broken.intersection(keys), asked)

    def estimated(self, right: Collection[int], sample: Collection[int]) -> Found:
        """With the mean over the sample as what it would ask of rows that it did not attack."""
        asked = [self.queries[key] for key in sample if key in self.queries]
        mean = sum(asked) / max(1, len(asked))
        return Found(self.broken, {key: self.queries.get(key, mean) for key in right})


Measured = Mapping[str, Mapping[str, Found]]  # model → attack → what it did


class Decides(Wrapped):
    """The same model, of which only the decision is told."""

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset()

    def predict(self, texts: Any, /) -> Probabilities:
        return one_hot(self.inner.predict(texts).argmax(axis=1), len(self.labels))


def candidates(kind: str, chosen: Sequence[str], *, any_words: bool) -> Suite:
    names = [
        recipe.full_name
        for recipe in all_recipes()
        if recipe.task == CLASSIFICATION
        and set(recipe.requires()) <= GIVES[kind]
        and not isinstance(recipe.goal, KeepLabel)  # what it ends with breaks nothing
    ]
    members = tuple(
        SuiteAttack(name, SETTINGS.get(name, ()), ONLY.get(name, ""))
        for name in names
        if (name in chosen if chosen else any_words or not name.startswith(ANY_WORDS))
    )
    return Suite(name=f"all-{kind}", version="1", summary="every attack that fits", attacks=members)


def measured(folder: Path) -> dict[str, Found]:
    """What a finished suite in a folder found, attack by attack."""
    state = read_state(folder)
    assert state is not None
    rows = [row for row in state["rows"] if row["state"] in ("broken", "stands")]
    kept = {row["key"] for row in rows}
    found = {}
    for place, record in state["attacks"].items():
        path = folder / record["folder"]
        if not path.is_dir():
            continue
        with closing(RunFile.read(path)) as file:
            queries = {result.key: result.queries for result in file.results() if result.key in kept}
        broken = frozenset(row["key"] for row in rows if int(place) in row["broken_by"])
        name = record["folder"].partition("-")[2].removesuffix("+changed")
        found[name] = Found(broken, queries)
    return found


def reached(runs: Measured, attacks: Sequence[str]) -> int:
    """How many rows of all models these attacks break together."""
    return sum(
        len(frozenset().union(*(found[name].broken for name in attacks if name in found)))
        for found in runs.values()
    )


def cost(runs: Measured, order: Sequence[str]) -> float:
    """Queries if each attack of the order attacks only what still stands."""
    return sum(row_costs(runs, order))


def row_costs(runs: Measured, order: Sequence[str]) -> list[float]:
    """The same, row by row, one model after the other."""
    costs: list[float] = []
    for found in runs.values():
        spent = dict.fromkeys(sorted({key for each in found.values() for key in each.queries}), 0.0)
        fallen: set[int] = set()
        for name in order:
            if name in found:
                for key, count in found[name].queries.items():
                    spent[key] += count if key not in fallen else 0
                fallen |= found[name].broken
        costs += spent.values()
    return costs


def full_cost(runs: Measured) -> float:
    return sum(sum(each.queries.values()) for found in runs.values() for each in found.values())


def choose(runs: Measured, share: float = 0.99, barred: tuple[str, ...] = NOT_CHOSEN) -> list[str]:
    """The greedy choice, without what it did not need, in the cheapest order."""
    everything = sorted({name for found in runs.values() for name in found})
    names = [name for name in everything if not name.startswith(barred)]
    wanted = min(share * reached(runs, everything), reached(runs, names))
    taken: list[str] = []
    while reached(runs, taken) < wanted:
        now, spent = reached(runs, taken), cost(runs, taken)

        def gain(name: str, now: int = now, spent: float = spent) -> float:
            more = [*taken, name]
            return (reached(runs, more) - now) / max(1, cost(runs, more) - spent)

        taken.append(max((name for name in names if name not in taken), key=gain))
    for name in sorted(taken, key=lambda name: -cost(runs, [name])):
        fewer = [other for other in taken if other != name]
        if reached(runs, fewer) >= wanted:
            taken = fewer
    taken = cheapest_order(runs, taken)
    while others := [name for name in names if name not in taken]:
        longer_ones = [cheapest_order(runs, [*taken, name]) for name in others]
        longer = min(longer_ones, key=lambda order: cost(runs, order))
        if cost(runs, longer) >= cost(runs, taken):
            break
        taken = longer
    return taken


def cheapest_order(runs: Measured, attacks: Sequence[str]) -> list[str]:
    if len(attacks) <= MOST_ORDERED:
        return list(min(itertools.permutations(attacks), key=lambda order: (cost(runs, order), order)))
    return sorted(attacks, key=lambda name: cost(runs, [name]))


def summary(runs: Measured, order: Sequence[str]) -> dict[str, Any]:
    names = sorted({name for found in runs.values() for name in found})
    per_model = {
        model: {
            "all": reached({model: found}, names),
            "suite": reached({model: found}, order),
            "queries of all": full_cost({model: found}),
            "queries of the suite": cost({model: found}, order),
        }
        for model, found in runs.items()
    }
    attacks = {
        name: {
            "broke": reached(runs, [name]),
            "alone": reached(runs, names) - reached(runs, [other for other in names if other != name]),
            "queries": cost(runs, [name]),
            "models": sum(name in found for found in runs.values()),
        }
        for name in names
    }
    return {
        "suite": list(order),
        "found": reached(runs, order) / max(1, reached(runs, names)),
        "queries": cost(runs, order) / max(1, full_cost(runs)),
        "models": per_model,
        "attacks": attacks,
    }


def halves(runs: Measured) -> tuple[Measured, Measured]:
    """Every second row that a model got right, and the others."""

    def every_second(first: int) -> Measured:
        kept = {}
        for model, found in runs.items():
            keys = set(sorted({key for each in found.values() for key in each.queries})[first::2])
            kept[model] = {name: each.only(keys) for name, each in found.items()}
        return kept

    return every_second(0), every_second(1)


def without(runs: Measured, keys: Collection[int]) -> Measured:
    return {
        model: {name: each.only(each.queries.keys() - set(keys)) for name, each in found.items()}
        for model, found in runs.items()
    }


def counted(runs: Measured, order: Sequence[str]) -> dict[str, Any]:
    """What a suite finds of all that any attack finds, and asks for each row, with 95 % intervals."""
    names = sorted({name for found in runs.values() for name in found})
    found, every = reached(runs, order), reached(runs, names)
    costs = row_costs(runs, order)
    return {
        "suite": list(order),
        "not measured": [name for name in order if name not in names],
        "rows": len(costs),
        "broken by all": every,
        "broken": found,
        "found": [found / max(1, every), *wilson(found, max(1, every))],
        "queries a row": [sum(costs) / max(1, len(costs)), *mean_interval(costs)],
        "share of queries": sum(costs) / max(1, full_cost(runs)),
    }


def verified(runs: Measured, share: float, against: Sequence[str]) -> list[dict[str, Any]]:
    """Suites counted on the half of the rows on which none was chosen, for each half."""
    first, second = halves(runs)
    named = {name: [each.attack for each in load_suite(name).attacks] for name in against}
    return [
        {"chosen": counted(others, choose(own, share))}
        | {name: counted(others, attacks) for name, attacks in named.items()}
        for own, others in ((first, second), (second, first))
    ]


@dataclass(frozen=True)
class Measurement:
    """Runs every attack that fits on every model; what is finished is read, not asked again."""

    data: Dataset
    suite: Suite
    folder: Path
    limit: int
    sample: int
    everywhere: Mapping[str, str]
    workers: int
    budget: int | None = None
    also: Sequence[Path] = ()
    decides: bool = False  # whether only the model's decision is told
    label_map: Mapping[str, str] = field(default_factory=dict)  # for the models that have these labels

    def run(self, models: Mapping[str, str]) -> dict[str, dict[str, Found]]:
        """The quick attacks on all models first: what they say is worth having early."""
        dear = [each.attack for each in self.suite.attacks if self.sample and each.attack.startswith(DEAR)]
        quick = self.suite.without(*dear)
        runs = {
            name: self._attacked(name, spec, quick, take(self.data, self.limit, seed=0))
            for name, spec in models.items()
        }
        for folder in self.also:
            runs = {name: self._earlier(folder, name) | found for name, found in runs.items()}
        if dear:
            slow = self.suite.without(*(each.attack for each in quick.attacks))
            for name, spec in models.items():
                right = {key for found in runs[name].values() for key in found.queries}
                fallen = {key for found in runs[name].values() for key in found.broken}
                rows = self.data.only(sorted(right - fallen | right & self._sampled()))
                found = self._attacked(f"{name}-dear", spec, slow, rows)
                runs[name] |= self._estimated(found, right)
        return runs

    def _sampled(self) -> set[int]:
        return {example.key for example in take(self.data, min(self.sample, self.limit), seed=0)}

    def _estimated(self, found: Mapping[str, Found], right: set[int]) -> dict[str, Found]:
        return {attack: each.estimated(right, right & self._sampled()) for attack, each in found.items()}

    def _earlier(self, folder: Path, name: str) -> dict[str, Found]:
        """What an earlier measurement says of a model, and of its dear attacks."""
        found = measured(folder / name) if (folder / name).is_dir() else {}
        if (folder / f"{name}-dear").is_dir():
            right = {key for each in found.values() for key in each.queries}
            found |= self._estimated(measured(folder / f"{name}-dear"), right)
        return found

    def _attacked(self, name: str, spec: str, suite: Suite, rows: Dataset) -> dict[str, Found]:
        victim = load_victim(spec)
        result = stress(
            Decides(victim) if self.decides else victim,
            rows,
            suite,
            out=self.folder / name,
            every=True,
            everywhere=self.everywhere,
            workers=self.workers,
            settings=Settings(budget=self.budget),
            label_map=self.label_map if set(self.label_map.values()) <= set(victim.labels) else None,
        )
        print(f"{name}: n {result.n}, clean {result.clean.value:.1%}, worst {result.worst.value:.1%}")
        for attack, why in result.left_out:
            print(f"  left out: {attack}: {why}")
        sys.stdout.flush()
        return measured(self.folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    parser.add_argument("--data", default="mr")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--sample", type=int, default=0, help="rows on which dear attacks are measured")
    parser.add_argument("--kind", choices=sorted(GIVES), default="standard")
    parser.add_argument("--attacks", nargs="*", default=[], help="only these; all that fit by default")
    parser.add_argument("--any-words", action="store_true", help="attacks that do not mind the meaning, too")
    parser.add_argument("--masked-lm", default="trigram")
    parser.add_argument("--encoder", default="", help="in place of the one that each attack names")
    parser.add_argument("--label-map", nargs="*", default=[], metavar="DATA=MODEL")
    parser.add_argument("--against", nargs="*", default=[], help="suites to count on the same rows")
    parser.add_argument("--chosen-on", type=int, default=0, help="rows on which those suites were chosen")
    parser.add_argument("--words", default="words.json", help="what `unfooled words` has written")
    parser.add_argument("--share", type=float, default=0.99)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--budget", type=int, default=None, help="most queries of an attack for each row")
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="earlier measurements, per kind")
    parser.add_argument("--out", type=Path, default=Path(".bench/suite"))
    options = parser.parse_args()
    measurement = Measurement(
        data=load_data(options.data),
        suite=candidates(options.kind, options.attacks, any_words=options.any_words),
        folder=options.out / options.kind,
        limit=options.limit,
        sample=options.sample,
        everywhere={"masked_lm": options.masked_lm, "words": options.words}
        | ({"encoder": options.encoder} if options.encoder else {}),
        workers=options.workers,
        budget=options.budget,
        also=options.also,
        decides=options.kind == "decisions",
        label_map=dict(pair.split("=", 1) for pair in options.label_map),
    )
    runs = measurement.run(dict(model.split("=", 1) for model in options.models))
    found = summary(runs, choose(runs, options.share))
    old = take(measurement.data, options.chosen_on, seed=0) if options.chosen_on else ()
    chosen_on = {example.key for example in old}
    for title, rows in ("on all rows", runs), ("on rows that came since", without(runs, chosen_on)):
        found[title] = {
            name: counted(rows, [each.attack for each in load_suite(name).attacks])
            for name in options.against
        }
    found["on other rows"] = verified(runs, options.share, options.against)
    (options.out / f"{options.kind}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
