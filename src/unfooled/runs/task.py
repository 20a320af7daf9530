"""What a victim does with a text decides how it is given data, looked at, aimed and asked: its task.

A task is found in the registry under the name that `core.victim.task_of` gives. That of classifiers is here;
a wing that brings victims of another kind registers theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from unfooled.attacks.parts.goals import OnlyClass, aimed_at
from unfooled.core.recipe import Recipe
from unfooled.core.result import Example
from unfooled.core.victim import TextValue, Victim, task_of
from unfooled.data.dataset import Dataset
from unfooled.data.loading import as_dataset
from unfooled.errors import DataError
from unfooled.plugins import registry
from unfooled.victims.preflight import Preflight, preflight


@runtime_checkable
class Examples(Protocol):
    """Data of any task: a `Dataset` of labelled texts, say, or sentences and their translations."""

    @property
    def name(self) -> str: ...
    @property
    def cleaning(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Example]: ...
    def nth_key(self, n: int, /) -> int: ...
    def fingerprint(self) -> str: ...
    def classes(self) -> list[int]: ...
    def only(self, keys: Iterable[int]) -> Self: ...
    def aligned(self, victim_labels: Sequence[str], label_map: Mapping[str, str] | None = None) -> Self: ...


class Task(Protocol):
    """What an attack asks about victims of one kind. `core.victim_oracle` asks it for `oracle` as well."""

    def data(self, given: Any, victim: Victim, /) -> Examples:
        """Whatever a caller gave as data, in the form that such victims need."""
        ...

    def preflight(self, victim: Victim, sample: Sequence[Example], /) -> Preflight:
        """Look at the victim before the attack."""
        ...

    def aimed(self, recipe: Recipe, target: str, victim: Victim, /) -> Recipe:
        """The same attack with one target: a class, or a word."""
        ...

    def question(self, text: TextValue, /) -> Hashable:
        """What such a victim's oracle is asked about a text."""
        ...

    def answers(self, victim: Victim, text: TextValue, /) -> Sequence[Any]:
        """What the victim itself answers to a text; whatever goes wrong is raised."""
        ...

    def keep(self, run: Path, victim: Victim, /) -> None:
        """Write into the finished run what its report shows and only the victim can tell."""
        ...


def task_for(victim: Victim) -> Task:
    task: Task = registry.load("task", task_of(victim.capabilities))
    return task


def misfit(data: Examples, victim: Victim, does: str, loader: str) -> DataError:
    """The error of data that was loaded for victims of another task."""
    return DataError(f"{data.name} does not fit: {victim.name} {does}", f"load the data with {loader}")


class Classification:
    """Victims that choose a class."""

    def data(self, given: Any, victim: Victim, /) -> Dataset:
        if isinstance(given, Examples) and not isinstance(given, Dataset):
            raise misfit(given, victim, "chooses classes", "load_data")
        return as_dataset(given, labels=victim.labels)

    def preflight(self, victim: Victim, sample: Sequence[Example], /) -> Preflight:
        return preflight(
            victim, [example.text().value for example in sample], [example.label for example in sample]
        )

    def aimed(self, recipe: Recipe, target: str, victim: Victim, /) -> Recipe:
        if target not in victim.labels:
            known = ", ".join(victim.labels)
            raise DataError(f"there is no class {target!r}", f"the victim's classes are {known}")
        if isinstance(recipe.goal, OnlyClass) and recipe.goal.name.casefold() == target.casefold():
            raise DataError(
                f"{recipe.full_name} attacks only examples of the class {target}, which is also the target",
                "aim at another class, or name other examples with --only",
            )
        return aimed_at(recipe, victim.labels.index(target))

    def question(self, text: TextValue, /) -> Hashable:
        return text

    def answers(self, victim: Victim, text: TextValue, /) -> Sequence[Any]:
        return list(victim.predict([text]))

    def keep(self, run: Path, victim: Victim, /) -> None:
        """Nothing: all that is shown of a classifier is in its results."""


TASK = Classification()
