"""Re-scaled scores: a saturated score shows a search no way, its logit does."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, note, unneeded
from unfooled.checks.illusions.wrappers import Tempered

_SWEEP = (1.0, 4.0, 0.25)  # times the temperature that gives a median margin of 2
_SURE = 0.999  # below this confidence six decimals resolve a two-class score: re-scaling changes nothing


def run_temperature(
    bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]
) -> None:
    """The attack on re-scaled logits: a score that is 1.000000 everywhere shows no way, its logit does."""
    name, words = "temperature", "re-scaled scores"
    looks = subject.looks
    if looks.decimals is not None:
        unneeded(subject, name, words, "rounded scores cannot be re-scaled; see the guided attack")
        return
    keys = subject.survival.survivors()
    if len(subject.victim.labels) == 2:
        sure = {result.key for result in subject.results() if max(result.probs, default=0.0) >= _SURE}
        keys = [key for key in keys if key in sure]
    if not keys:
        unneeded(subject, name, words, "no survivor has a score that re-scaling could change")
        return
    for factor in _SWEEP:
        keys = [key for key in subject.survival.survivors() if key in set(keys)]
        if not keys:
            return
        degree = looks.temperature * factor
        found = bench.attack(
            subject,
            Tempered(subject.facing, degree),
            subject.folder / "checks" / f"temperature-x{factor:g}",
            title=f"scores at temperature {degree:.3g}",
            keys=keys,
        )
        cause = "saturated scores" if looks.saturated > 0.5 else ""
        note(subject, f"{name} ×{factor:g}", words, found, f"logits divided by {degree:.3g}", cause=cause)


CHECK = IllusionCheck(
    name="temperature", summary="attacks survivors on re-scaled scores", place=10, run=run_temperature
)
