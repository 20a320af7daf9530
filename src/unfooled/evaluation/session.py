"""A victim and a recipe, ready to attack examples in this process."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unfooled.attacks.goals import for_labels
from unfooled.batching import Meter
from unfooled.core.attempt import attempt
from unfooled.core.engine import Engine
from unfooled.core.oracle import AsyncOracle, Oracle
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, fitted, settled
from unfooled.core.result import Result
from unfooled.core.writing import TextGoal, writing_attempt
from unfooled.data.examples import Example
from unfooled.errors import ResourceError, UserError
from unfooled.registry import registry
from unfooled.resources import store
from unfooled.victims.base import Victim
from unfooled.victims.checked import oracle_for
from unfooled.victims.translator import Translator
from unfooled.victims.translator_oracles import WritingOracle


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a result besides victim, data and recipe; `window` and `cache_size` only shape speed.

    Example:

        >>> short = unfooled.Settings(seed=7, budget=20)
        >>> run = unfooled.attack("fake", "reviews.csv", "deepwordbug", out="runs/short", settings=short)
        >>> max(result.queries for result in run.results()) <= 20
        True
    """

    seed: int = 0
    budget: int | None = None
    max_words: int | None = 5000
    window: int = 256
    cache_size: int = 20_000

    def __post_init__(self) -> None:
        least = {"seed": 0, "budget": 1, "max_words": 1, "window": 1, "cache_size": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise UserError(f"{name}={value} makes no sense", f"{name} is at least {low}")

    def identity(self) -> dict[str, Any]:
        """What a run with these settings is told apart by."""
        return {"seed": self.seed, "budget": self.budget, "max_words": self.max_words}


def require_resources(recipe: Recipe) -> dict[str, str]:
    """Fingerprints of what the recipe reads besides the victim; one error names all that is missing."""
    if missing := missing_resources(recipe):
        raise not_here(recipe.full_name, missing)
    found = {name: _fingerprint(name, variant) for name, variant in _variants(recipe).items()}
    for path, remedy in recipe.files().items():
        if not Path(path).expanduser().is_file():
            raise ResourceError(f"{recipe.full_name} reads the file {path}, which is not here", remedy)
        found[f"file:{path}"] = store.fingerprint(path)
    return found


def not_here(who: str, missing: list[str]) -> ResourceError:
    return ResourceError(
        f"{who} needs {', '.join(missing)}, not here yet",
        f"run: unfooled resources get {' '.join(missing)}",
    )


def missing_resources(recipe: Recipe) -> list[str]:
    known = {one.name: one.present for one in store.status()}
    return sorted({one for one in _variants(recipe).values() if not known.get(one, True)})


def _variants(recipe: Recipe) -> dict[str, str]:
    """Oracles that are not the victim's own, and which resource each reads."""
    inside = registry.names("inside")
    kinds = {name: name.partition(":") for name in recipe.oracles()}
    return {name: variant for name, (kind, _, variant) in kinds.items() if kind not in inside}


def _fingerprint(name: str, variant: str) -> str:
    kind = name.partition(":")[0]
    own = kind in registry.names("fingerprint")
    found: str = registry.load("fingerprint", kind)(variant) if own else store.fingerprint(variant)
    return found


def prepared(recipe: Recipe, victim: Victim) -> tuple[Recipe, list[str]]:
    """The recipe for this victim on this machine, and what to tell the user. Again, it changes nothing."""
    return settled(for_labels(fitted(recipe, victim), victim.labels))


def open_oracles(recipe: Recipe, victim: Victim) -> dict[str, Oracle | AsyncOracle]:
    """Everything the recipe asks, the victim last."""
    inside = open_inside(recipe, victim)
    oracles: dict[str, Oracle | AsyncOracle] = {}
    for name in recipe.oracles():
        kind, _, variant = name.partition(":")
        oracles[name] = inside[name] if name in inside else registry.load("oracle", kind)(variant)
    oracles["victim"] = WritingOracle(victim) if isinstance(victim, Translator) else oracle_for(victim)
    return oracles


def open_inside(recipe: Recipe, victim: Victim) -> dict[str, Oracle]:
    """The oracles that know the victim. Cheap to open: what does not fit together is found out here."""
    inside = registry.names("inside")
    split = {name: name.partition(":") for name in recipe.oracles()}
    return {
        name: registry.load("inside", kind)(victim, variant)
        for name, (kind, _, variant) in split.items()
        if kind in inside
    }


class Session:
    """Attacks examples with one engine. Oracles may be shared between sessions or replaced for a test.

    `attack` does this and writes a run file; a session keeps nothing.

    Example:

        >>> session = unfooled.Session(unfooled.load_victim("fake"), unfooled.load_recipe("deepwordbug"))
        >>> data = unfooled.load_data("reviews.csv")
        >>> sorted(result.key for result in session.attack(data))
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(
        self,
        victim: Victim,
        recipe: Recipe,
        settings: Settings | None = None,
        *,
        oracles: Mapping[str, Oracle | AsyncOracle] | None = None,
        known_good: Hashable = None,
    ) -> None:
        self.recipe, self.notices = prepared(recipe, victim)
        self.settings = settings or Settings()
        goal = self.recipe.goal
        self._goal = (goal, None) if isinstance(goal, TextGoal) else (None, goal)  # slow to find out
        self.oracles = dict(oracles) if oracles is not None else open_oracles(self.recipe, victim)
        self.engine: Engine[Result] = Engine(
            self.oracles,
            window=self.settings.window,
            cache_size=self.settings.cache_size,
            known_good=None if known_good is None else {"victim": known_good},
        )
        # A victim's meter counts for its whole life; this session's share is what comes on top.
        self._meters = {name: asdict(meter) for name in self.oracles if (meter := self._meter(name))}

    def attack(self, examples: Iterable[Example | None]) -> Iterator[Result]:
        """One result per example, in the order in which they finish. None means that one will come later."""
        jobs = ((one.key, self._program(one)) if one is not None else None for one in examples)
        for finished in self.engine.run(jobs):
            assert finished.value is not None, finished.error
            yield finished.value

    def _program(self, example: Example) -> Program[Result]:
        if example.problem:
            return _unusable(example)
        (writing, judging), search = self._goal, self.recipe.search
        shared: dict[str, Any] = {
            "key": example.key,
            "seed": self.settings.seed,
            "budget": self.settings.budget,
            "max_words": self.settings.max_words,
        }
        if writing is not None:
            return writing_attempt(example.text(), example.reference, writing, search, **shared)
        assert judging is not None
        program = attempt(example.text(), example.label, judging, search, **shared)
        return _with_uncleaned(program, example) if example.uncleaned else program

    def counters(self) -> dict[str, Any]:
        """What each oracle was asked and computed: counts first, seconds beside them."""
        counted: dict[str, Any] = {}
        for name, traffic in self.engine.traffic.items():
            counted[name] = asdict(traffic)
            if meter := self._meter(name):
                before = self._meters[name]
                counted[name]["model"] = {key: value - before[key] for key, value in asdict(meter).items()}
        return counted

    def _meter(self, name: str) -> Meter | None:
        oracle = self.oracles[name]
        meter: Meter | None = getattr(getattr(oracle, "victim", oracle), "meter", None)
        return meter


def _with_uncleaned(program: Program[Result], example: Example) -> Program[Result]:
    result = yield from program
    return replace(result, uncleaned=example.uncleaned)


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
        uncleaned=example.uncleaned,
    )
    yield  # no question is needed, but a program is a generator
