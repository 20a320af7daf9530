"""A victim and a recipe, ready to attack examples in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unfooled.core.attempt import attempt
from unfooled.core.engine import Engine
from unfooled.core.oracle import AsyncOracle, Oracle
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result
from unfooled.data.examples import Example
from unfooled.registry import registry
from unfooled.victims.base import Victim
from unfooled.victims.checked import oracle_for


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a result besides victim, data and recipe; `window` and `cache_size` only shape speed."""

    seed: int = 0
    budget: int | None = None
    max_words: int | None = 5000
    window: int = 256
    cache_size: int = 100_000

    def identity(self) -> dict[str, Any]:
        return {"seed": self.seed, "budget": self.budget, "max_words": self.max_words}


def open_oracles(recipe: Recipe, victim: Victim) -> dict[str, Oracle | AsyncOracle]:
    """Everything the recipe asks, the victim last. Missing resources are an error here, before any query."""
    oracles: dict[str, Oracle | AsyncOracle] = {}
    for name in recipe.oracles():
        kind, _, variant = name.partition(":")
        oracles[name] = registry.load("oracle", kind)(variant)
    oracles["victim"] = oracle_for(victim)
    return oracles


class Session:
    """Attacks examples with one engine. Oracles may be shared between sessions or replaced for a test."""

    def __init__(
        self,
        victim: Victim,
        recipe: Recipe,
        settings: Settings | None = None,
        *,
        oracles: Mapping[str, Oracle | AsyncOracle] | None = None,
    ) -> None:
        self.recipe = recipe
        self.settings = settings or Settings()
        self.oracles = dict(oracles) if oracles is not None else open_oracles(recipe, victim)
        self.engine: Engine[Result] = Engine(
            self.oracles, window=self.settings.window, cache_size=self.settings.cache_size
        )

    def attack(self, examples: Iterable[Example]) -> Iterator[Result]:
        """One result per example, in the order in which they finish."""
        for finished in self.engine.run((one.key, self._program(one)) for one in examples):
            assert finished.value is not None, finished.error
            yield finished.value

    def _program(self, example: Example) -> Program[Result]:
        if example.problem:
            return _unusable(example)
        return attempt(
            example.text(),
            example.label,
            self.recipe.goal,
            self.recipe.search,
            key=example.key,
            seed=self.settings.seed,
            budget=self.settings.budget,
            max_words=self.settings.max_words,
        )

    def counters(self) -> dict[str, Any]:
        """What each oracle was asked and computed: counts first, seconds beside them."""
        counted: dict[str, Any] = {}
        for name, traffic in self.engine.traffic.items():
            oracle = self.oracles[name]
            meter = getattr(getattr(oracle, "victim", oracle), "meter", None)
            counted[name] = asdict(traffic) | ({"model": asdict(meter)} if meter is not None else {})
        return counted


def _unusable(example: Example) -> Program[Result]:
    fields = example.content or (("text", ""),)
    names = [name for name, _ in fields]
    field = names.index(example.edit) if example.edit in names else len(names) - 1
    return Result(
        key=example.key,
        outcome="error",
        label=example.label,
        fields=fields,
        field=field,
        perturbed=fields[field][1],
        note=example.problem,
    )
    yield  # no question is needed, but a program is a generator
