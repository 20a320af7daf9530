"""What an attack will cost, from a pilot of a few of its examples. Nothing is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unfooled.core.recipe import Recipe
from unfooled.core.session import Settings, fit_recipe
from unfooled.core.victim import Victim
from unfooled.metrics.summary import COUNTS, Mean
from unfooled.runs.attack import Observer, attack
from unfooled.runs.caps import Caps, tokens_of
from unfooled.runs.file import FILE, RunFile
from unfooled.runs.row_choice import rows_for
from unfooled.runs.shard import Shard
from unfooled.runs.task import Examples, task_for
from unfooled.runs.workers.where import Workers

PILOT = 8  # examples


class Span(NamedTuple):
    """An expected amount, and the 95 % interval of the pilot's mean."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, mean: Mean, times: float) -> Span:
        return cls(mean.value * times, mean.low * times, mean.high * times)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What is left to do, and what it is expected to take."""

    examples: int  # rows of the whole run, or of its part
    finished: int
    pilot: int  # rows of the pilot
    pilot_queries: int
    workers: int
    queries: Span
    seconds: Span
    cost: Span | None  # where prices are known
    fitting: int = 0  # queries at most that fit a surrogate first, in none of the spans

    @property
    def left(self) -> int:
        return max(0, self.examples - self.finished)

    def to_dict(self) -> dict[str, Any]:
        spans = {"queries": self.queries, "seconds": self.seconds, "cost": self.cost}
        return {
            "examples": self.examples,
            "finished": self.finished,
            "left": self.left,
            "pilot": self.pilot,
            "pilot_queries": self.pilot_queries,
            "workers": self.workers,
            "fitting_queries": self.fitting,
            **{name: span and {**span._asdict(), "n": self.pilot} for name, span in spans.items()},
        }


def estimate(
    victim: Victim,
    data: Any,
    recipe: Recipe,
    *,
    out: Path,
    settings: Settings,
    caps: Caps | None = None,
    limit: int | None = None,
    first: bool = False,
    shard: Shard | None = None,
    workers: int | Workers = 1,
    pilot: int = PILOT,
    fitting: int = 0,
    observer: Observer | None = None,
    **attacked: Any,
) -> Estimate:
    """Attack `pilot` of the rows in memory, and count on from there; `attacked` is what `attack` takes.

    The pilot knows no surrogate that is fitted first: up to `fitting` queries are told beside it.
    """
    caps = caps or Caps()
    began = time.perf_counter()
    run = attack(
        victim,
        data,
        recipe,
        limit=min(pilot, limit or pilot),
        first=first,
        settings=settings,
        observer=observer,
        **attacked,
    )
    seconds = time.perf_counter() - began
    results = list(run.results())
    rows = _rows(victim, data, recipe, limit, settings, first, attacked.get("label_map"))
    if shard is not None:
        rows = sum(1 for _ in shard.places(rows))
    finished = _finished(out)
    queries = [result.queries for result in results]
    prices = [result.queries * caps.price(tokens_of(result.fields)) for result in results]
    number = Workers.of(workers).number
    left = max(0, rows - finished)
    asked = sum(queries)
    spent = Span.of(Mean.of(queries, COUNTS), left)
    each = seconds / max(1, asked) / number
    return Estimate(
        examples=rows,
        finished=finished,
        pilot=len(results),
        pilot_queries=asked,
        workers=number,
        queries=spent,
        seconds=Span(*(amount * each for amount in spent)),
        cost=Span.of(Mean.of(prices, COUNTS), left) if caps.priced else None,
        fitting=fitting,
    )


def _rows(
    victim: Victim,
    data: Any,
    recipe: Recipe,
    limit: int | None,
    settings: Settings,
    first: bool,
    label_map: Any,
) -> int:
    dataset: Examples = task_for(victim).data(data, victim).aligned(victim.labels, label_map)
    fitted, _ = fit_recipe(recipe, victim)
    return rows_for(dataset, fitted, limit, seed=settings.seed, first=first).rows


def _finished(out: Path) -> int:
    if not (out.expanduser() / FILE).is_file():
        return 0
    with RunFile.read(out) as file:
        return sum(number for outcome, number in file.count().items() if outcome != "error")
