"""The cheapest question first: where the victim costs less than a constraint, ask it before.

A greedy step needs one option: of those that reach the goal the most similar, else the one with the highest
score. With every score known, a dear constraint (a sentence encoder, a language model) is asked about the
options that reach the goal, else from the best option down until one passes, and about none that would not
be kept. The step ends with the same text as if all had been checked before; the victim is asked about more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.search import Explore, GreedySteps, Propose, Step, Ties, allowed, in_order
from unfooled.core.attempt import Attempt, Scored, is_tie
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, with_asking
from unfooled.core.victim import CLASSIFICATION
from unfooled.errors import UnknownNameError


@dataclass(frozen=True)
class VictimFirst:
    """A recipe that asks the victim before its dear constraints."""

    mark: ClassVar[str] = "victim-first"

    def go_through(self, a: Attempt, start: Scored, words: GreedySteps) -> Program[Scored]:
        return (yield from in_order(a, start, words, partial(exploring_victim_first, floor=words.floor)))


def with_victim_first(recipe: Recipe) -> Recipe:
    """The same attack and the same texts, with the dear constraints asked last."""
    if reason := cannot_turn(recipe):
        raise cannot_be(recipe, reason)
    return with_asking(recipe, VictimFirst())


def cannot_be(recipe: Recipe, reason: str) -> UnknownNameError:
    return UnknownNameError(f"{recipe.full_name} cannot ask the victim first: {reason}", "leave --order out")


def cannot_guide(recipe: Recipe) -> str:
    """Why its questions can be put in no other way; nothing where they can."""
    if not getattr(recipe.search, "turns", False):
        return "its search is not the greedy one that keeps a word's best option"
    return "" if recipe.task == CLASSIFICATION else "its victims choose no classes"


def cannot_turn(recipe: Recipe) -> str:
    """Why the order of the questions is fixed; nothing where it is not."""
    if reason := cannot_guide(recipe):
        return reason
    if not split(getattr(recipe.search, "constraints", ()))[1]:
        return "the last of its constraints asks no model"
    return ""


def split(constraints: Sequence[Constraint]) -> tuple[Sequence[Constraint], Sequence[Constraint]]:
    """Those that are asked before the victim, and the dear ones at the end, which may be asked after it."""
    first = len(constraints)
    while first and getattr(constraints[first - 1], "dear", False):
        first -= 1
    return constraints[:first], constraints[first:]


def exploring_victim_first(
    a: Attempt,
    propose: Propose[Step],
    constraints: Sequence[Constraint],
    *,
    ties: Ties = "nearest",
    floor: Scored | None = None,
) -> Explore[Step]:
    """What `exploring` finds, as far as `keep_most_similar` with this `floor` looks at it."""
    cheap, dear = split(constraints)

    def explore(now: Scored, step: Step) -> Program[list[Scored]]:
        proposed = yield from propose(now, step)
        every = yield from allowed(a, now, proposed, cheap, ties)
        # What the last queries pay for is checked as well: a flip among them counts.
        options = [o for o, paid in zip(every, a.payable([o.text for o in every]), strict=True) if paid]
        scored = yield from a.score([option.text for option in options], probe=True)
        checks = _Checks(a, now, options, scored, dear)
        least = (now if floor is None else floor).score
        found = yield from checks.pass_of([n for n, each in enumerate(scored) if each.success])
        if not found:
            # sorted() is stable: equal scores keep the order that decides among equals.
            better = [n for n, each in enumerate(scored) if not each.success and each.score > least]
            found = yield from checks.first_of(sorted(better, key=lambda n: -scored[n].score))
            if a.abstained is None:
                found += yield from checks.first_of(
                    [n for n, each in enumerate(scored) if is_tie(each.probs)]
                )
        a.admit(found, unchecked=checks.unchecked())
        if len(options) < len(every):
            raise a.spent()
        return found

    return explore


class _Checks:
    """The dear constraints of one step, each option asked about at most once."""

    def __init__(
        self,
        a: Attempt,
        now: Scored,
        options: Sequence[NextText],
        scored: Sequence[Scored],
        dear: Sequence[Constraint],
    ) -> None:
        self._a, self._now = a, now
        self._options, self._scored, self._dear = options, scored, dear
        self._checked: dict[int, Scored | None] = {}

    def pass_of(self, numbers: Sequence[int]) -> Program[list[Scored]]:
        """Those that every dear constraint lets pass, in their order, with their similarity."""
        new = [number for number in numbers if number not in self._checked]
        passed = yield from allowed(self._a, self._now, [self._options[n] for n in new], self._dear)
        similarity = {id(option.text): option.similarity for option in passed}
        for number in new:
            text = self._options[number].text
            known = self._scored[number]._replace(similarity=similarity.get(id(text)))
            self._checked[number] = known if id(text) in similarity else None
        return [found for number in numbers if (found := self._checked[number]) is not None]

    def first_of(self, numbers: Sequence[int]) -> Program[list[Scored]]:
        """The first that passes, alone, or none."""
        for number in numbers:
            if found := (yield from self.pass_of([number])):
                return found
        return []

    def unchecked(self) -> list[Scored]:
        return [each for number, each in enumerate(self._scored) if number not in self._checked]
