"""A gate for continuous integration: bounds on a run's rates, judged by their intervals.

A rule passes when the whole 95 % interval is on the right side of the bound, fails when the whole interval is
on the wrong side, and is undecided otherwise: a gate must not flip with the luck of a small sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from unfooled.errors import UserError
from unfooled.metrics.summary import Rate, Summary

Judgement = Literal["pass", "fail", "undecided"]
MEASURES = {
    "accuracy-before": "accuracy before attack",
    "aua": "accuracy under attack",
    "success": "success rate of the attack",
    "errors": "share of examples that ended in an error",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """`measure` must be at least (`min`) or at most (`max`) `bound`."""

    measure: str
    kind: Literal["min", "max"]
    bound: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bound) and 0 <= self.bound <= 1):
            raise UserError(f"--{self.kind}-{self.measure} {self.bound} is no share", "write 0.6 for 60 %")

    def __str__(self) -> str:
        return f"{MEASURES[self.measure]} {'≥' if self.kind == 'min' else '≤'} {self.bound:.1%}"


@dataclass(frozen=True, slots=True)
class Judged:
    rule: Rule
    rate: Rate
    judgement: Judgement

    def __str__(self) -> str:
        if not self.rate.n:
            return f"{self.rule}: nothing was measured"
        rate = self.rate
        if self.rule.measure == "errors":
            return f"{self.rule}: {rate.value:.1%} (counted, n = {rate.n})"
        return f"{self.rule}: {rate.value:.1%} ({rate.low:.1%} – {rate.high:.1%}, n = {rate.n})"


def apply_rules(summary: Summary, rules: Sequence[Rule]) -> list[Judged]:
    if not rules:
        raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
    return [_judge(rule, _rate(summary, rule.measure)) for rule in rules]


def overall(judged: Sequence[Judged]) -> Judgement:
    """One failure fails the gate; without one, anything undecided leaves it undecided."""
    found = {one.judgement for one in judged}
    return "fail" if "fail" in found else "undecided" if "undecided" in found else "pass"


def _rate(summary: Summary, measure: str) -> Rate:
    if measure == "errors":
        return Rate.of(summary.errors, summary.total)
    rates = {
        "accuracy-before": summary.accuracy_before,
        "aua": summary.accuracy_under_attack,
        "success": summary.success_rate,
    }
    return rates[measure]


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


def junit(judged: Sequence[Judged], *, name: str) -> str:
    """JUnit XML: undecided rules are errors, so that no dashboard shows them as passed."""
    counts = {kind: sum(one.judgement == kind for one in judged) for kind in ("fail", "undecided")}
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(name),
        tests=str(len(judged)),
        failures=str(counts["fail"]),
        errors=str(counts["undecided"]),
    )
    for one in judged:
        case = ElementTree.SubElement(suite, "testcase", classname="unfooled.gate", name=str(one.rule))
        if one.judgement == "fail":
            ElementTree.SubElement(case, "failure", message=str(one))
        elif one.judgement == "undecided":
            ElementTree.SubElement(case, "error", message=f"undecided: {one}")
        else:
            ElementTree.SubElement(case, "system-out").text = str(one)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def markdown(judged: Sequence[Judged], *, name: str) -> str:
    """A few lines for a pull request; `name` is Markdown already."""
    marks = {"pass": "✅ pass", "fail": "❌ fail", "undecided": "❔ undecided"}
    lines = [
        f"### Robustness gate: {marks[overall(judged)]}",
        "",
        name,
        "",
        "| rule | measured | |",
        "|---|---|---|",
    ]
    for one in judged:
        measured = str(one).removeprefix(f"{one.rule}: ")
        lines.append(f"| {one.rule} | {measured} | {marks[one.judgement]} |")
    if any(one.judgement == "undecided" for one in judged):
        lines += ["", "Undecided: the 95 % interval lies on both sides of the bound. Attack more examples."]
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    """Characters that XML cannot hold, written out."""
    return "".join(
        char
        if char in "\t\n\r"
        or (ord(char) >= 0x20 and not 0xD800 <= ord(char) <= 0xDFFF and char not in "\ufffe\uffff")
        else f"\\x{ord(char):02x}"
        for char in text
    )
