"""Abstention: a model that declines to decide is not fooled, and not right either.

One that answers 0.5/0.5, or nearly so, to words it does not know keeps the class on which it leans: a search
brings it to a tie and no further. The share of near-ties is compared with that on the same texts unedited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, is_compared, note, unneeded
from unfooled.checks.illusions.survivors import Flags
from unfooled.rates import mcnemar, wilson

_NAME, _WORDS = "abstention", "near-ties not counted as decisions"
_NEAR = 0.15  # of the model's usual lead: less is a near-tie, also for a model that is never very sure
_SHARE = 0.3  # of attacked texts; an honest model's leads spread evenly, and fewer of them are near-ties
_CLEAR = 0.01


@dataclass(frozen=True, slots=True)
class NearTies:
    """Of the texts on which a model stands under attack, those on which it hardly decides."""

    standing: frozenset[int]
    before: frozenset[int]  # near-ties on the same texts unedited
    after: frozenset[int]

    @property
    def many(self) -> bool:
        """Most certainly more than an honest model has, and brought about by the edits."""
        low, _ = wilson(len(self.after), len(self.standing))
        new, old = len(self.after - self.before), len(self.before - self.after)
        return low > _SHARE and mcnemar(new, old) < _CLEAR

    def __str__(self) -> str:
        return (
            f"{len(self.after)} of {len(self.standing)} texts on which it stands under attack are near-ties, "
            f"{len(self.before)} of the same texts unedited"
        )


def run_abstention(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """Read from what the attack has asked already: it costs no query.

    What the base does as well is no reason why the model looks better.
    """
    if not is_compared(subject, _NAME, _WORDS):
        return
    if subject.looks.random:
        unneeded(subject, _NAME, _WORDS, "it answers by chance, and one draw is no lead")
        return
    ties = _near_ties(subject)
    if not ties.standing:
        unneeded(subject, _NAME, _WORDS, "nothing survived the attack")
    elif not ties.many:
        note(subject, _NAME, _WORDS, len(ties.standing), f"{ties}; no query")
    elif any(_near_ties(other).many for other in others):
        note(subject, _NAME, _WORDS, len(ties.standing), f"{ties}, as with another model; no query")
    else:
        found: Flags = {key: key not in ties.after for key in ties.standing}
        note(subject, _NAME, _WORDS, found, "no query", f"it abstains: {ties}", cause="abstention")


def _near_ties(model: EvaluatedModel) -> NearTies:
    results = [
        result
        for result in model.results()
        if result.key in model.survival.active
        and result.outcome not in ("error", "skipped")
        and result.perturbed_probs
    ]
    standing = [
        result
        for result in results
        if model.survival.active[result.key] or _lead(result.perturbed_probs) == 0.0
    ]
    least = _NEAR * float(np.median([_lead(result.probs) for result in results])) if results else 0.0
    return NearTies(
        standing=frozenset(result.key for result in standing),
        before=frozenset(result.key for result in standing if _lead(result.probs) < least),
        after=frozenset(result.key for result in standing if _lead(result.perturbed_probs) < least),
    )


def _lead(probs: Sequence[float]) -> float:
    """How far the first class is ahead of the second."""
    second, first = sorted(probs)[-2:]
    return first - second


CHECK = IllusionCheck(
    name=_NAME,
    summary="counts answers under attack that are near-ties and no decision",
    place=55,
    run=run_abstention,
)
