"""The one place that decides which rows of the data a limit takes."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from unfooled.attacks.parts.goals import OnlyClass
from unfooled.core.recipe import Recipe
from unfooled.data.sampling import Numbers, Rows, missing_classes, stratified_order
from unfooled.runs.task import Examples

ROWS: tuple[Rows, ...] = ("stratified", "first")

E = TypeVar("E", bound=Examples)


def take(data: E, count: int, *, seed: int, first: bool = False) -> E:
    """So many rows: a stratified sample, or the first ones. A larger count keeps the rows of a smaller."""
    return taken(data, count, seed=seed, first=first)[0]


def taken(data: E, count: int, *, seed: int, first: bool = False) -> tuple[E, str]:
    """The rows that `take` takes, and what must be said about them."""
    if count >= len(data):
        return data, ""
    classes = np.array(data.classes(), dtype=np.int64)
    places = _order(classes, seed, first=first)[:count]
    rows = data.only(data.nth_key(int(place)) for place in places)
    return rows, missing_classes(classes, places, getattr(data, "labels", ()))


def all_but(data: E, others: Examples) -> E:
    """The rows of the data whose keys the others do not have."""
    theirs = {example.key for example in others}
    keys = (data.nth_key(place) for place in range(len(data)))
    return data.only(key for key in keys if key not in theirs)


class RowChoice(NamedTuple):
    """How many rows a limit stands for, and what must be said about them."""

    rows: int
    notice: str = ""


def rows_for(
    data: Examples, recipe: Recipe, limit: int | None, *, seed: int, first: bool = False
) -> RowChoice:
    """How many rows hold the `limit` that are attacked: of an attack on one class, only its rows count.

    The data has its labels in the victim's order, and the recipe knows the number of the class.
    """
    if limit is None or (limit >= len(data) and not isinstance(recipe.goal, OnlyClass)):
        return RowChoice(len(data))
    classes = np.array(data.classes(), dtype=np.int64)
    order = _order(classes, seed, first=first)
    count = _count(classes[order], recipe, limit)
    labels = getattr(data, "labels", ())
    return RowChoice(count, missing_classes(classes, order[:count], labels))


def _order(classes: Numbers, seed: int, *, first: bool) -> Numbers:
    return np.arange(classes.size) if first else stratified_order(classes, seed)


def _count(classes: Numbers, recipe: Recipe, limit: int) -> int:
    if not isinstance(recipe.goal, OnlyClass):
        return min(limit, classes.size)
    places = (n for n, number in enumerate(classes.tolist(), 1) if number == recipe.goal.label)
    return next(islice(places, limit - 1, None), classes.size)
