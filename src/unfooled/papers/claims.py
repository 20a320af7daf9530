"""Claims: a sentence of a paper, its figures, and a rule that judges it by what was measured.

A rule looks at 95 % intervals. It says `holds` or `does not hold` only where the whole interval does, and
otherwise, and of fewer than six rows, `not decided`: more rows would tell. What no stage measured is `not
measured`. Where something of ours that stands in for the paper's is known to decide the outcome, the figures
are `not comparable`, whatever the rule says of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from unfooled.papers.findings import FEWEST, Findings, IntervalEstimate, PairedDifference, Quantity, shown
from unfooled.rates import wilson

LEVEL = 0.05
_HALVINGS = 24  # of the levels between 0 and 1: a p-value to seven places
Status = Literal["holds", "does not hold", "not decided", "not measured", "not comparable"]
STATUSES: tuple[Status, ...] = get_args(Status)
DECIDED: tuple[Status, ...] = ("holds", "does not hold")


@dataclass(frozen=True)
class Judgement:
    """`measured` are the figures in words; `parts` are there where a rule is made of several."""

    status: Status
    measured: str = ""
    short: str = ""  # the figures alone, for one line
    parts: tuple[Judgement, ...] = ()
    earlier: str = ""  # the commit of the page that it was taken over from
    rule: Status | None = None  # what the rule says of figures that are not comparable
    p: float | None = None  # of the rule: the level at which it would just be decided
    holm: Status | None = None  # with the correction for the number of the paper's claims


class ClaimRule(Protocol):
    def judge(self, findings: Findings, /) -> Judgement: ...

    def quantities(self) -> tuple[Quantity, ...]: ...


@dataclass(frozen=True)
class Claim:
    """`how` says what was measured on what; `needs`, what a stage that is not there would need.

    `substitutions` name those of the plan that could explain a difference, `decided_by` those that are known
    to decide the outcome: the figures are not comparable with the paper's where the plan has one of them.
    """

    name: str
    sentence: str
    paper: str
    how: str
    rule: ClaimRule
    needs: str = ""
    artefact: str = ""  # why the paper's number is none, where it is none
    substitutions: tuple[str, ...] = ()
    decided_by: tuple[str, ...] = ()

    def judge(self, findings: Findings, substituted: Collection[str] = ()) -> Judgement:
        """`substituted` names what the plan puts in the place of the paper's."""
        missing = [quantity.stage for quantity in self.rule.quantities() if not findings.has(quantity)]
        if missing or not self.rule.quantities():
            return Judgement(
                "not measured",
                f"needs {self.needs}" if self.needs else "no such run at this scale, or not yet",
            )
        judged = replace(self.rule.judge(findings), p=p_value(self.rule, findings))
        if any(name in substituted for name in self.decided_by):
            return replace(judged, status="not comparable", rule=judged.status)
        return judged


@dataclass(frozen=True)
class More:
    """first > second + by. `times` compares with a multiple of second; a negative `by` allows a tie."""

    first: Quantity
    second: Quantity
    by: float = 0.0
    times: float = 1.0
    names: tuple[str, str] = ("", "")
    paired: bool | None = None

    def quantities(self) -> tuple[Quantity, ...]:
        return (self.first, self.second)

    def judge(self, findings: Findings) -> Judgement:
        found = findings.difference(self.first, self.second, paired=self.paired, scale=self.times)
        status = beyond(found.estimate, self.by)
        if found.p is not None and not self.by and found.p >= 1 - findings.confidence:
            status = "not decided"  # of few rows the exact test is the stricter one
        return _of_two(status, found, self.names, "against", self.times)


@dataclass(frozen=True)
class AtLeast:
    """The quantity is at least `bound`; with `most`, at most."""

    quantity: Quantity
    bound: float
    most: bool = False
    name: str = ""

    def quantities(self) -> tuple[Quantity, ...]:
        return (self.quantity,)

    def judge(self, findings: Findings) -> Judgement:
        found = findings.estimate(self.quantity)
        told = f"{_named(self.name, found)}, {rows_in_words(found)}"
        if not self.most:
            return Judgement(beyond(found, self.bound), told, _brief(self.name, found))
        turned = IntervalEstimate(-found.value, -found.high, -found.low, found.n)
        return Judgement(beyond(turned, -self.bound), told, _brief(self.name, found))


@dataclass(frozen=True)
class Near:
    """The two differ by less than `within`."""

    first: Quantity
    second: Quantity
    within: float
    names: tuple[str, str] = ("", "")

    def quantities(self) -> tuple[Quantity, ...]:
        return (self.first, self.second)

    def judge(self, findings: Findings) -> Judgement:
        found = findings.difference(self.first, self.second)
        return _of_two(_equivalent(found.estimate, self.within), found, self.names, "and")


@dataclass(frozen=True)
class NearPublished:
    """A rate lies within `within` of one that the paper found on a sample: `hits` of `n` of its own rows."""

    quantity: Quantity
    hits: int
    n: int
    within: float
    name: str = ""

    def quantities(self) -> tuple[Quantity, ...]:
        return (self.quantity,)

    def judge(self, findings: Findings) -> Judgement:
        ours = findings.estimate(self.quantity)
        low, high = wilson(self.hits, self.n, findings.confidence)
        theirs = IntervalEstimate(self.hits / self.n, low, high, self.n, "%")
        found = PairedDifference.apart(ours, theirs)
        names = (self.name, f"the paper ({self.hits} of {self.n})")
        return _of_two(_equivalent(found.estimate, self.within), found, names, "and")


@dataclass(frozen=True)
class EachAtMost:
    """Every single number is at most `bound`: for what is computed, not sampled."""

    quantity: Quantity
    bound: float
    name: str = ""

    def quantities(self) -> tuple[Quantity, ...]:
        return (self.quantity,)

    def judge(self, findings: Findings) -> Judgement:
        values = list(findings.values(self.quantity).values())
        if not values:
            return Judgement("not decided", "nothing to check")
        within = sum(value <= self.bound for value in values)
        told = (
            f"{self.name or self.quantity.what}: {within} of {len(values)} within, largest {max(values):.3g}"
        )
        return Judgement("holds" if within == len(values) else "does not hold", told, told)


@dataclass(frozen=True)
class All:
    """Holds if every part does; does not hold if one does not."""

    rules: tuple[ClaimRule, ...]

    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantity for rule in self.rules for quantity in rule.quantities())

    def judge(self, findings: Findings) -> Judgement:
        parts = tuple(rule.judge(findings) for rule in self.rules)
        return Judgement(
            together([part.status for part in parts]),
            "; ".join(f"{part.measured} → {part.status}" for part in parts),
            "; ".join(dict.fromkeys(part.short for part in parts)),  # two bounds of one figure: said once
            parts,
        )


@dataclass(frozen=True)
class Unmeasured:
    """For what no stage can measure, such as the opinion of people."""

    def quantities(self) -> tuple[Quantity, ...]:
        return ()

    def judge(self, findings: Findings) -> Judgement:
        return Judgement("not measured")


def p_value(rule: ClaimRule, findings: Findings) -> float | None:
    """The smallest level at which the rule is still decided; None for what is computed, not sampled.

    One part that fails is enough for a rule of several to fail: that p-value is multiplied by their number.
    """

    def judged(level: float) -> Judgement:
        return rule.judge(findings.at(1 - level))

    if isinstance(rule, EachAtMost):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if judged(middle).status in DECIDED else (middle, high)
    if high == 1.0:
        return 1.0
    last = judged(high)
    return min(1.0, high * max(1, len(last.parts))) if last.status == "does not hold" else high


def with_holm(
    judged: Sequence[tuple[Claim, Judgement]], level: float = LEVEL
) -> list[tuple[Claim, Judgement]]:
    """Beside each judgement, what is left of it when all claims of the paper are tested at once (Holm 1979).

    The family are the claims with a p-value whose figures are comparable.
    """
    family = [
        at
        for at, (_, judgement) in enumerate(judged)
        if judgement.p is not None and judgement.status not in ("not comparable", "not measured")
    ]
    kept = dict.fromkeys(family, False)
    for passed, at in enumerate(sorted(family, key=lambda at: judged[at][1].p or 0.0)):
        if (judged[at][1].p or 0.0) * (len(family) - passed) >= level:
            break
        kept[at] = True
    return [
        (
            claim,
            replace(judgement, holm=judgement.status if kept[at] else "not decided")
            if at in kept
            else judgement,
        )
        for at, (claim, judgement) in enumerate(judged)
    ]


def beyond(found: IntervalEstimate, bound: float) -> Status:
    """Whether the interval lies above the bound, below it, or on both sides."""
    if found.n < FEWEST or math.isnan(found.value):
        return "not decided"
    if found.low > bound:
        return "holds"
    return "does not hold" if found.high < bound else "not decided"


def _equivalent(difference: IntervalEstimate, within: float) -> Status:
    """Whether the whole interval is nearer to 0 than `within`, or the whole of it is not."""
    if difference.n >= FEWEST and -within < difference.low and difference.high < within:
        return "holds"
    if difference.n >= FEWEST and (difference.low >= within or difference.high <= -within):
        return "does not hold"
    return "not decided"


def together(statuses: list[Status]) -> Status:
    for status in ("does not hold", "not measured", "not decided"):
        if status in statuses:
            return status
    return "holds"


def _of_two(
    status: Status, found: PairedDifference, names: tuple[str, str], word: str, times: float = 1.0
) -> Judgement:
    """`word` stands between the two figures."""
    figures = tuple(zip(names, (found.first, found.second), strict=True))
    told = f" {word} ".join(_named(name, figure) for name, figure in figures)
    short = f" {word} ".join(_brief(name, figure) for name, figure in figures)
    return Judgement(status, f"{told}; {difference_in_words(found, times)}", short)


def difference_in_words(found: PairedDifference, times: float = 1.0) -> str:
    kind = "same rows" if found.is_paired else "different rows"
    head = "difference" if times == 1.0 else f"difference to {times:g} times"
    p = f", p = {found.p:.2g}" if found.p is not None else ""
    return f"{head} {shown(found.estimate)}, {kind}, {rows_in_words(found.estimate)}{p}"


def rows_in_words(found: IntervalEstimate) -> str:
    """How many rows, and how many trainings where there were several."""
    return f"n = {found.n}" + (f", {found.seeds} seeds" if found.seeds > 1 else "")


def _named(name: str, found: IntervalEstimate) -> str:
    return f"{name} {shown(found)}".strip()


def _brief(name: str, found: IntervalEstimate) -> str:
    """Name and value without the interval."""
    value = shown(found).partition(" (")[0]
    return f"{name} {value}".strip()
