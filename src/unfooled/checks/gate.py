"""A gate for continuous integration: bounds on a run's rates, judged by their intervals.

A rule passes when the whole 95 % interval is on the right side of the bound, fails when the whole interval is
on the wrong side, and is undecided otherwise: a gate must not flip with the luck of a small sample. What an
attack says that could try nothing on most examples passes no rule either: it is undecided.

A run that may grow until its gate passes is judged by an interval that holds at every size; only where the
size was fixed before anybody saw a result does the narrower one for a single look apply (`runs/looks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from unfooled.checks.worst_case import Stress
from unfooled.errors import UserError
from unfooled.metrics.decision_intervals import ERROR, anytime_interval, exact_interval
from unfooled.metrics.summary import Rate, Summary

Judgement = Literal["pass", "fail", "undecided"]
MEASURES = {
    "accuracy-before": "accuracy before attack",
    "aua": "accuracy under attack",
    "valid-aua": "accuracy under attack by valid texts",
    "success": "success rate of the attack",
    "errors": "share of examples that ended in an error",
    "recall": "recall under attack",
    "accuracy": "accuracy in the worst case",
    "valid-accuracy": "accuracy in the worst case, by valid texts",
}
_SLACK = 1e-9  # of a number of rows, for the digits that a division loses
_ROBUSTNESS = ("aua", "valid-aua", "success", "recall")  # what only an attack that tried something can show


@dataclass(frozen=True, slots=True)
class Rule:
    """`measure` must be at least (`min`) or at most (`max`) `bound`."""

    measure: str
    kind: Literal["min", "max"]
    bound: float
    label: str = ""  # the class of a recall

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bound) and 0 <= self.bound <= 1):
            raise UserError(f"--{self.kind}-{self.measure} {self.bound} is no share", "write 0.6 for 60 %")

    def __str__(self) -> str:
        name = f"recall of {self.label} under attack" if self.label else MEASURES[self.measure]
        return f"{name} {'≥' if self.kind == 'min' else '≤'} {self.bound:.1%}"


@dataclass(frozen=True, slots=True)
class Judged:
    rule: Rule
    rate: Rate
    judgement: Judgement
    reason: str = ""  # why it is undecided or fails, where the interval alone would decide otherwise

    def __str__(self) -> str:
        return f"{self._measured()}; {self.reason}" if self.reason else self._measured()

    def _measured(self) -> str:
        if not self.rate.n:
            return f"{self.rule}: nothing was measured"
        rate = self.rate
        if self.rule.measure == "errors":
            return f"{self.rule}: {rate.value:.1%} (counted, n = {rate.n})"
        return f"{self.rule}: {rate.value:.1%} ({rate.low:.1%} – {rate.high:.1%}, n = {rate.n})"


def apply_rules(
    summary: Summary, rules: Sequence[Rule], *, size_was_fixed: bool = False, remembers: str = ""
) -> list[Judged]:
    """`size_was_fixed`: nobody could have looked before, so that one look is all there is.

    `remembers`: what the state check found; answers that depend on earlier questions fail every rule.
    """
    interval = exact_interval if size_was_fixed else anytime_interval
    if not rules:
        raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
    judged = [_with_reason(summary, _judge(rule, bounded(_rate(summary, rule), interval))) for rule in rules]
    return [_refused(rule, remembers) for rule in judged]


def _refused(judged: Judged, remembers: str) -> Judged:
    """No bound can be set on a number that another order of questions would change."""
    if not remembers or judged.rule.measure == "errors":
        return judged
    return replace(judged, judgement="fail", reason=f"but {remembers}")


def bounded(rate: Rate, interval: Callable[[int, int, float], tuple[float, float]]) -> Rate:
    """The same rate, with an interval that errs on either side in at most 2.5 % of all runs.

    Where a judge has a say in it, half of that is for what the judge may be off, and half for the choice of
    rows. Rows that count in part, by the probability of a text, are rounded against whoever hopes for them.
    """
    if not rate.n:
        return rate
    error, (least, most) = (
        (ERROR, (rate.value, rate.value)) if rate.doubt is None else (ERROR / 2, rate.doubt)
    )
    low, _ = interval(math.floor(least * rate.n + _SLACK), rate.n, error)
    _, high = interval(math.ceil(most * rate.n - _SLACK), rate.n, error)
    return replace(rate, low=min(low, rate.low), high=max(high, rate.high))


def _with_reason(summary: Summary, judged: Judged) -> Judged:
    """A rule that an attack without tries, or without this class, would pass is not decided."""
    if judged.judgement != "pass" or judged.rule.measure not in _ROBUSTNESS:
        return judged
    reason = ""
    recall = summary.recall_of(judged.rule.label)
    if judged.rule.measure == "valid-aua" and summary.validity is not None and summary.validity.unjudged:
        reason = f"but {summary.validity.unjudged} successes are not judged yet"
    if summary.tries.mostly_none:
        reason = f"but the attack could try nothing on {summary.tries.none} of {summary.tries.n} examples"
    elif recall is not None and not recall.attacked:
        reason = f"but only rows of the class {summary.only} were attacked"
    return replace(judged, judgement="undecided", reason=reason) if reason else judged


def apply_rules_to_stress(result: Stress, rules: Sequence[Rule]) -> list[Judged]:
    """Rules about the worst case over a suite. What would pass only because attacks failed is undecided."""
    judged = [
        _with_errors(result, _judge(rule, bounded(_worst_rate(result, rule), anytime_interval)))
        for rule in rules
    ]
    return [_refused(rule, result.remembers) for rule in judged]


def _worst_rate(result: Stress, rule: Rule) -> Rate:
    if rule.measure == "errors":
        return Rate.of(result.failures, result.n)
    if rule.measure == "recall":
        known = {share.name.casefold(): share.worst for share in result.classes}
        if rule.label.casefold() not in known:
            raise UserError(
                f"--min-recall: the suite knows no class {rule.label!r}",
                f"its classes are {', '.join(share.name for share in result.classes)}",
            )
        return known[rule.label.casefold()]
    if rule.measure == "valid-accuracy":
        if result.valid is None:
            raise UserError(
                f"{result.out}: no text of these runs was judged valid or not",
                "judge the runs and repeat the command, or leave --min-valid-aua out",
            )
        return result.valid
    return result.worst


def _with_errors(result: Stress, judged: Judged) -> Judged:
    if judged.judgement != "pass" or judged.rule.measure == "errors":
        return judged
    if 2 * result.untried > result.states["stands"]:
        reason = (
            f"but for {result.untried} of {result.states['stands']} rows that stand no edit could be tried"
        )
        return replace(judged, judgement="undecided", reason=reason)
    if (
        _judge(judged.rule, bounded(_fallen(judged.rate, len(result.undecided)), anytime_interval)).judgement
        == "pass"
    ):
        return judged
    reason = f"but {len(result.undecided)} rows stand only because an attack ended in an error on them"
    return replace(judged, judgement="undecided", reason=reason)


def _fallen(rate: Rate, rows: int) -> Rate:
    """The rate if so many more rows had fallen."""
    n = rate.n + rows
    share = rate.n / n
    doubt = None if rate.doubt is None else (rate.doubt[0] * share, rate.doubt[1] * share)
    return replace(Rate.of(rate.value * rate.n, n), doubt=doubt)


def overall(judged: Sequence[Judged]) -> Judgement:
    """One failure fails the gate; without one, anything undecided leaves it undecided."""
    found = {answer.judgement for answer in judged}
    return "fail" if "fail" in found else "undecided" if "undecided" in found else "pass"


def _rate(summary: Summary, rule: Rule) -> Rate:
    if rule.measure == "errors":
        return Rate.of(summary.errors, summary.total)
    if rule.measure == "recall":
        recall = summary.recall_of(rule.label)
        if recall is None:
            names = ", ".join(recall.name for recall in summary.recalls)
            raise UserError(
                f"--min-recall: the run knows no class {rule.label!r}",
                f"its classes are {names}" if names else "its victim writes text and has no classes",
            )
        return recall.under_attack
    if rule.measure == "valid-aua":
        valid = summary.accuracy_under_valid_attack
        if valid is None:
            raise UserError(
                "--min-valid-aua: this run was not judged, so nobody knows which texts are valid",
                "run: unfooled judge RUN",
            )
        return valid
    rates = {
        "accuracy-before": summary.accuracy_before,
        "aua": summary.accuracy_under_attack,
        "success": summary.success_rate,
    }
    return rates[rule.measure]


def _judge(rule: Rule, rate: Rate) -> Judged:
    if not rate.n:
        return Judged(rule, rate, "undecided")
    if rule.measure == "errors":
        # Counted, not sampled: these examples did end in an error.
        return Judged(rule, rate, "pass" if rate.value <= rule.bound else "fail")
    if rule.kind == "min":
        good, bad = rate.low >= rule.bound, rate.high < rule.bound
    else:
        good, bad = rate.high <= rule.bound, rate.low > rule.bound
    return Judged(rule, rate, "pass" if good else "fail" if bad else "undecided")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a user asks of a model: least rates, and the highest of success and errors."""

    min_aua: float | None = None
    min_valid_aua: float | None = None
    min_accuracy: float | None = None
    max_success: float | None = None
    max_errors: float = 0.05
    recalls: Mapping[str, float] = field(default_factory=dict)

    def of_run(self) -> list[Rule]:
        least = {"aua": self.min_aua, "valid-aua": self.min_valid_aua, "accuracy-before": self.min_accuracy}
        return self._rules(least)

    def of_stress(self) -> list[Rule]:
        """A suite gives one accuracy, the worst case: both bounds on an accuracy are about that."""
        if self.max_success is not None:
            raise UserError("--max-success is for a run of one attack", "bound a suite with --min-accuracy")
        given = [bound for bound in (self.min_aua, self.min_accuracy) if bound is not None]
        return self._rules({"accuracy": max(given, default=None), "valid-accuracy": self.min_valid_aua})

    def _rules(self, least: Mapping[str, float | None]) -> list[Rule]:
        most = {"success": self.max_success, "errors": self.max_errors}
        rules = [Rule(name, "min", bound) for name, bound in least.items() if bound is not None]
        rules += [Rule(name, "max", bound) for name, bound in most.items() if bound is not None]
        rules += [Rule("recall", "min", bound, label) for label, bound in self.recalls.items()]
        if all(rule.measure == "errors" for rule in rules):
            raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
        return rules


def told_interval(sizes: Sequence[int], size_was_fixed: bool) -> str:
    """Which interval decided, and why; `sizes` are those at which the gate looked at the run."""
    if size_was_fixed:
        return "exact 95 % interval: the run's size was fixed before"
    looks = f"; looks at this run: {', '.join(f'{size:,}' for size in sizes)} rows" if sizes else ""
    return f"anytime-valid 95 % interval: the run may grow, and each look counts{looks}"
