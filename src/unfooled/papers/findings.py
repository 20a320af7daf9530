"""Numbers out of finished stages: a value per row, so that two of them can be compared row by row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unfooled.core.result import ATTACKED, REFERENCE, Result, decided
from unfooled.metrics.bleu import sentence_score
from unfooled.papers.carry_out import NOTHING, NUMBERS, RUN, results_in
from unfooled.papers.runner import Done
from unfooled.papers.stages import AttackStage, ShowStage
from unfooled.rates import mcnemar, mean_interval, paired_difference, wilson
from unfooled.runs.file import RunFile

Values = dict[int, float]  # by key of the row
FEWEST = 6  # rows that decide anything: with fewer McNemar's exact test cannot fall below 0.05


@dataclass(frozen=True)
class Quantity:
    """One number of a stage.

    Of a run, `what` is one of
        before, after     right before the attack, and after it
        lost              right before and wrong after it
        success           of those attacked: the label fell
        draws             of those attacked: share of the random draws that work
        queries           of those attacked, where they are known
        words, share      of the successes: words changed, and their share
        measure           of the successes: the first measure that the stage takes
        sample            of the texts shown that fooled another model: right
        upto:0.2          right after the attack, where more than 20 % changed words are not allowed
        few:5             of the successes: at most 5 words changed
        bleu, bleu-after, bleu-lost  of a translation: its BLEU, that after the attack, and their difference
    and of other stages the name of a list of numbers: fooled, re, l1, attention, edited, theorem.

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
    """A mean or a difference with its 95 % interval; nan where there is nothing to see."""

    value: float
    low: float
    high: float
    n: int
    unit: str = ""

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

    def values(self, quantity: Quantity) -> Values:
        stage = self.done[quantity.stage].stage
        if not isinstance(stage, AttackStage | ShowStage):
            listed = self.numbers(quantity.stage).get(quantity.what, {})
            return {_key(name, at): float(value) for at, (name, value) in enumerate(listed.items())}
        if quantity.what == "measure":
            assert isinstance(stage, AttackStage)
            found = self._measured(quantity.stage, stage)
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

    def _measured(self, name: str, stage: AttackStage) -> Values:
        if not stage.measures or (self.done[name].folder / NOTHING).is_file():
            return {}
        with closing(RunFile.read(self.done[name].folder / RUN)) as file:
            kind = stage.measures[0].partition(":")[0]
            full = next(measure for measure in file.measures() if measure.partition(":")[0] == kind)
            return {key: value for key, value in file.measured(full).items() if value is not None}

    # -- with their uncertainty --------------------------------------------------------------------------

    def estimate(self, quantity: Quantity) -> IntervalEstimate:
        return estimated(list(self.values(quantity).values()), quantity.unit, self.confidence)

    def difference(
        self, first: Quantity, second: Quantity, *, paired: bool | None = None, scale: float = 1.0
    ) -> PairedDifference:
        """first − scale × second; row by row where they share rows (`paired`: None finds out)."""
        here, there = self.values(first), self.values(second)
        shared = sorted(here.keys() & there.keys())
        if paired is None:
            paired = len(shared) >= 0.5 * min(len(here), len(there)) and len(shared) > 1
        if paired:
            return PairedDifference.paired(
                [here[key] for key in shared],
                [there[key] for key in shared],
                scale,
                first.unit,
                self.confidence,
            )
        return PairedDifference.apart(self.estimate(first), self.estimate(second), scale)


def estimated(sample: list[float], unit: str = "", confidence: float = 0.95) -> IntervalEstimate:
    """Wilson's interval for a share of yes and no, Student's with Hall's correction for anything else."""
    if not sample:
        return IntervalEstimate(math.nan, math.nan, math.nan, 0, unit)
    decisions = unit == "%" and set(sample) <= {0.0, 1.0}
    low, high = (
        wilson(int(sum(sample)), len(sample), confidence)
        if decisions
        else interval_of_enough(sample, confidence)
    )
    if unit == "%":
        low, high = max(0.0, low), min(1.0, high)
    return IntervalEstimate(float(np.mean(sample)), low, high, len(sample), unit)


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
        left: list[float],
        right: list[float],
        scale: float = 1.0,
        unit: str = "",
        confidence: float = 0.95,
    ) -> PairedDifference:
        sides = estimated(left, unit, confidence), estimated(right, unit, confidence)
        if not left:
            return cls(*sides, IntervalEstimate(math.nan, -math.inf, math.inf, 0, unit), True)
        first, second = np.asarray(left), scale * np.asarray(right)
        differences = first - second
        decisions = unit == "%" and set(left) | set(right) <= {0.0, 1.0}
        # The score interval is for differences of decisions.
        interval = paired_difference if decisions else interval_of_enough
        low, high = interval(differences, confidence)
        p = None
        if decisions and scale == 1.0:
            p = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
        return cls(*sides, IntervalEstimate(float(differences.mean()), low, high, len(left), unit), True, p)

    @classmethod
    def apart(cls, first: IntervalEstimate, second: IntervalEstimate, scale: float = 1.0) -> PairedDifference:
        """Of independent samples: the distances to the ends of both intervals are squared and added."""
        value = first.value - scale * second.value
        below = math.hypot(first.value - first.low, scale * (second.high - second.value))
        above = math.hypot(first.high - first.value, scale * (second.value - second.low))
        n = min(first.n, second.n)
        return cls(first, second, IntervalEstimate(value, value - below, value + above, n, first.unit), False)


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
