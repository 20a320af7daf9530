"""Illusion checks: each attacks what survived so far, in a way that an illusion does not survive.

A check is one file with a `CHECK` in it and one line in the registry (kind `check`), or an entry point
`unfooled.check`. What it finds it leaves with the model by `note` (with a number of texts where it attacked
nothing), or says by `unneeded` why it did not run. Only a check that knows the cause makes a gain an
illusion: more attacks break more of any model, and that alone is nobody's deceit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup, counts
from unfooled.checks.illusions.survivors import CheckResult, Flags
from unfooled.core.result import ATTACKED
from unfooled.plugins import registry, unknown_name
from unfooled.rates import wilson

BUDGETS = (50, 200)


@dataclass(frozen=True, kw_only=True)
class IllusionCheck:
    """`run` gets what all attacks share, the model, and the base and the control as far as they are others.

    Checks run in the order of `place`: what one breaks is no survivor to the next, so cheap ones come first.
    """

    name: str
    summary: str
    run: Callable[[EvaluationSetup, EvaluatedModel, Sequence[EvaluatedModel]], None]
    place: int = 100


def all_checks() -> list[IllusionCheck]:
    """Every check, in the order in which they run."""
    found: list[IllusionCheck] = [registry.load("check", name) for name in registry.names("check")]
    return sorted(found, key=lambda check: (check.place, check.name))


def check_names() -> tuple[str, ...]:
    return tuple(check.name for check in all_checks())


def help_table() -> str:
    """The checks in their order, for `--list`."""
    return "\n".join(
        ["Checks, in this order:", *(f"  {check.name}: {check.summary}" for check in all_checks())]
    )


def require_checks(names: Sequence[str]) -> None:
    """Names that are none are an error."""
    known = check_names()
    for name in names:
        if name not in known:
            raise unknown_name("check", name, list(known))


def run_checks(
    bench: EvaluationSetup,
    subject: EvaluatedModel,
    others: Sequence[EvaluatedModel],
    chosen: Sequence[str] | None = None,
) -> None:
    """Run the chosen checks, all by default. `others` are the base and the control, where they are others.

    What is found is left in `subject.standing` and `subject.checks`.
    """
    _budget(subject)
    for check in all_checks():
        if chosen is None or check.name in chosen:
            check.run(bench, subject, others)
        else:
            unneeded(subject, check.name, check.name, "left out by --checks")


def note(
    subject: EvaluatedModel,
    name: str,
    words: str,
    found: Flags | int,
    remark: str = "",
    *findings: str,
    cause: str = "",
    exposure: str = "",
) -> None:
    """Leave what a check found: which examples are still right, and what a verdict must mention.

    A number in place of the examples: so many texts were looked at, and none was broken. `cause` is what made
    them look robust, where the model shows it: saturated scores, chance, memory.
    """
    result = CheckResult(
        name=name, words=words, note=remark, findings=findings, cause=cause, exposure=exposure
    )
    if isinstance(found, int):
        result = replace(result, looked=found)
    else:
        broken = subject.survival.record(name, found)
        result = replace(result, tried=len(found), broken=broken, errors=counts(found))
    subject.checks.append(result)


def is_compared(subject: EvaluatedModel, name: str, words: str) -> bool:
    """Whether it is a defended model; of base and control it is said that nobody claims anything of them."""
    if not subject.defended:
        unneeded(subject, name, words, "it is what others are compared with")
    return subject.defended


def hidden_way(subject: EvaluatedModel, found: Flags) -> str:
    """Why an attack that does without the model's scores breaks what one that follows them left standing.

    Either the scores can be seen to hide the way, or they lead astray: most of what stood falls for certain
    once they are not followed. A few that fall say nothing; any other attack would break some.
    """
    known = [right for right in found.values() if right is not None]
    fallen = sum(not right for right in known)
    astray = "scores that lead a search astray" if wilson(fallen, len(known))[0] > 0.5 else ""
    return subject.looks.hiding or astray


def unneeded(subject: EvaluatedModel, name: str, words: str, remark: str, *findings: str) -> None:
    """Say why a check attacked nothing, or what else it showed."""
    subject.checks.append(CheckResult(name=name, words=words, note=remark, findings=findings))


def _budget(subject: EvaluatedModel) -> None:
    """Does the attack grow with its budget? Read from the queries that each success took."""
    attacked = [result for result in subject.results() if result.key in subject.survival.active]
    attacked = [result for result in attacked if result.outcome in ATTACKED]
    spent = [result.queries for result in attacked if result.outcome == "success"]
    shares = [f"{budget}: {_share(sum(n <= budget for n in spent), len(attacked))}" for budget in BUDGETS]
    shares.append(f"any number: {_share(len(spent), len(attacked))}")
    unneeded(subject, "budget", "more queries", f"flipped with so many queries: {', '.join(shares)}")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"
