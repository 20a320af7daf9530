"""Averaged queries: the attack hears the mean of many draws of a random model."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, note, unneeded
from unfooled.checks.illusions.wrappers import Averaged


def run_averages(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """Expectation over transformation: a search that averages over draws is not confused by one."""
    name, words = "averages", "averaged queries (EOT)"
    if not subject.looks.random:
        unneeded(subject, name, words, "it answers without chance")
        return
    for draws in bench.averages:
        keys = subject.survival.survivors()
        if not keys:
            return
        found = bench.attack(
            subject,
            Averaged(subject.victim, draws=draws),
            subject.folder / "checks" / f"average-{draws}",
            title=f"queries averaged over {draws} draws",
            keys=keys,
        )
        remark = f"each score is the mean of {draws} draws or more"
        note(subject, f"{name} {draws}", words, found, remark, cause="chance")


CHECK = IllusionCheck(
    name="averages",
    summary="attacks survivors with queries averaged over random draws (EOT)",
    place=20,
    run=run_averages,
)
