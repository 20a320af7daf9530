"""Numbers out of finished stages: a value per row, so that two of them can be compared row by row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unfooled.core.result import ATTACKED, REFERENCE, Result, decided
from unfooled.metrics.bleu import sentence_score
from unfooled.papers.carry_out import NOTHING, NUMBERS, RUN, results_in
from unfooled.papers.crossed import crossed_interval, rows_of
from unfooled.papers.runner import Done
from unfooled.papers.seeds import again
from unfooled.papers.stages import AttackStage, ShowStage
from unfooled.rates import mcnemar, mean_interval, paired_difference, wilson
from unfooled.runs.file import RunFile

Values = dict[int, float]  # by key of the row
FEWEST = 6  # rows that decide anything: with fewer McNemar's exact test cannot fall below 0.05


@dataclass(frozen=True)
class Quantity:
    """One number of a stage, and of the same stage done again with models of other seeds.

    Of a run, `what` is one of
        before, after     right before the attack, and after it
        lost              right before and wrong after it
        success           of those attacked: the label fell
        draws             of those attacked: share of the random draws that work
        queries           of those attacked, where they are known
        words, share      of the successes: words changed, and their share
        measure           of the successes: the first measure that the stage takes
        measure:grammar   the same of the measure of that kind
        sample            of the texts shown that fooled another model: right
        upto:0.2          right after the attack, where more than 20 % changed words are not allowed
        few:5             of the successes: at most 5 words changed
        below             of those attacked: the true class is below one half, whether or not the label fell
        bleu, bleu-after, bleu-lost  of a translation: its BLEU, that after the attack, and their difference
    and of other stages the name of a list of numbers: fooled, carried, re, l1, attention, edited, theorem,
    near, `right MODEL`.

    `label` keeps rows of one class. `also`: right only if right in these runs too, which have the rows that
    were right. `without`: success, and none in these runs. A row that ended in an error there is left out.
    `unit` is how it is shown: `%` for shares.
    """

    stage: str
    what: str = "after"
    label: int | None = None
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        head = self.what.partition(":")[0]
        plain = ("queries", "words", "measure", "re", "l1", "attention", "theorem")
        return "" if head in plain or head.startswith("bleu") else "%"

    def stages(self) -> tuple[str, ...]:
        return (self.stage, *self.also, *self.without)


@dataclass(frozen=True)
class IntervalEstimate:
    """A mean or a difference with its 95 % interval; nan where there is nothing to see.

    Of `n` rows, each seen with `seeds` trainings of a model.
    """

    value: float
    low: float
    high: float
    n: int
    unit: str = ""
    seeds: int = 1

    def __str__(self) -> str:
        return shown(self)


class Findings:
    """What the finished stages say."""

    def __init__(self, done: Mapping[str, Done], confidence: float = 0.95) -> None:
        self.done = done
        self.confidence = confidence
        self._results: dict[str, list[Result]] = {}

    def at(self, confidence: float) -> Self:
        """The same figures with wider or narrower intervals."""
        other = copy(self)
        other.confidence = confidence
        return other

    def has(self, *quantities: Quantity) -> bool:
        return all(name in self.done for quantity in quantities for name in quantity.stages())

    def results(self, stage: str) -> list[Result]:
        if stage not in self._results:
            self._results[stage] = results_in(self.done[stage].folder)
        return [result for result in self._results[stage] if result.outcome != "error"]

    def errors(self, stage: str) -> int:
        """Rows that ended in an error: they are in no figure."""
        if not isinstance(self.done[stage].stage, AttackStage | ShowStage):
            return 0
        every = len(self.results(stage))
        return len(self._results[stage]) - every

    def labels(self, stage: str) -> tuple[str, ...]:
        with closing(RunFile.read(self.done[stage].folder / RUN)) as file:
            return file.labels

    def numbers(self, stage: str) -> dict[str, Any]:
        path = self.done[stage].folder / NUMBERS
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def by_seed(self, quantity: Quantity) -> list[Values]:
        """Its values with each training seed for which all its stages are done; of most stages only one."""
        found = [self.values(quantity)]
        while self.has(other := _with_seed(quantity, len(found))):
            found.append(self.values(other))
        return found

    def values(self, quantity: Quantity) -> Values:
        """Those of the first training seed."""
        stage = self.done[quantity.stage].stage
        if not isinstance(stage, AttackStage | ShowStage):
            listed = self.numbers(quantity.stage).get(quantity.what, {})
            return {_key(name, at): float(value) for at, (name, value) in enumerate(listed.items())}
        if quantity.what.partition(":")[0] == "measure":
            assert isinstance(stage, AttackStage)
            found = self._measured(quantity.stage, stage, quantity.what.partition(":")[2])
        else:
            found = {
                result.key: value
                for result in self.results(quantity.stage)
                if (value := value_of(result, quantity.what)) is not None
                and quantity.label in (None, result.label)
            }
        for name in quantity.also:
            other = {
                result.key: decided(result.perturbed_probs) == result.label for result in self.results(name)
            }
            found = {
                key: float(bool(value) and other[key])
                for key, value in found.items()
                if not value or key in other
            }
        for name in quantity.without:
            won = {result.key: result.outcome == "success" for result in self.results(name)}
            found = {key: float(bool(value) and not won[key]) for key, value in found.items() if key in won}
        return found

    def _is_partial(self, quantity: Quantity, by_seed: list[Values]) -> bool:
        """Whether models of other seeds are there, but not all runs that it is made of were done on them."""
        return len(by_seed) == 1 and again(quantity.stage, 1) in self.done

    def _measured(self, name: str, stage: AttackStage, wanted: str) -> Values:
        if not stage.measures or (self.done[name].folder / NOTHING).is_file():
            return {}
        with closing(RunFile.read(self.done[name].folder / RUN)) as file:
            kind = wanted or stage.measures[0].partition(":")[0]
            full = next((name for name in file.measures() if name.partition(":")[0] == kind), None)
            if full is None:
                return {}
            return {key: value for key, value in file.measured(full).items() if value is not None}

    # -- with their uncertainty --------------------------------------------------------------------------

    def estimate(self, quantity: Quantity) -> IntervalEstimate:
        return estimated(self.by_seed(quantity), quantity.unit, self.confidence)

    def difference(
        self, first: Quantity, second: Quantity, *, paired: bool | None = None, scale: float = 1.0
    ) -> PairedDifference:
        """first − scale × second; row by row where they share rows (`paired`: None finds out).

        Seeds are compared one by one; what was trained once is set beside each of the other's.
        """
        here, there = self.by_seed(first), self.by_seed(second)
        if self._is_partial(first, here) or self._is_partial(second, there):
            here, there = here[:1], there[:1]
        if paired is None:
            shared = len(here[0].keys() & there[0].keys())
            paired = shared >= 0.5 * min(len(here[0]), len(there[0])) and shared > 1
        if paired:
            both = list(zip(*_as_many(here, there), strict=True))
            shared_keys = [sorted(left.keys() & right.keys()) for left, right in both]
            return PairedDifference.paired(
                [{key: left[key] for key in keys} for (left, _), keys in zip(both, shared_keys, strict=True)],
                [
                    {key: right[key] for key in keys}
                    for (_, right), keys in zip(both, shared_keys, strict=True)
                ],
                scale,
                first.unit,
                self.confidence,
            )
        return PairedDifference.apart(self.estimate(first), self.estimate(second), scale)


def _with_seed(quantity: Quantity, number: int) -> Quantity:
    """The same with another training seed, in all runs that it is made of."""
    return replace(
        quantity,
        stage=again(quantity.stage, number),
        also=tuple(again(name, number) for name in quantity.also),
        without=tuple(again(name, number) for name in quantity.without),
    )


def _as_many(here: list[Values], there: list[Values]) -> tuple[list[Values], list[Values]]:
    """As many seeds on either side: one stands beside each of the other's, else the surplus is left out."""
    most = max(len(here), len(there)) if 1 in (len(here), len(there)) else min(len(here), len(there))
    return (here * most if len(here) == 1 else here[:most]), (
        there * most if len(there) == 1 else there[:most]
    )


def estimated(by_seed: Sequence[Values], unit: str = "", confidence: float = 0.95) -> IntervalEstimate:
    """Wilson's interval for a share of yes and no, Student's with Hall's correction for anything else.

    With several seeds it covers them too (`crossed.py`).
    """
    sample = list(rows_of(by_seed).values())
    if not sample:
        return IntervalEstimate(math.nan, math.nan, math.nan, 0, unit)
    decisions = unit == "%" and all(set(values.values()) <= {0.0, 1.0} for values in by_seed)
    low, high = crossed_interval(by_seed, _of_share if decisions else interval_of_enough, confidence)
    if unit == "%":
        low, high = max(0.0, low), min(1.0, high)
    return IntervalEstimate(float(np.mean(sample)), low, high, len(sample), unit, len(by_seed))


def _of_share(sample: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Rows that are right with some seeds only count by their share."""
    return wilson(min(float(sample.sum()), sample.size), sample.size, confidence)


def interval_of_enough(
    sample: Sequence[float] | NDArray[np.float64], confidence: float = 0.95
) -> tuple[float, float]:
    """Of a mean; fewer than `FEWEST` rows leave everything possible."""
    return mean_interval(sample, confidence=confidence) if len(sample) >= FEWEST else (-math.inf, math.inf)


@dataclass(frozen=True)
class PairedDifference:
    """Both sides on the rows compared, their difference, and McNemar's p-value for paired decisions."""

    first: IntervalEstimate
    second: IntervalEstimate
    estimate: IntervalEstimate
    is_paired: bool
    p: float | None = None

    @classmethod
    def paired(
        cls,
        left: Sequence[Values],
        right: Sequence[Values],
        scale: float = 1.0,
        unit: str = "",
        confidence: float = 0.95,
    ) -> PairedDifference:
        """Of values of the same rows, one dictionary for each seed."""
        sides = estimated(left, unit, confidence), estimated(right, unit, confidence)
        by_seed = [
            {key: value - scale * there[key] for key, value in here.items()}
            for here, there in zip(left, right, strict=True)
        ]
        differences = np.array(list(rows_of(by_seed).values()))
        if not differences.size:
            return cls(*sides, IntervalEstimate(math.nan, -math.inf, math.inf, 0, unit), True)
        decisions = unit == "%" and all(set(values.values()) <= {0.0, 1.0} for values in (*left, *right))
        # The score interval is for differences of decisions.
        interval = paired_difference if decisions else interval_of_enough
        low, high = crossed_interval(by_seed, interval, confidence)
        p = None  # of several seeds there is none: McNemar's test knows rows alone
        if decisions and scale == 1.0 and len(by_seed) == 1:
            p = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
        found = IntervalEstimate(float(differences.mean()), low, high, differences.size, unit, len(by_seed))
        return cls(*sides, found, True, p)

    @classmethod
    def apart(cls, first: IntervalEstimate, second: IntervalEstimate, scale: float = 1.0) -> PairedDifference:
        """Of independent samples: the distances to the ends of both intervals are squared and added."""
        value = first.value - scale * second.value
        below = math.hypot(first.value - first.low, scale * (second.high - second.value))
        above = math.hypot(first.high - first.value, scale * (second.value - second.low))
        n, seeds = min(first.n, second.n), max(first.seeds, second.seeds)
        found = IntervalEstimate(value, value - below, value + above, n, first.unit, seeds)
        return cls(first, second, found, False)


def value_of(result: Result, what: str) -> float | None:
    """A number of one result; None where it has none."""
    head, _, setting = what.partition(":")
    attacked = result.outcome in ATTACKED
    won = result.outcome == "success"
    match head:
        case "before":
            return float(_right(result.probs, result))
        case "after":
            return float(_right(result.perturbed_probs, result))
        case "lost":
            return float(_right(result.probs, result) and not _right(result.perturbed_probs, result))
        case "sample":
            return (
                float(_right(result.perturbed_probs, result)) if result.perturbed != result.original else None
            )
        case "upto":
            return float(_right(result.perturbed_probs, result) or (won and result.share > float(setting)))
        case "success":
            return float(won) if attacked else None
        case "queries":
            return float(result.queries) if attacked and result.queries_known else None
        case "words":
            return float(len(result.edits)) if won else None
        case "share":
            return result.share if won else None
        case "below":
            return float(result.perturbed_probs[result.label] < 0.5) if attacked else None
        case "few":
            return float(len(result.edits) <= int(setting)) if won else None
        case "draws":
            facts = dict(result.facts)
            return facts["draws_won"] / facts["draws"] if attacked and facts.get("draws") else None
        case "bleu":
            return _bleu(result, result.output)
        case "bleu-after":
            return _bleu(result, result.perturbed_output)
        case "bleu-lost":
            return _bleu(result, result.output) - _bleu(result, result.perturbed_output)
    raise ValueError(f"a run has no {what!r}")


def _right(probs: tuple[float, ...], result: Result) -> bool:
    return decided(probs) == result.label


def _bleu(result: Result, output: str) -> float:
    return sentence_score(output, dict(result.fields)[REFERENCE])


def shown(estimate: IntervalEstimate) -> str:
    """`58.0 % (48.2–67.2)`, or a dash; without an interval where the rows are too few for one."""
    if not estimate.n or math.isnan(estimate.value):
        return "–"
    factor, places = (100.0, 1) if estimate.unit == "%" else (1.0, 1 if abs(estimate.value) >= 20 else 2)
    value, low, high = (
        f"{factor * number:.{places}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    if math.isinf(estimate.low) or math.isinf(estimate.high):
        return f"{value}{' %' if estimate.unit == '%' else ''} (too few rows for an interval)"
    dash = " to " if low.startswith("-") else "–"
    return f"{value}{' %' if estimate.unit == '%' else ''} ({low}{dash}{high})"


def _key(name: str, place: int) -> int:
    return int(name) if name.isdigit() else -1 - place
