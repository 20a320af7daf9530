"""Live programs and their open questions. Pure bookkeeping: drivers do the asking (see `engine.py`)."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from unfooled.core.program import Ask, Program

R = TypeVar("R")
_ABSENT = object()
# Characters of questions that the cache may hold besides its number of entries: long texts are few then.
CACHED_CHARACTERS = 32_000_000


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    """A program that ended: with a value, or with the exception that ended it."""

    key: Hashable
    value: R | None
    error: BaseException | None = None


@dataclass(slots=True)
class Traffic:
    """Questions to one oracle: how many were asked, and how many had to be computed."""

    asked: int = 0
    computed: int = 0
    calls: int = 0
    seconds: float = 0.0


class _Live(Generic[R]):
    __slots__ = ("answers", "asked", "dead", "key", "missing", "program")

    def __init__(self, key: Hashable, program: Program[R], asked: int = 0) -> None:
        self.key = key
        self.program = program
        self.asked = asked  # questions in all its rounds
        self.answers: list[list[Any]] = []
        self.missing = 0
        self.dead = False


@dataclass(slots=True)
class _Waiter(Generic[R]):
    live: _Live[R]
    ask: int
    item: int


@dataclass(slots=True)
class Scheduler(Generic[R]):
    """Steps programs as far as their answers allow.

    Equal questions of different programs are pending once. Answers are kept in a bounded cache, so nothing
    is computed twice within a run of ordinary size and memory stays flat in one of any size.
    """

    cache_size: int
    uncached: frozenset[str] = frozenset()
    finished: deque[Finished[R]] = field(default_factory=deque)
    traffic: dict[str, Traffic] = field(default_factory=dict)
    live: int = 0
    _lives: dict[Hashable, _Live[R]] = field(default_factory=dict)  # in the order of their start
    _pending: dict[str, dict[Hashable, list[_Waiter[R]]]] = field(default_factory=dict)
    _flying: dict[str, dict[Hashable, list[_Waiter[R]]]] = field(default_factory=dict)
    _cache: dict[str, OrderedDict[Hashable, Any]] = field(default_factory=dict)
    _cached_characters: dict[str, int] = field(default_factory=dict)

    def start(self, key: Hashable, program: Program[R]) -> None:
        self.live += 1
        self._lives[key] = live = _Live(key, program)
        self._step(live, None, None)

    def pending(self, oracle: str) -> int:
        return len(self._pending.get(oracle, ()))

    def open(self, oracle: str) -> int:
        """Questions that wait for an answer, taken or not. May be read from another thread."""
        return len(self._pending.get(oracle, ())) + len(self._flying.get(oracle, ()))

    def oldest(self) -> tuple[Hashable, int, int] | None:
        """The program that has been live for longest, its questions and how many of them have an answer. May
        be read from another thread."""
        try:
            live = next(iter(self._lives.values()))
        except (StopIteration, RuntimeError):  # none, or one ended just now
            return None
        return live.key, live.asked, live.asked - live.missing

    def take(self, oracle: str, most: int | None = None) -> list[Hashable]:
        """Hand out open questions; each must come back through `answer` or `fail`."""
        waiting = self._pending.get(oracle, {})
        flying = self._flying.setdefault(oracle, {})
        taken: list[Hashable] = []
        for item in list(waiting):
            if most is not None and len(taken) >= most:
                break
            waiters = waiting.pop(item)
            if all(waiter.live.dead for waiter in waiters):
                continue
            flying[item] = waiters
            taken.append(item)
        return taken

    def wanted(self, oracle: str, items: Sequence[Hashable]) -> list[Hashable]:
        """Those of the items taken whose programs still live; the others are forgotten."""
        flying = self._flying[oracle]
        dead = [item for item in items if all(waiter.live.dead for waiter in flying[item])]
        for item in dead:
            del flying[item]
        return [item for item in items if item in flying] if dead else list(items)

    def untried(self, oracle: str) -> list[Hashable]:
        """Open questions that nobody has taken yet."""
        return list(self._pending.get(oracle, ()))

    def taken(self, oracle: str) -> list[Hashable]:
        """Questions handed out and not yet answered."""
        return list(self._flying.get(oracle, ()))

    def answer(self, oracle: str, items: Sequence[Hashable], answers: Sequence[Any]) -> None:
        if oracle not in self.uncached:
            self._remember(oracle, items, answers)
        flying = self._flying[oracle]
        ready: list[_Live[R]] = []
        for item, answer in zip(items, answers, strict=True):
            for waiter in flying.pop(item):
                live = waiter.live
                live.answers[waiter.ask][waiter.item] = answer
                live.missing -= 1
                if not live.missing and not live.dead:
                    ready.append(live)
        for live in ready:
            self._step(live, live.answers, None)

    def _remember(self, oracle: str, items: Sequence[Hashable], answers: Sequence[Any]) -> None:
        cache = self._cache.setdefault(oracle, OrderedDict())
        characters = self._cached_characters.get(oracle, 0)
        for item, answer in zip(items, answers, strict=True):
            cache[item] = answer
            characters += _characters(item)
        while len(cache) > self.cache_size or characters > CACHED_CHARACTERS:
            oldest, _ = cache.popitem(last=False)
            characters -= _characters(oldest)
        self._cached_characters[oracle] = characters

    def fail(self, oracle: str, item: Hashable, error: BaseException) -> None:
        """The item cannot be answered: its owners, and nobody else, get the exception."""
        for waiter in self._flying[oracle].pop(item):
            if not waiter.live.dead:
                self._step(waiter.live, None, error)

    def cancel(self, key: Hashable) -> bool:
        """End one live program without a result. What it asked is forgotten unless others ask it too."""
        waiting = [
            w for table in (self._pending, self._flying) for items in table.values() for w in items.values()
        ]
        lives = {
            id(waiter.live): waiter.live
            for waiters in waiting
            for waiter in waiters
            if waiter.live.key == key
        }
        found = [live for live in lives.values() if not live.dead]
        for live in found:
            live.dead = True
            live.program.close()
            self.live -= 1
            self._lives.pop(live.key, None)
        return bool(found)

    def close(self) -> None:
        """End every live program; its `finally` blocks run."""
        for table in (self._pending, self._flying):
            for waiting in table.values():
                for waiters in waiting.values():
                    for waiter in waiters:
                        waiter.live.program.close()

    def _step(self, live: _Live[R], answers: list[list[Any]] | None, error: BaseException | None) -> None:
        """Resume one program, and again for as long as the cache answers everything it asks."""
        while True:
            try:
                if error is not None:
                    # Questions of the failed round may still be on their way; a fresh record ignores them.
                    live.dead = True
                    self._lives[live.key] = live = _Live(live.key, live.program, live.asked)
                    asks = live.program.throw(error)
                    error = None
                elif answers is None:
                    asks = next(live.program)
                else:
                    asks = live.program.send(answers)
            except StopIteration as stop:
                self._finish(Finished(live.key, stop.value))
                return
            except Exception as raised:
                self._finish(Finished(live.key, None, raised))
                return
            self._post(live, asks)
            if live.missing:
                return
            answers = live.answers

    def _finish(self, finished: Finished[R]) -> None:
        self.live -= 1
        self._lives.pop(finished.key, None)
        self.finished.append(finished)

    def _post(self, live: _Live[R], asks: Iterable[Ask]) -> None:
        live.answers = []
        missing = 0
        for number, (oracle, items) in enumerate(asks):
            known: Mapping[Hashable, Any] = self._cache.get(oracle, {})
            waiting = self._pending.setdefault(oracle, {})
            flying = self._flying.setdefault(oracle, {})
            traffic = self.traffic.setdefault(oracle, Traffic())
            traffic.asked += len(items)
            live.asked += len(items)
            answers: list[Any] = []
            for place, item in enumerate(items):
                answer = known.get(item, _ABSENT)
                if answer is _ABSENT:
                    waiter = _Waiter(live, number, place)
                    if item in flying:
                        flying[item].append(waiter)
                    elif item in waiting:
                        waiting[item].append(waiter)
                    else:
                        waiting[item] = [waiter]
                    missing += 1
                answers.append(answer)
            live.answers.append(answers)
        live.missing = missing


def _characters(item: Hashable) -> int:
    if isinstance(item, str):
        return len(item)
    return sum(map(_characters, item)) if isinstance(item, tuple) else 8
