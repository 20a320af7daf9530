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
from unfooled.core.program import AsyncOracle, Oracle, Program, ask
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.session import fit_recipe, require_capabilities, require_resources
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import UserError
from unfooled.people.web.events import AttackEvents, Emit, WatchedSearch, renamed
from unfooled.plugins import registry
from unfooled.text import Text

WINDOW = 64
CACHE = 20_000
MOST_WORDS = 1000
BATCH = 32  # texts at a time: a cancelled attack is dropped before the next batch


@dataclass(frozen=True)
class AttackRequest:
    """What a visitor wants attacked. Without a label the victim's own decision is attacked."""

    text: Text
    attack: str
    label: int | None = None
    budget: int | None = None
    seed: int = 0


@dataclass(eq=False)
class RunningAttack:
    """A request on one of the victims, under way."""

    number: int
    model: int
    request: AttackRequest
    recipe: Recipe
    oracles: Mapping[str, Oracle | AsyncOracle]
    emit: Emit
    cancelled: bool = False
    over: bool = False
    begun: float = field(default_factory=time.perf_counter)


class AttackService:
    """Begins and cancels attacks on its victims, from any thread."""

    def __init__(self, victims: Sequence[Victim]) -> None:
        self.victims = tuple(victims)
        self._new: queue.SimpleQueue[RunningAttack | None] = queue.SimpleQueue()
        self._running: dict[int, RunningAttack] = {}
        self._numbers = count()
        self._shared: dict[str, Oracle | AsyncOracle] = {}
        self._ready: dict[tuple[str, int], tuple[Recipe, dict[str, Oracle | AsyncOracle]]] = {}
        self._opening = threading.Lock()
        self._own = {f"victim/{n}": oracle_for(victim) for n, victim in enumerate(self.victims)}
        self._remote = any(isinstance(oracle, AsyncOracle) for oracle in self._own.values())
        self._engine: Engine[Any] = self._made()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Everything under way is cancelled; the batch that is being answered is waited for, a little."""
        for running in list(self._running.values()):
            running.cancelled = True
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
                recipe, _ = fit_recipe(recipe, victim)
                require_resources(recipe)
                self._ready[attack, model] = (recipe, self._open(recipe, model))
            return self._ready[attack, model]

    def begin(self, request: AttackRequest, model: int, emit: Emit) -> RunningAttack:
        """Start an attack; `emit` is called from the engine's thread."""
        recipe, oracles = self.prepare(request.attack, model)
        running = RunningAttack(next(self._numbers), model, request, recipe, oracles, emit)
        self._new.put(running)
        return running

    def cancel(self, running: RunningAttack) -> None:
        """Nothing more is asked for it after the batch under way, and nothing more is emitted from now on."""
        running.cancelled = True

    @property
    def busy(self) -> int:
        return len(self._running)

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
        own = {name: self._stoppable(oracle) for name, oracle in self._own.items()}
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
                for running in list(self._running.values()):
                    _tell_failure(running, error)
                    self._forget(running)
                self._engine = self._made()

    def _jobs(self) -> Iterator[Job[Any]]:
        while True:
            self._drop_cancelled()
            try:
                running = self._new.get(block=not self._engine.live)
            except queue.Empty:
                yield None
                continue
            if running is None:
                return
            if not running.cancelled:
                self._running[running.number] = running
                self._engine.add(running.oracles)
                yield running.number, self._program(running)

    def _drop_cancelled(self) -> None:
        for running in [found for found in self._running.values() if found.cancelled]:
            self._engine.cancel(running.number)
            self._forget(running)

    def _forget(self, running: RunningAttack) -> None:
        running.over = True
        self._running.pop(running.number, None)

    def _program(self, running: RunningAttack) -> Program[None]:
        def emit(event: dict[str, Any]) -> None:
            if not running.cancelled:
                running.emit(event)

        events = AttackEvents(emit)
        program = renamed(
            _attack(running, events), lambda name: _addressed(name, running.model), events.answered
        )
        try:
            yield from program
        except GeneratorExit:
            raise  # whoever closed it knows what to tell
        except Exception as error:
            _tell_failure(running, error)
        self._forget(running)


def _attack(running: RunningAttack, events: AttackEvents) -> Program[None]:
    request, goal = running.request, running.recipe.goal
    label = request.label
    if label is None:
        (row,) = yield from ask("victim", [request.text.value])
        label = int(row.argmax())
    result = yield from attempt(
        request.text,
        label,
        goal,
        WatchedSearch(running.recipe.search, events),
        key=0,
        seed=request.seed,
        budget=request.budget,
        max_words=MOST_WORDS,
    )
    events.end(replace(result, note=_unaddressed(result.note)), time.perf_counter() - running.begun)


def _addressed(name: str, model: int) -> str:
    """Oracles that know a victim have an address for each; the others serve all."""
    kind = name.partition(":")[0]
    return f"{name}/{model}" if kind == "victim" or kind in registry.names("inside") else name


def _unaddressed(words: str) -> str:
    """Visitors know the model, not its address here."""
    return re.sub(r"^victim/\d+: ", "the model failed: ", words)


def _tell_failure(running: RunningAttack, error: Exception) -> None:
    if running.cancelled or running.over:
        return
    cause, remedy = (error.cause, error.remedy) if isinstance(error, UserError) else (str(error), "")
    cause = _unaddressed(cause) or type(error).__name__
    running.emit({"kind": "failed", "cause": cause, "remedy": remedy})


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
