"""Oracles whose right answers are known by arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.attacks.parts.goals import Untargeted
from unfooled.core.attempt import Goal, Search, attempt
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result
from unfooled.text import Text


class Answering:
    """An oracle from a plain function of one item; keeps what it was asked."""

    batch_size = 1000

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        self.asked.extend(items)
        return [self.answer(item) for item in items]


def linear(weights: Mapping[str, float], bias: float = 0.0) -> Answering:
    """P(class 1) = 0.5 + bias + the summed weights of the words, clipped: easy to compute by head."""

    def answer(value: Any) -> np.ndarray:
        string = value if isinstance(value, str) else " ".join(value)
        positive = 0.5 + bias + sum(weights.get(word.strip(".,!"), 0.0) for word in string.split())
        positive = min(1.0, max(0.0, positive))
        return np.round(np.array([1 - positive, positive]), 6)

    return Answering(answer)


def neighbours(table: Mapping[str, Sequence[str]]) -> Answering:
    def answer(item: tuple[str, int, float]) -> tuple[str, ...]:
        word, most, _ = item
        return tuple(table.get(word, ())[:most])

    return Answering(answer)


def tags(table: Mapping[str, str]) -> Answering:
    def answer(item: tuple[tuple[str, ...], int, tuple[str, ...]]) -> tuple[str, ...]:
        words, index, options = item
        return tuple(table.get(word.lower(), "NOUN") for word in (words[index], *options))

    return Answering(answer)


def encoder(angles: Mapping[str, float] | None = None) -> Answering:
    """A text points in the direction of the summed angles (in radians) of its words."""

    def answer(text: str) -> np.ndarray:
        angle = sum((angles or {}).get(word.lower().strip(".,!"), 0.0) for word in text.split())
        return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)

    return Answering(answer)


def toy_recipe(search: Search, goal: Goal | None = None) -> Recipe:
    return Recipe(name="toy", version="test", summary="", paper="", goal=goal or Untargeted(), search=search)


def attack_one(
    recipe: Recipe,
    oracles: Mapping[str, Any],
    text: str | Mapping[str, str],
    label: int = 1,
    *,
    key: int = 0,
    seed: int = 0,
    budget: int | None = None,
) -> Result:
    program = attempt(Text(text), label, recipe.goal, recipe.search, key=key, seed=seed, budget=budget)
    (finished,) = Engine[Result](oracles).run([(key, program)])
    assert finished.value is not None
    return finished.value
