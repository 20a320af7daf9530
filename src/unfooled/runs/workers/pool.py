"""Who gets which work, and what a dead worker costs: the same on one machine and on many.

A worker asks for items when its window has room and sends results as they come. Each item carries its own
random numbers, so neither the number of workers nor the hand-out changes a result. Items held by a worker
that died are tried again in halves, each by a worker of its own; the one on which three died that held
nothing else is an error. What a machine took along when it went is handed out again: no item did that. But
where machine after machine goes and no result comes any more, the run stops.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from unfooled.core.session import Life
from unfooled.errors import UserError, VictimError
from unfooled.runs.workers.job import LOOK, Job

_END: Any = object()
TRIES = 3  # deaths of a worker that held one item, or of workers that start, before these are to blame
LOSSES = 20  # workers per place of the pool that go without a result in between, before the run stops


class GoneError(Exception):
    """A worker ended. `cause` is how; `blameless`: its machine went, whatever it was at."""

    def __init__(self, cause: str = "", *, blameless: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.blameless = blameless


class Channel(Protocol):
    """The pool's end of the connection to one worker."""

    def send(self, items: list[Any], /) -> None:
        """Never fails: a worker that died meanwhile shows it when it is listened to."""
        ...

    def messages(self) -> list[tuple[str, Any]]:
        """What has come; `GoneError` where nothing is left and the worker ended."""
        ...


C = TypeVar("C", bound=Channel)


class Transport(Protocol[C]):
    """How workers are started and heard."""

    def start(self) -> C: ...
    def ready(self, channels: Sequence[C], timeout: float | None, /) -> Sequence[C]:
        """Those that have something to say, after waiting for one."""
        ...

    def close(self, channels: Sequence[C], /) -> None:
        """End these workers, whatever they are at."""
        ...


@dataclass(slots=True, eq=False)
class Worker(Generic[C]):
    channel: C
    held: dict[int, Any] = field(default_factory=dict)
    wants: int = 0
    heard: bool = False  # it has asked for work
    closed: bool = False  # will get nothing more
    life: Life = field(default_factory=Life)


class Pool(Generic[C]):
    """Hands `source`, in which `remaining` items are left, to `size` workers."""

    def __init__(
        self,
        transport: Transport[C],
        job: Job,
        source: Iterator[Any],
        *,
        size: int,
        remaining: int,
        on_counters: Callable[[dict[str, Any]], None] = lambda counters: None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._transport = transport
        self._job = job
        self._source = source
        self._size = max(1, min(size, remaining))
        self._remaining = remaining
        self._on_counters = on_counters
        self._check = check
        self._returned: deque[Any] = deque()  # of workers whose machine went
        self._suspects: deque[list[Any]] = deque()
        self._deaths: Counter[int] = Counter()  # of workers that held this item alone
        self._failed_starts = 0  # one after the other
        self._lost = 0  # workers whose machine went since the last result
        self._exhausted = False  # the source
        self._workers: list[Worker[C]] = []
        self._gone = Life()  # what workers that ended had answered

    def life(self) -> Life:
        """How far all workers together are, as of their last reports."""
        return Life.together([self._gone, *(worker.life for worker in list(self._workers))])

    def run(self) -> Iterator[Any]:
        try:
            for _ in range(self._size):
                self._start()
            while self._workers or self._suspects:
                self._try_suspects()
                for worker in self._ready():
                    yield from self._listen(worker)
                for worker in self._workers:
                    if worker.wants and not worker.closed:
                        self._feed(worker)
                self._dismiss_late()
                if self._check is not None:
                    self._check()
        finally:
            self._transport.close([worker.channel for worker in self._workers])

    def _start(self) -> Worker[C]:
        worker = Worker(self._transport.start())
        self._workers.append(worker)
        return worker

    def _try_suspects(self) -> None:
        while self._suspects and len(self._workers) < self._size:
            worker = self._start()
            self._give(worker, self._suspects.popleft())
            self._give(worker, [])

    def _ready(self) -> list[Worker[C]]:
        owners = {id(worker.channel): worker for worker in self._workers}
        waited = None if self._check is None else LOOK
        channels = [worker.channel for worker in self._workers]
        return [owners[id(channel)] for channel in self._transport.ready(channels, waited)]

    def _listen(self, worker: Worker[C]) -> Iterator[Any]:
        try:
            messages = worker.channel.messages()
        except GoneError as gone:
            self._workers.remove(worker)
            done = worker.life
            self._gone = Life.together([self._gone, Life(answered=done.answered, others=done.others)])
            yield from self._recover(worker, gone)
            return
        for kind, content in messages:
            if kind == "result":
                worker.held.pop(content.key)
                self._lost = 0
                yield content
            elif kind == "want":
                worker.wants, worker.heard = content, True
                self._failed_starts = 0
            elif kind == "life":
                worker.life = content
            elif kind == "counters":
                self._on_counters(content)
            elif kind == "failed":
                raise content

    def _recover(self, worker: Worker[C], gone: GoneError) -> Iterator[Any]:
        held = list(worker.held.values())
        if gone.blameless:
            self._lost += 1
            if self._lost >= LOSSES * self._size:
                raise VictimError(
                    f"{self._lost} workers were lost one after the other ({gone.cause})",
                    "see to the machines of the cluster, and repeat the command to go on",
                )
            self._returned.extend(held)
            self._remaining += len(held)
        elif len(held) == 1:
            (item,) = held
            self._deaths[item.key] += 1
            if self._deaths[item.key] < TRIES:
                self._suspects.append(held)
            else:
                yield self._job.killed(item, gone.cause)
        elif held:
            middle = len(held) // 2
            self._suspects.extend((held[:middle], held[middle:]))
        elif not worker.closed:
            self._count_failed_start(gone)
        if not worker.closed or (gone.blameless and held):
            self._start()

    def _count_failed_start(self, gone: GoneError) -> None:
        self._failed_starts += 1
        if self._failed_starts >= TRIES:
            raise _cannot_start(gone.cause)

    def _feed(self, worker: Worker[C]) -> None:
        """Fill the worker up to its fair share of what is unfinished, so that none is left with it all."""
        unfinished = self._remaining + sum(len(worker.held) for worker in self._workers)
        room = min(worker.wants, -(-unfinished // self._size) - len(worker.held))
        if room <= 0 and self._remaining > 0:
            return  # it goes on with what it holds, and is answered when the others have caught up
        given = self._next(max(1, room))
        if given or self._exhausted:
            self._remaining = self._remaining - len(given) if given else 0
            self._give(worker, given)

    def _next(self, number: int) -> list[Any]:
        given: list[Any] = []
        while len(given) < number:
            item = self._returned.popleft() if self._returned else next(self._source, _END)
            if item is _END:
                self._exhausted = True
            if item is _END or item is None:
                break
            given.append(item)
        return given

    def _give(self, worker: Worker[C], items: list[Any]) -> None:
        """Hand out items; none at all means that no more will come."""
        worker.held.update((item.key, item) for item in items)
        worker.wants = 0
        worker.closed = not items
        worker.channel.send(items)

    def _dismiss_late(self) -> None:
        """Workers for which there is no room on the machines need not come once all work is handed out."""
        if self._remaining > 0 or self._suspects:
            return
        late = [worker for worker in self._workers if not worker.heard and not worker.held]
        if late and any(worker.heard for worker in self._workers):
            self._transport.close([worker.channel for worker in late])
            self._workers = [worker for worker in self._workers if worker not in late]


def _cannot_start(cause: str) -> UserError:
    return VictimError(
        f"{TRIES} worker processes died while they started ({cause})",
        "try --workers 1 to see why; a Python script that uses workers needs its calls below "
        'if __name__ == "__main__":',
    )
