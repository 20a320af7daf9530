"""A victim and a recipe, ready to attack examples in this process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unfooled.core.attempt import Attempt, live
from unfooled.core.engine import Engine
from unfooled.core.program import AsyncOracle, Oracle, Program, ask
from unfooled.core.recipe import Recipe, all_recipes, fit_to_machine, fit_to_victim
from unfooled.core.result import UNREAD, Example, Result
from unfooled.core.victim import CLASSIFICATION, Victim, gives, task_of
from unfooled.core.victim_oracle import UnreadOracle, oracle_for
from unfooled.device import FULL, computing, said
from unfooled.errors import CapabilityError, OracleError, ResourceError, UserError
from unfooled.plugins import registry

if TYPE_CHECKING:
    from unfooled.batching import Meter


LIVE_CHARACTERS = 1_000_000  # of all examples under way: 256 of 700 words each


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a result besides victim, data and recipe; `window` and `cache_size` only shape speed.

    `any_language` attacks texts in a script that the attack's words do not know; see `coverage.py`. `device`
    and `precision` are those of the models that the attack itself opens; see `device.py`.

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
    any_language: bool = False
    device: str = field(default_factory=lambda: said().device)
    precision: str = field(default_factory=lambda: said().precision)

    def __post_init__(self) -> None:
        least = {"seed": 0, "budget": 1, "max_words": 1, "window": 1, "cache_size": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise UserError(f"{name}={value} makes no sense", f"{name} is at least {low}")

    def identity(self) -> dict[str, Any]:
        """What a run with these settings is told apart by."""
        shared = {"seed": self.seed, "budget": self.budget, "max_words": self.max_words}
        return shared if self.precision == FULL else {**shared, "precision": self.precision}


def require_resources(recipe: Recipe) -> dict[str, str]:
    """Fingerprints of what the recipe reads besides the victim; one error names all that is missing."""
    require_oracles(recipe.oracles(), recipe.full_name)
    found = {name: _fingerprint(name, variant) for name, variant in _variants(recipe.oracles()).items()}
    for path, remedy in recipe.files().items():
        if not Path(path).expanduser().is_file():
            raise ResourceError(f"{recipe.full_name} reads the file {path}, which is not here", remedy)
        found[f"file:{path}"] = _fingerprint("", path)
    return found


def require_oracles(names: Sequence[str], who: str) -> None:
    """One error names all resources that these oracles read and that are not here."""
    if missing := missing_resources(names):
        raise not_here(who, missing)


def not_here(who: str, missing: list[str]) -> ResourceError:
    """One message for all that is missing: what can be fetched, and the choices where something cannot."""
    from unfooled.resources import fillmask, store

    long = {resource.name for resource in store.status() if resource.long}
    fetched = [name for name in missing if name not in long]
    steps = [f"run: unfooled resources get {' '.join(fetched)}"] if fetched else []
    for name in missing:
        if name == fillmask.DEFAULT:
            steps.append(fillmask.choices())
        elif name in long:
            steps.append(f"run: unfooled resources build {name}")
    named = ["a masked language model" if name == fillmask.DEFAULT else name for name in missing]
    return ResourceError(f"{who} needs {', '.join(named)}, not here yet", "\n  → ".join(steps))


def missing_resources(names: Sequence[str]) -> list[str]:
    """Of what these oracles read, the resources that are not here. Many attacks read none at all."""
    variants = _variants(names)
    if not variants:
        return []
    from unfooled.resources import fillmask, store

    known = {resource.name: resource.present for resource in store.status()}
    wanted = {
        part
        for name, variant in variants.items()
        for part in (fillmask.parts(variant) if name.startswith("fill:") else (variant,))
    }
    return sorted(name for name in wanted if not known.get(name, True))


def _variants(names: Sequence[str]) -> dict[str, str]:
    """Oracles that are not the victim's own, and which resource each reads."""
    inside = registry.names("inside")
    kinds = {name: name.partition(":") for name in names}
    return {name: variant for name, (kind, _, variant) in kinds.items() if kind not in inside}


def _fingerprint(name: str, variant: str) -> str:
    kind = name.partition(":")[0]
    if kind in registry.names("fingerprint"):
        own: str = registry.load("fingerprint", kind)(variant)
        return own
    from unfooled.resources import store

    return store.fingerprint(variant)


def require_capabilities(recipe: Recipe, victim: Victim) -> None:
    """Refuse an attack that asks what the victim cannot answer; the error names attacks that fit."""
    task = task_of(victim.capabilities)
    missing = [need for need in recipe.requires() if need not in victim.capabilities]
    if recipe.task != task and task != CLASSIFICATION:
        missing = ["classes"]
    if not missing:
        return
    fit = [
        known.full_name
        for known in all_recipes()
        if set(known.requires()) <= victim.capabilities and known.task == task
    ]
    raise CapabilityError(
        f"{recipe.full_name} needs {' and '.join(missing)}, which {victim.name} does not give",
        f"attacks that work on it: {', '.join(fit)}" if fit else "no attack works on such a victim yet",
    )


def fit_recipe(recipe: Recipe, victim: Victim) -> tuple[Recipe, list[str]]:
    """The recipe for this victim on this machine, and what to tell the user. Again, it changes nothing."""
    return fit_to_machine(fit_to_victim(recipe, victim))


def open_named(
    names: Sequence[str], victim: Victim, opened: Mapping[str, Oracle | AsyncOracle] | None = None
) -> dict[str, Oracle | AsyncOracle]:
    """What programs ask besides the victim: resources, and what knows the victim from inside.

    Those that are `opened` already are not opened again.
    """
    known = {**open_inside(names, victim), **(opened or {})}
    oracles: dict[str, Oracle | AsyncOracle] = {}
    for name in names:
        kind, _, variant = name.partition(":")
        oracles[name] = known[name] if name in known else registry.load("oracle", kind)(variant)
    return oracles


def open_inside(names: Sequence[str], victim: Victim) -> dict[str, Oracle]:
    """The oracles that know the victim. Cheap to open: what does not fit together is found out here."""
    inside = registry.names("inside")
    split = {name: name.partition(":") for name in names}
    return {
        name: registry.load("inside", kind)(victim, variant)
        for name, (kind, _, variant) in split.items()
        if kind in inside
    }


def open_oracles(
    recipe: Recipe, victim: Victim, opened: Mapping[str, Oracle | AsyncOracle] | None = None
) -> dict[str, Oracle | AsyncOracle]:
    """Everything the recipe asks, the victim last. Of one that cuts texts also how much it leaves out."""
    cuts: dict[str, Oracle | AsyncOracle] = {UNREAD: UnreadOracle(victim)} if gives(victim, UNREAD) else {}
    return open_named(recipe.oracles(), victim, opened) | cuts | {"victim": oracle_for(victim)}


class Life(NamedTuple):
    """How far a running attack is, for whoever watches it: numbers that can be read at any time.

    Questions are texts put to the victim, and whatever else an attack asks.
    """

    examples: int = 0  # under way
    answered: int = 0  # questions to the victim, those of a batch that is still being computed included
    others: int = 0  # questions answered by language models, encoders and the like
    open: int = 0  # questions to the victim that wait for an answer
    oldest: int | None = None  # the example that has been under way for longest
    oldest_asked: int = 0  # its questions so far
    oldest_answered: int = 0

    @classmethod
    def together(cls, parts: Iterable[Life]) -> Life:
        """Of several processes: the sums, and the example that has asked most."""
        parts = list(parts)
        slowest = max(parts, key=lambda part: part.oldest_asked, default=cls())
        return cls(
            sum(part.examples for part in parts),
            sum(part.answered for part in parts),
            sum(part.others for part in parts),
            sum(part.open for part in parts),
            slowest.oldest,
            slowest.oldest_asked,
            slowest.oldest_answered,
        )


class SessionParts(NamedTuple):
    """What a session is made of, in this process or in another."""

    victim: Victim
    recipe: Recipe
    settings: Settings
    known_good: Hashable


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
        check: Callable[[], None] | None = None,
    ) -> None:
        self.recipe, self.notices = fit_recipe(recipe, victim)
        self.settings = settings or Settings()
        with computing(self.settings.device, self.settings.precision):
            self.oracles = dict(oracles) if oracles is not None else open_oracles(self.recipe, victim)
        inside = registry.names("inside")
        # How much of a text is not read only its tokenizer says: that is no question that anybody pays for.
        self._asks_victim = {n for n in self.oracles if n.partition(":")[0] in {"victim", *inside}}
        self.engine: Engine[Result] = Engine(
            self.oracles,
            window=self.settings.window,
            cache_size=self.settings.cache_size,
            known_good=None if known_good is None else {"victim": known_good},
            apart=self._apart(victim),
            check=check,
        )
        # A victim's meter counts for its whole life; this session's share is what comes on top.
        self._meters = {name: asdict(meter) for name in self.oracles if (meter := self._meter(name))}

    def attack(self, examples: Iterable[Example | None]) -> Iterator[Result]:
        """One result per example, in the order in which they finish. None means that one will come later."""
        held: dict[Hashable, int] = {}  # characters of the examples under way
        for finished in self.engine.run(self._jobs(examples, held)):
            assert finished.value is not None, finished.error
            held.pop(finished.key, None)
            yield finished.value

    def _jobs(
        self, examples: Iterable[Example | None], held: dict[Hashable, int]
    ) -> Iterator[tuple[Hashable, Program[Result]] | None]:
        for example in examples:
            if example is None:
                yield None
                continue
            size = sum(len(content) for _, content in example.content)
            # A search holds its text some hundred times over: of long ones fewer are under way.
            while held and sum(held.values()) + size > LIVE_CHARACTERS:
                yield None
            held[example.key] = size
            yield example.key, self._program(example)

    def _apart(self, victim: Victim) -> frozenset[str]:
        """Oracles that compute on a device of their own. A defence uses the processor as well, so its class
        must say that it is apart itself, not the victim inside it."""
        found = {name for name, oracle in self.oracles.items() if getattr(oracle, "apart", False)}
        if hasattr(type(victim), "apart") and getattr(victim, "apart", False):
            # They share one model and its tokenizer, which know one caller at a time.
            found |= self._asks_victim | ({UNREAD} & self.oracles.keys())
        return frozenset(found)

    def _program(self, example: Example) -> Program[Result]:
        if example.problem:
            return _unusable(example)
        goal = self.recipe.goal
        shared: dict[str, Any] = {
            "key": example.key,
            "seed": self.settings.seed,
            "budget": self.settings.budget,
        }
        if hasattr(goal, "attempt_on"):
            a: Attempt = goal.attempt_on(example, **shared)
        else:
            a = Attempt(example.text(), example.label, goal, **shared)
        a.asking = self.recipe.asking
        program = live(a, self.recipe.search, max_words=self.settings.max_words)
        if UNREAD in self.oracles:
            program = _with_unread(program, a.original.value)
        return _with_uncleaned(program, example) if example.uncleaned else program

    def counters(self) -> dict[str, Any]:
        """What each oracle was asked and computed: counts first, seconds beside them."""
        counted: dict[str, Any] = {}
        for name, traffic in self.engine.traffic.items():
            counted[name] = asdict(traffic)
            if meter := self._meter(name):
                before = self._meters[name]
                now = asdict(meter)
                counted[name]["model"] = {key: value - before[key] for key, value in now.items()}
                counted[name]["model"]["largest"] = now["largest"]
        return counted

    def life(self) -> Life:
        """How far it is, now. May be called from another thread."""
        traffic = list(self.engine.traffic.items())
        computed = sum(flow.computed for name, flow in traffic if name in self._asks_victim)
        meter = self._meter("victim")
        # A model counts its passes within a batch of thousands, the engine whole batches.
        texts = meter.items - self._meters["victim"]["items"] if meter is not None else 0
        under_way = max(0, texts - computed)
        waiting = sum(self.engine.open(name) for name in self._asks_victim)
        key, asked, answered = self.engine.oldest() or (None, 0, 0)
        return Life(
            self.engine.live,
            computed + under_way,
            sum(flow.computed for name, flow in traffic if name not in self._asks_victim),
            max(0, waiting - under_way),
            key if isinstance(key, int) else None,
            asked,
            answered,
        )

    def _meter(self, name: str) -> Meter | None:
        oracle = self.oracles[name]
        meter: Meter | None = getattr(getattr(oracle, "victim", oracle), "meter", None)
        return meter


def _with_unread(program: Program[Result], text: Hashable) -> Program[Result]:
    result = yield from program
    try:
        (share,) = yield from ask(UNREAD, [text])
    except OracleError:  # a text that cannot be read at all is an error of the result already
        return result
    return replace(result, facts=(*result.facts, (UNREAD, share))) if share else result


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
