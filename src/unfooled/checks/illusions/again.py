"""The same attack once more: how much falls to a second attempt that knows nothing new.

Any attack that is tried again, a little differently, breaks some of what stood. A check that claims to know
why a model only looks robust must break clearly more than that; `verdict.py` compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from unfooled.attacks.parts.importance import RandomOrder
from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, note, unneeded
from unfooled.checks.illusions.survivors import AGAIN
from unfooled.checks.illusions.wrappers import SECOND, Averaged
from unfooled.core.recipe import Recipe
from unfooled.core.victim import Victim


def run_again(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """In a random order of words; a random model is heard in other draws."""
    words = "the same attack tried again"
    if not subject.looks.hiding:
        unneeded(subject, AGAIN, words, "nothing in its answers could hide the way from a search")
        return
    keys = subject.survival.survivors()
    if not keys:
        unneeded(subject, AGAIN, words, "nothing survived so far")
        return
    recipe = _in_random_order(bench.recipe)
    if recipe is None and not subject.looks.random:
        unneeded(subject, AGAIN, words, "this attack has no order of words to change")
        return
    victim: Victim = subject.facing
    if subject.looks.random:
        victim = Averaged(subject.victim, first=SECOND)
    folder = subject.folder / "checks" / "again"
    found = bench.attack(subject, victim, folder, title="the attack tried again", recipe=recipe, keys=keys)
    note(subject, AGAIN, words, found, "what the other checks break must be clearly more")


def _in_random_order(recipe: Recipe) -> Recipe | None:
    if "importance" not in {field.name for field in dataclasses.fields(recipe.search)}:  # type: ignore[arg-type]
        return None
    search = dataclasses.replace(recipe.search, importance=RandomOrder())  # type: ignore[type-var]
    return dataclasses.replace(recipe, search=search, version=f"{recipe.version.split('+')[0]}+random-order")


CHECK = IllusionCheck(
    name=AGAIN,
    summary="tries the same attack again on survivors, to compare the other checks with",
    place=5,
    run=run_again,
)
