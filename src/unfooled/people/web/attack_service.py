"""One engine for every tab: attacks of all visitors share the victims, their batches and their answers.

A single thread runs the engine. It takes new attacks as they come, drops cancelled ones before the next
batch, and starts anew when an oracle fails for good. What an attack finds does not depend on who else is
there: that is the engine's own rule.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from unfooled.core.attempt import attempt
from unfooled.core.engine import Engine, Job
from unfooled.core.oracle import AsyncOracle, Oracle
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.session import prepared, require_capabilities, require_resources
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import UserError
from unfooled.people.web.events import Emit, WatchedSearch, Watcher, renamed
from unfooled.plugins import registry
from unfooled.text import Text

WINDOW = 64
CACHE = 20_000
MOST_WORDS = 1000
BATCH = 32  # texts at a time: a cancelled attack is dropped before the next batch


@dataclass(frozen=True)
class Wish:
    """What a visitor wants attacked. Without a label the victim's own decision is attacked."""

    text: Text
    attack: str
    label: int | None = None
    budget: int | None = None
    seed: int = 0


@dataclass(eq=False)
class Lane:
    """One wish on one victim."""

    number: int
    model: int
    wish: Wish
    recipe: Recipe
    oracles: Mapping[str, Oracle | AsyncOracle]
    emit: Emit
    cancelled: bool = False
    over: bool = False
    begun: float = field(default_factory=time.perf_counter)


class EngineRoom:
    def __init__(self, victims: Sequence[Victim]) -> None:
        self.victims = tuple(victims)
        self._new: queue.SimpleQueue[Lane | None] = queue.SimpleQueue()
        self._lanes: dict[int, Lane] = {}
        self._numbers = count()
        self._shared: dict[str, Oracle | AsyncOracle] = {}
        self._ready: dict[tuple[str, int], tuple[Recipe, dict[str, Oracle | AsyncOracle]]] = {}
        self._opening = threading.Lock()
        self._own = {f"victim/{n}": oracle_for(victim) for n, victim in enumerate(self.victims)}
        self._remote = any(isinstance(one, AsyncOracle) for one in self._own.values())
        self._engine: Engine[Any] = self._made()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Everything under way is cancelled; the batch that is being answered is waited for, a little."""
        for lane in list(self._lanes.values()):
            lane.cancelled = True
        self._new.put(None)
        self._thread.join(timeout=2)

    # -- from any thread ---------------------------------------------------------------------------

    def prepare(self, attack: str, model: int) -> tuple[Recipe, Mapping[str, Oracle | AsyncOracle]]:
        """The attack fitted to the victim with its oracles open; slow the first time, then kept.

        A `UserError` says what is missing. Other attacks go on meanwhile.
        """
        with self._opening:
            if (attack, model) not in self._ready:
                victim = self.victims[model]
                recipe = load_recipe(attack)
                require_capabilities(recipe, victim)
                recipe, _ = prepared(recipe, victim)
                require_resources(recipe)
                self._ready[attack, model] = (recipe, self._open(recipe, model))
            return self._ready[attack, model]

    def begin(self, wish: Wish, model: int, emit: Emit) -> Lane:
        """Start an attack; `emit` is called from the engine's thread."""
        recipe, oracles = self.prepare(wish.attack, model)
        lane = Lane(next(self._numbers), model, wish, recipe, oracles, emit)
        self._new.put(lane)
        return lane

    def cancel(self, lane: Lane) -> None:
        """Nothing more is asked for it after the batch under way, and nothing more is emitted from now on."""
        lane.cancelled = True

    @property
    def busy(self) -> int:
        return len(self._lanes)

    def _open(self, recipe: Recipe, model: int) -> dict[str, Oracle | AsyncOracle]:
        inside = registry.names("inside")
        found: dict[str, Oracle | AsyncOracle] = {}
        for name in recipe.oracles():
            kind, _, variant = name.partition(":")
            if kind in inside:
                opened = registry.load("inside", kind)(self.victims[model], variant)
                found[_addressed(name, model)] = self._stoppable(opened)
                continue
            if name not in self._shared:
                self._shared[name] = self._stoppable(registry.load("oracle", kind)(variant))
            found[name] = self._shared[name]
        return found

    # -- the engine's thread -----------------------------------------------------------------------

    def _made(self) -> Engine[Any]:
        own = {name: self._stoppable(one) for name, one in self._own.items()}
        return Engine(own, window=WINDOW, cache_size=CACHE)

    def _stoppable(self, oracle: Any) -> Any:
        # With a remote victim oracles run in threads of their own, and a round is short anyway.
        return oracle if self._remote else _Stoppable(oracle, self._drop_cancelled)

    def _work(self) -> None:
        while True:
            try:
                for _ in self._engine.run(self._jobs()):
                    pass
                return
            except Exception as error:
                # An oracle is down for good. Everybody is told; the next attack finds a fresh engine.
                for lane in list(self._lanes.values()):
                    _tell_failure(lane, error)
                    self._forget(lane)
                self._engine = self._made()

    def _jobs(self) -> Iterator[Job[Any]]:
        while True:
            self._drop_cancelled()
            try:
                lane = self._new.get(block=not self._engine.live)
            except queue.Empty:
                yield None
                continue
            if lane is None:
                return
            if not lane.cancelled:
                self._lanes[lane.number] = lane
                self._engine.add(lane.oracles)
                yield lane.number, self._program(lane)

    def _drop_cancelled(self) -> None:
        for lane in [one for one in self._lanes.values() if one.cancelled]:
            self._engine.cancel(lane.number)
            self._forget(lane)

    def _forget(self, lane: Lane) -> None:
        lane.over = True
        self._lanes.pop(lane.number, None)

    def _program(self, lane: Lane) -> Program[None]:
        def emit(event: dict[str, Any]) -> None:
            if not lane.cancelled:
                lane.emit(event)

        watcher = Watcher(emit)
        program = renamed(_attack(lane, watcher), lambda name: _addressed(name, lane.model), watcher.answered)
        try:
            yield from program
        except GeneratorExit:
            raise  # whoever closed it knows what to tell
        except Exception as error:
            _tell_failure(lane, error)
        self._forget(lane)


def _attack(lane: Lane, watcher: Watcher) -> Program[None]:
    wish, goal = lane.wish, lane.recipe.goal
    label = wish.label
    if label is None:
        (row,) = yield from ask("victim", [wish.text.value])
        label = int(row.argmax())
    result = yield from attempt(
        wish.text,
        label,
        goal,
        WatchedSearch(lane.recipe.search, watcher),
        key=0,
        seed=wish.seed,
        budget=wish.budget,
        max_words=MOST_WORDS,
    )
    watcher.end(replace(result, note=_unaddressed(result.note)), time.perf_counter() - lane.begun)


def _addressed(name: str, model: int) -> str:
    """Oracles that know a victim have an address for each; the others serve all."""
    kind = name.partition(":")[0]
    return f"{name}/{model}" if kind == "victim" or kind in registry.names("inside") else name


def _unaddressed(words: str) -> str:
    """Visitors know the model, not its address in this room."""
    return re.sub(r"^victim/\d+: ", "the model failed: ", words)


def _tell_failure(lane: Lane, error: Exception) -> None:
    if lane.cancelled or lane.over:
        return
    cause, remedy = (error.cause, error.remedy) if isinstance(error, UserError) else (str(error), "")
    cause = _unaddressed(cause) or type(error).__name__
    lane.emit({"kind": "failed", "cause": cause, "remedy": remedy})


class _Stoppable:
    """An oracle in small batches that looks for cancelled attacks before each."""

    def __init__(self, oracle: Oracle, look: Callable[[], None]) -> None:
        self._oracle = oracle
        self._look = look
        self.cacheable = getattr(oracle, "cacheable", True)

    @property
    def batch_size(self) -> int:
        return min(BATCH, self._oracle.batch_size)

    def __call__(self, items: Sequence[Hashable], /) -> Sequence[Any]:
        self._look()
        return self._oracle(items)
