"""What an attack wants. A goal turns the victim's probabilities into a score to raise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.attempt import Goal, Search
from unfooled.core.recipe import Recipe, recipe_versions
from unfooled.core.victim import CLASSIFICATION, Victim
from unfooled.errors import DataError

EVERY_CLASS = "any"


def _decided(probs: NDArray[np.float64], reached: NDArray[np.bool_]) -> list[bool]:
    """Of the rows that reach a goal those with a single most probable class: at a tie the victim abstains."""
    if reached.any():  # most questions reach nothing
        reached &= (probs == probs.max(axis=1, keepdims=True)).sum(axis=1) == 1
    found: list[bool] = reached.tolist()
    return found


@dataclass(frozen=True)
class Untargeted:
    """Any class but the true one."""

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        scores = (1.0 - probs[:, label]).round(6)
        return scores.tolist(), _decided(probs, probs.argmax(axis=1) != label)


def untargeted_versions(searches: Mapping[str, Search], **about: Any) -> dict[str, Recipe]:
    """Versions of an attack that wants any other class; `about` is its name, summary, paper and needs."""
    return recipe_versions(searches, goal=Untargeted(), **about)


@dataclass(frozen=True)
class AnotherDecision:
    """Any class but the true one, of which nothing is read but the decision: the score is 0 or 1."""

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        _, reached = Untargeted().judge(probs, label)
        return [float(flipped) for flipped in reached], reached


def decision_versions(searches: Mapping[str, Search], **about: Any) -> dict[str, Recipe]:
    """Versions of an attack that reads decisions alone; `about` is its name, summary and paper."""
    return recipe_versions(searches, goal=AnotherDecision(), needs=(), **about)


@dataclass(frozen=True)
class Confident:
    """Any class but the true one, with a probability of at least `least`."""

    least: float = 0.7

    def __post_init__(self) -> None:
        if not 0.0 <= self.least <= 1.0:
            raise ValueError("least is a probability")

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        scores, flipped = Untargeted().judge(probs, label)
        sure = probs.max(axis=1).round(6) >= self.least
        return scores, [bool(flip and certain) for flip, certain in zip(flipped, sure, strict=True)]


@dataclass(frozen=True)
class Targeted:
    """One given class, by its index."""

    target: int

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        return probs[:, self.target].tolist(), _decided(probs, probs.argmax(axis=1) == self.target)


@dataclass(frozen=True)
class Margin:
    """Any class but the true one; the score is by how much the best of them leads."""

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        others = np.delete(probs, label, axis=1).max(axis=1)
        _, reached = Untargeted().judge(probs, label)
        return (others - probs[:, label]).round(6).tolist(), reached


@dataclass(frozen=True)
class KeepLabel:
    """The true class, as sure as possible: of an attack that takes away what the victim does not need.

    No text reaches it, the untouched one least of all; a search says itself when it has come far enough.
    """

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        lost = probs.argmax(axis=1) != label  # what keeps the class comes before what does not
        return (probs[:, label] - lost).round(6).tolist(), [False] * len(probs)


@dataclass(frozen=True)
class OnlyClass:
    """Another goal, pursued on the examples of one class.

    The others are scored once and skipped: they count in the accuracy before and after the attack, not in
    its success rate. `label` is the number of the class, filled in when the victim is known.
    """

    name: str
    goal: Goal = Untargeted()
    label: int | None = None

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        return self.goal.judge(probs, label)

    def fit(self, victim: Victim) -> OnlyClass:
        """The class by its number, once the victim's classes are known."""
        if self.label is not None:
            return self
        found = [i for i, label in enumerate(victim.labels) if label.casefold() == self.name.casefold()]
        if len(found) != 1:
            raise DataError(
                f"only examples of the class {self.name!r} are attacked, which the victim does not have",
                f"name one of its classes ({', '.join(victim.labels)}) with --only, "
                f"or attack all with --only {EVERY_CLASS}",
            )
        return replace(self, name=victim.labels[found[0]], label=found[0])

    def passed_over(self, label: int) -> str:
        if self.label is None:
            raise ValueError(f"the number of the class {self.name!r} is not known before a victim is fitted")
        return "" if label == self.label else f"only examples of the class {self.name} are attacked"


def only_class(recipe: Recipe, name: str) -> Recipe:
    """The same attack on the examples of one class; `any` attacks all."""
    goal = recipe.goal.goal if isinstance(recipe.goal, OnlyClass) else recipe.goal
    if recipe.task != CLASSIFICATION:
        raise DataError(f"{recipe.full_name} knows no classes", "leave --only out")
    return replace(recipe, goal=goal if name == EVERY_CLASS else OnlyClass(name, goal))


def aimed_at(recipe: Recipe, target: int) -> Recipe:
    """The same attack with one class, by its index, as its goal."""
    goal = recipe.goal
    aimed = Targeted(target)
    return replace(recipe, goal=replace(goal, goal=aimed) if isinstance(goal, OnlyClass) else aimed)


def aimed_at_word(recipe: Recipe, word: str) -> Recipe:
    """The same attack with one word as its goal, where it is one that makes words appear."""
    if not hasattr(recipe.goal, "keyword"):
        raise DataError(f"{recipe.full_name} makes no word appear", "--target is for targeted-keyword")
    try:
        return replace(recipe, goal=replace(recipe.goal, keyword=word))
    except ValueError as error:
        raise DataError(f"--target {word}: {error}", "give one word of the target language") from None
