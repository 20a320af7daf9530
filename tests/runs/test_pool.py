"""Who gets which work and what a dead worker costs, with workers that are threads and die on command."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from unfooled.core.session import Life
from unfooled.errors import VictimError
from unfooled.runs.workers.job import work
from unfooled.runs.workers.pool import GoneError, Pool


class Item(NamedTuple):
    key: int


class Doubling:
    """Gives each key's double; ends as the pool's items tell it."""

    window = 4

    def __init__(self, deadly: Iterable[int] = ()) -> None:
        self.deadly = set(deadly)
        self.waiting: list[Item] = []

    def open(self) -> Doubling:
        return Doubling(self.deadly)

    def killed(self, item: Item, cause: str, /) -> Answer:
        return Answer(item.key, cause)

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    def run(self, items: Iterable[Item | None], /) -> Iterator[Any]:
        for item in items:
            if item is None:
                done, self.waiting = self.waiting, []
                yield from (Answer(given.key, 2 * given.key) for given in done)
                continue
            if item.key in self.deadly:
                raise SystemExit
            self.waiting.append(item)
            if len(self.waiting) >= self.window:
                yield Answer(self.waiting[0].key, 2 * self.waiting.pop(0).key)
        yield from (Answer(given.key, 2 * given.key) for given in self.waiting)

    def life(self) -> Life:
        return Life(answered=1)

    def counters(self) -> dict[str, Any]:
        return {"victim": {"asked": 1}}


class Answer(NamedTuple):
    key: int
    value: Any


@dataclass(eq=False)
class Thread:
    """Both ends of the connection to a worker that is a thread."""

    job: Doubling
    starts: bool = True
    gone: GoneError | None = None
    given: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    said: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        if self.starts:
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            work(lambda: self.job, Inside(self))
        except SystemExit:
            self.gone = GoneError("fell over")
        self.said.put(None)

    def send(self, items: list[Any], /) -> None:
        self.given.put(items)

    def messages(self) -> list[tuple[str, Any]]:
        found = self.said.get()
        if found is None:
            raise self.gone or GoneError("ended")
        return [found]


class Inside:
    def __init__(self, thread: Thread) -> None:
        self.thread = thread

    def send(self, kind: str, content: Any, /) -> None:
        self.thread.said.put((kind, content))

    def waits(self) -> bool:
        return not self.thread.given.empty()

    def receive(self) -> list[Any]:
        found: list[Any] = self.thread.given.get(timeout=30)
        return found


class Threads:
    def __init__(self, job: Doubling, *, starting: Iterable[bool] = ()) -> None:
        self.job = job
        self.starting = iter(starting)
        self.started = 0
        self.closed: list[Thread] = []

    def start(self) -> Thread:
        self.started += 1
        return Thread(self.job, next(self.starting, True))

    def ready(self, channels: Sequence[Thread], timeout: float | None, /) -> list[Thread]:
        limit = threading.Event()
        for _ in range(3000):
            if found := [channel for channel in channels if not channel.said.empty()]:
                return found
            limit.wait(0.01)
        raise AssertionError("no worker has anything to say any more")

    def close(self, channels: Sequence[Thread], /) -> None:
        self.closed += channels


def run(transport: Threads, items: int, size: int) -> dict[int, Any]:
    source = map(Item, range(items))
    pool = Pool(transport, transport.job, source, size=size, remaining=items)
    found = [tuple(answer) for answer in pool.run()]
    assert len(found) == len(dict(found))  # nothing twice
    return dict(found)


def test_all_work_is_done_once() -> None:
    assert run(Threads(Doubling()), 50, 3) == {key: 2 * key for key in range(50)}


def test_no_more_workers_than_work() -> None:
    transport = Threads(Doubling())
    assert len(run(transport, 2, 8)) == 2
    assert transport.started == 2


def test_workers_for_which_there_is_no_room_are_not_waited_for() -> None:
    transport = Threads(Doubling(), starting=(True, False, False, True))
    assert run(transport, 50, 4) == {key: 2 * key for key in range(50)}
    assert len(transport.closed) == 2


def test_what_kills_its_worker_is_found_and_was_tried_three_times_alone() -> None:
    transport = Threads(Doubling(deadly=[13]))
    found = run(transport, 20, 2)
    assert found.pop(13) == "fell over"
    assert found == {key: 2 * key for key in range(20) if key != 13}


def test_a_machine_that_goes_blames_nobody() -> None:
    """Seven times, each with at least one item in its hands."""
    left = threading.Semaphore(7)

    class Unlucky(Doubling):
        def open(self) -> Doubling:
            return Unlucky({5} if left.acquire(blocking=False) else ())

    class Machine(Thread):
        def _work(self) -> None:
            try:
                work(lambda: self.job, Inside(self))
            except SystemExit:
                self.gone = GoneError("its machine went", blameless=True)
            self.said.put(None)

    class Machines(Threads):
        def start(self) -> Thread:
            self.started += 1
            return Machine(self.job)

    transport = Machines(Unlucky())
    assert run(transport, 20, 2) == {key: 2 * key for key in range(20)}


def test_machines_that_only_ever_go_stop_the_run() -> None:
    class Machine(Thread):
        def _work(self) -> None:
            self.gone = GoneError("lost", blameless=True)
            self.said.put(None)

    class Machines(Threads):
        def start(self) -> Thread:
            self.started += 1
            assert self.started < 500, "it goes on for ever"
            return Machine(self.job)

    with pytest.raises(VictimError, match=r"(?s)lost one after the other \(lost\).*repeat the command"):
        run(Machines(Doubling()), 20, 2)


def test_workers_that_never_start_stop_the_run() -> None:
    class Broken(Doubling):
        def open(self) -> Doubling:
            raise SystemExit

    transport = Threads(Broken())
    with pytest.raises(VictimError, match="3 worker processes died while they started"):
        run(transport, 20, 2)


def test_one_that_dies_at_the_start_is_replaced() -> None:
    left = threading.Semaphore(2)

    class Shaky(Doubling):
        def open(self) -> Doubling:
            if left.acquire(blocking=False):
                raise SystemExit
            return Doubling()

    assert len(run(Threads(Shaky()), 20, 2)) == 20


def test_a_check_can_stop_it_and_ends_the_workers() -> None:
    class StopError(Exception):
        pass

    def check() -> None:
        raise StopError

    transport = Threads(Doubling())
    pool = Pool(transport, transport.job, map(Item, range(50)), size=2, remaining=50, check=check)
    with pytest.raises(StopError):
        list(pool.run())
    assert len(transport.closed) == 2
