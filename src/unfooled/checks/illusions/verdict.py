"""From flags to words: does the gain hold, is it partly an illusion, or do the numbers not decide?

Y is the gain in accuracy under attack over the base, X what of it vanishes in the worst case over all checks.
The base and the control go through the same checks, and what remains is measured against the better of them:
points that retuning alone would have given are no merit of the defence.

More attacks break more of any model, and a base that is at zero already cannot lose what the defence loses.
So a loss alone makes no illusion. It is one where a check has identified the cause: something seen in the
model that makes it look robust, and an attack around it that breaks clearly more than the plain attack tried
again. Without a cause a gain that mostly vanishes has shrunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.checks.illusions.survivors import AGAIN, CheckResult, Flags, Survival
from unfooled.rates import mcnemar, paired_difference

Status = Literal["holds", "illusion", "no gain", "not decided", "shrinks"]

# An illusion: more than a tenth of the gain is gone for certain, by a cause that is known. Holds: less than
# half is gone, for certain. Shrinks: more than half is, and nobody knows why.
ILLUSION_SHARE = 0.1
HOLDS_SHARE = 0.5
LEVEL = 0.05  # of McNemar's exact test: fewer than six pairs that differ cannot reach it
NO_GAIN = 0.05  # a gain that is, for certain, smaller than this is none worth checking
MISSING_CONTROL = (
    "the retuned control is missing, so nobody knows how much of the gain plain retuning would give; make it "
    "with: unfooled harden --method retune --model BASE --data TRAIN --out DIR, and give it as retuned=DIR"
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference of two paired rates with its 95 % interval, and McNemar's p-value."""

    value: float
    low: float
    high: float
    p: float
    n: int

    @classmethod
    def of(cls, first: Mapping[int, bool | None], second: Mapping[int, bool | None]) -> Gap:
        keys = [key for key in first if first[key] is not None and second.get(key) is not None]
        before = np.array([bool(first[key]) for key in keys], dtype=np.float64)
        after = np.array([bool(second[key]) for key in keys], dtype=np.float64)
        differences = before - after
        p = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
        value = float(differences.mean()) if keys else float("nan")
        return cls(value, *paired_difference(differences), p, len(keys))

    @property
    def certain(self) -> bool:
        """Above zero by the interval and by the exact test, which a handful of pairs never passes."""
        return self.low > 0 and self.p < LEVEL

    def points(self) -> str:
        return f"{100 * self.value:+.1f} points ({100 * self.low:+.1f} to {100 * self.high:+.1f})"

    def to_dict(self) -> dict[str, Any]:
        value = None if self.value != self.value else self.value
        return {"value": value, "low": self.low, "high": self.high, "p": self.p, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    model: str
    status: Status
    sentence: str
    findings: tuple[str, ...]  # about the model itself
    notes: tuple[str, ...]  # what else belongs to the number: its price, the control, errors
    gain: Gap  # over the base, under the attack as given
    remaining: Gap  # over the better of base and control, under the worst of all checks
    vanished: Gap
    clean: Gap | None  # clean accuracy against the base
    clean_control: Gap | None
    causes: tuple[str, ...]  # of an illusion: what made the model look robust
    n: int

    def lines(self) -> list[str]:
        return [self.sentence, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "verdict": self.sentence,
            "status": self.status,
            "findings": list(self.findings),
            "notes": list(self.notes),
            "gain": self.gain.to_dict(),
            "remaining": self.remaining.to_dict(),
            "vanished": self.vanished.to_dict(),
            "clean": self.clean.to_dict() if self.clean else None,
            "clean_control": self.clean_control.to_dict() if self.clean_control else None,
            "causes": list(self.causes),
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Rival:
    """What the defended model is compared with."""

    name: str
    survival: Survival
    clean: Flags
    premade: Flags


def judge(
    name: str,
    survival: Survival,
    *,
    clean: Flags,
    premade: Flags,
    checks: Sequence[CheckResult],
    findings: Sequence[str],
    base: Rival,
    control: Rival | None,
) -> Verdict:
    keys = _known(survival, base, control)
    n = len(keys)
    active = _vector(survival.active, keys) - _vector(base.survival.active, keys)
    worst, best = _vector(survival.worst, keys), _best(base, control, keys)
    remaining = worst - _vector(best.survival.worst, keys)
    lost = active - remaining
    gain, rest, vanished = _gap(active), _gap(remaining), _gap(lost)
    ran = [check for check in checks if check.ran]
    causes = _causes(survival, checks, keys, lost, active)
    status = _status(gain, rest, vanished, lost - HOLDS_SHARE * active, ran, causes)
    notes = list(_notes(survival, keys, clean, premade, base, control, checks))
    found = tuple(dict.fromkeys([*_price(clean, base), *findings]))
    sentence = _sentence(status, gain, rest, vanished, ran, best, base, n)
    if status == "illusion":
        sentence = _exposed(sentence, checks, causes)
    return Verdict(
        model=name,
        status=status,
        sentence=". ".join([sentence, *(clause[0].upper() + clause[1:] for clause in found)]),
        findings=found,
        notes=tuple(notes),
        gain=gain,
        remaining=rest,
        vanished=vanished,
        clean=Gap.of(clean, base.clean) if clean else None,
        clean_control=Gap.of(clean, control.clean) if clean and control else None,
        causes=causes if status == "illusion" else (),
        n=n,
    )


def _known(survival: Survival, base: Rival, control: Rival | None) -> list[int]:
    """Examples about which everything is known for every model: only those are compared."""
    tables = [survival, base.survival, *([control.survival] if control else [])]
    flags = [table for survivor in tables for table in (survivor.active, survivor.worst)]
    return [key for key in survival.active if all(table.get(key) is not None for table in flags)]


def _vector(flags: Flags, keys: Sequence[int]) -> NDArray[np.float64]:
    return np.array([bool(flags[key]) for key in keys], dtype=np.float64)


def _best(base: Rival, control: Rival | None, keys: Sequence[int]) -> Rival:
    """The better of the two under the checks; the base where they are equal."""
    if control is None:
        return base
    ours, theirs = (_vector(rival.survival.worst, keys).sum() for rival in (base, control))
    return control if theirs > ours else base


def _gap(differences: NDArray[np.float64]) -> Gap:
    value = float(differences.mean()) if differences.size else float("nan")
    p = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
    return Gap(value, *paired_difference(differences), p, differences.size)


def _causes(
    survival: Survival,
    checks: Sequence[CheckResult],
    keys: Sequence[int],
    lost: NDArray[np.float64],
    active: NDArray[np.float64],
) -> tuple[str, ...]:
    """What made the gain look larger than it is, where that is certain.

    Two things must be more than a tenth of the gain, for certain: what is lost against the base, and what
    fell to checks that know a cause. A check alone may also show that the gain is none.
    """
    exposing = [check.cause for check in checks if check.exposure]
    again = survival.broken.get(AGAIN, set())
    blaming = [check for check in checks if check.cause and _beyond(survival.broken.get(check.name), again)]
    fallen = set().union(*(survival.broken[check.name] for check in blaming)) - again
    blamed = np.array([key in fallen for key in keys], dtype=np.float64)
    certain = (
        _gap(lost).certain
        and paired_difference(lost - ILLUSION_SHARE * active)[0] > 0
        and paired_difference(blamed - ILLUSION_SHARE * active)[0] > 0
    )
    named = [check.cause for check in sorted(blaming, key=lambda check: -check.broken)]
    return tuple(dict.fromkeys([*exposing, *(named if certain else [])]))


def _beyond(fallen: set[int] | None, again: set[int]) -> bool:
    """Clearly more than what falls to the plain attack tried again; several checks are not added up."""
    ours, theirs = len((fallen or set()) - again), len(again)
    return ours > theirs and mcnemar(ours, theirs) < LEVEL


def _status(
    gain: Gap,
    rest: Gap,
    vanished: Gap,
    above_half: NDArray[np.float64],
    ran: Sequence[CheckResult],
    causes: Sequence[str],
) -> Status:
    if gain.low <= 0 and gain.high < NO_GAIN:
        return "no gain"
    if not gain.certain or not ran:
        return "not decided"
    if causes:
        return "illusion"
    low, high = paired_difference(above_half)
    if rest.certain and high < 0:
        return "holds"
    return "shrinks" if vanished.certain and low > 0 else "not decided"


def _exposed(sentence: str, checks: Sequence[CheckResult], causes: Sequence[str]) -> str:
    """An illusion's sentence names what caused it; what shows it without any attack comes first."""
    shown = [check.exposure for check in checks if check.exposure]
    if shown:
        sentence = f"an illusion: {'; '.join(shown)}; {sentence.split(': ', 1)[1]}"
    return f"{sentence}; cause: {', '.join(causes)}"


def _price(clean: Flags, base: Rival) -> list[str]:
    """Who answers everything alike is hard to fool: a loss without any attack stands beside the gain."""
    cost = Gap.of(base.clean, clean)
    if not cost.certain:
        return []
    return [
        f"it costs {100 * cost.value:.1f} points of clean accuracy against {base.name} "
        f"({100 * cost.low:.1f} to {100 * cost.high:.1f})"
    ]


def _sentence(
    status: Status,
    gain: Gap,
    rest: Gap,
    vanished: Gap,
    ran: Sequence[CheckResult],
    best: Rival,
    base: Rival,
    n: int,
) -> str:
    interval = f"{100 * rest.low:+.1f} to {100 * rest.high:+.1f}"
    if status == "no gain":
        return f"no gain: accuracy under attack differs from {base.name} by {gain.points()}, n = {n}"
    if status == "not decided" and not ran:
        return f"not decided at n = {n}: no check was run; the gain reads {gain.points()}"
    if status == "not decided" and not gain.certain:
        few = f", from too few pairs to tell (McNemar p = {gain.p:.2g})" if gain.low > 0 else ""
        return f"not decided at n = {n}: the gain over {base.name} is {gain.points()}{few}{_enough(gain)}"
    if status == "not decided":
        return (
            f"not decided at n = {n}: of a gain of {gain.points()}, {100 * rest.value:.1f} points remain "
            f"under the worst of {_number(ran)} ({interval}), too wide to tell"
        )
    if status == "holds":
        kept = min(rest.value, gain.value)
        more = f", {100 * rest.value:.1f} measured there" if rest.value > gain.value else ""
        return (
            f"holds: {100 * kept:.1f} of {100 * gain.value:.1f} points remain under the worst of "
            f"{_number(ran)}{more} (95 % interval {interval}), n = {n}"
        )
    how = "partly an illusion" if rest.low > 0 else "an illusion"
    if status == "shrinks":
        how = "shrinks, by no cause that a check has identified"
    gone = max(0.0, min(vanished.value, gain.value))
    left = f"{100 * rest.value:.1f} remain"
    if rest.value < 0:
        left = f"it ends {-100 * rest.value:.1f} points below {best.name}"
    return (
        f"{how}: {100 * gone:.1f} of {100 * gain.value:.1f} points vanish under "
        f"{_culprits(ran, best, base)}; {left} (95 % interval {interval}), n = {n}"
    )


def _number(ran: Sequence[CheckResult]) -> str:
    return f"{len(ran)} check{'s' if len(ran) > 1 else ''}"


def _culprits(ran: Sequence[CheckResult], best: Rival, base: Rival) -> str:
    """The checks that broke something, the strongest first; those with the same words are one."""
    broken: dict[str, int] = {}
    for check in ran:
        broken[check.words] = broken.get(check.words, 0) + check.broken
    ranked = sorted((-count, words) for words, count in broken.items() if count)
    named = [f"{words} ({-count} examples)" for count, words in ranked[:3]]
    if best is not base:
        named.append(f"comparison with {best.name}, which has a part of the gain as well")
    return ", ".join(named) or "the checks"


def _enough(gain: Gap) -> str:
    """A rule of thumb for how many examples would decide."""
    half = (gain.high - gain.low) / 2
    if not gain.value > 0 or not gain.n:
        return ""
    needed = int(np.ceil(gain.n * (half / gain.value) ** 2 * 1.1 / 100) * 100)
    return f"; about {needed:,} examples would decide whether it is one" if needed > gain.n else ""


def _notes(
    survival: Survival,
    keys: Sequence[int],
    clean: Flags,
    premade: Flags,
    base: Rival,
    control: Rival | None,
    checks: Sequence[CheckResult],
) -> list[str]:
    notes = []
    rivals = [base, *([control] if control else [])]
    if clean:
        costs = [(rival, Gap.of(clean, rival.clean)) for rival in rivals]
        notes.append(
            "clean accuracy: "
            + ", ".join(
                f"{gap.points()} against {rival.name} (McNemar p = {gap.p:.2g}, n = {gap.n})"
                for rival, gap in costs
            )
        )
    if any(right is not None for right in premade.values()):
        gaps = [(rival, Gap.of(premade, rival.premade)) for rival in rivals]
        notes.append(
            "on pre-made samples: " + ", ".join(f"{gap.points()} against {rival.name}" for rival, gap in gaps)
        )
    if control:
        gap = Gap.of(
            {key: survival.worst[key] for key in keys}, {key: control.survival.worst[key] for key in keys}
        )
        notes.append(f"under all checks: {gap.points()} against {control.name}")
    else:
        notes.append(MISSING_CONTROL)
    left_out = len(survival.active) - len(keys)
    if left_out:
        notes.append(f"{left_out} examples ended in an error somewhere and are left out of the comparison")
    skipped = [
        f"{check.name} ({check.note})"
        for check in checks
        if not check.ran and not check.looked and check.name != "budget"
    ]
    if skipped:
        notes.append(f"checks that did not run: {'; '.join(skipped)}")
    return notes
