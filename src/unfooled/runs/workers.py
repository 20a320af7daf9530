"""Several processes, one session each, fed and emptied by the process that owns the run file.

A worker asks for examples when its window has room and sends results as they come. Each example carries its
own random numbers, so neither the number of workers nor the hand-out changes a result. Examples held by a
worker that died are tried again in halves, each in a process of its own; the one that dies alone is an error.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from unfooled.core.result import Example, Result
from unfooled.core.session import Life, Session, SessionParts
from unfooled.core.victim import Victim
from unfooled.errors import UserError, VictimError
from unfooled.runs.parent import end_with_parent
from unfooled.trust import granted, trusting
from unfooled.victims.loading import load_victim

# Several processes with as many threads each as there are cores only get in each other's way.
LOOK = 1.0  # seconds between two reports of how far a worker is
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    held: dict[int, Example] = field(default_factory=dict)
    wants: int = 0
    closed: bool = False  # will get nothing more
    life: Life = field(default_factory=Life)


def attack_in_workers(
    parts: SessionParts,
    examples: Iterable[Example],
    *,
    workers: int,
    remaining: int,
    on_counters: Callable[[dict[str, Any]], None] = lambda counters: None,
    on_start: Callable[[Callable[[], Life]], None] = lambda life: None,
) -> Iterator[Result]:
    """Like `Session.attack`, in `workers` processes. `remaining` is how many examples there will be."""
    job = (granted(), portable(parts.victim), parts.recipe, parts.settings, parts.known_good)
    pool = _Pool(job, iter(examples), workers, remaining, on_counters)
    on_start(pool.life)
    return pool.run()


class _Pool:
    def __init__(
        self,
        job: tuple[Any, ...],
        source: Iterator[Example],
        size: int,
        remaining: int,
        on_counters: Callable[[dict[str, Any]], None],
    ) -> None:
        self._job = job
        self._source = source
        self._size = size
        self._remaining = remaining
        self._on_counters = on_counters
        self._suspects: deque[list[Example]] = deque()
        self._workers: list[_Worker] = []
        self._gone = Life()  # what workers that ended had answered

    def life(self) -> Life:
        """How far all workers together are, as of their last reports."""
        return Life.together([self._gone, *(worker.life for worker in list(self._workers))])

    def run(self) -> Iterator[Result]:
        try:
            self._workers = [self._spawn() for _ in range(self._size)]
            while self._workers or self._suspects:
                while self._suspects and len(self._workers) < self._size:
                    worker = self._spawn()
                    self._workers.append(worker)
                    self._give(worker, self._suspects.popleft())
                    self._give(worker, [])
                handles: list[Any] = [worker.pipe for worker in self._workers]
                ready = set(wait(handles))
                for worker in list(self._workers):
                    if worker.pipe in ready:
                        yield from self._listen(worker)
                for worker in self._workers:
                    if worker.wants and not worker.closed:
                        self._feed(worker)
        finally:
            for worker in self._workers:
                worker.pipe.close()
                worker.process.terminate()
            for worker in self._workers:
                worker.process.join()

    def _spawn(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        from_main = threading.current_thread() is threading.main_thread()
        process = context.Process(target=_serve, args=(theirs, from_main), daemon=True)
        with threads(1), no_interrupts(), no_current_folder():
            process.start()
        theirs.close()
        # Sent, not given as an argument: a model may take long to unpickle, and by then the worker must
        # know how to end with us. One that dies before it listens is noticed like any other.
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.send(self._job)
        return _Worker(process, ours)

    def _listen(self, worker: _Worker) -> Iterator[Result]:
        try:
            while worker.pipe.poll():
                kind, content = worker.pipe.recv()
                if kind == "result":
                    worker.held.pop(content.key)
                    yield content
                elif kind == "want":
                    worker.wants = content
                elif kind == "life":
                    worker.life = content
                elif kind == "counters":
                    self._on_counters(content)
                elif kind == "failed":
                    raise content
        except (EOFError, ConnectionResetError):
            worker.pipe.close()
            worker.process.join()
            self._workers.remove(worker)
            done = worker.life
            self._gone = Life.together([self._gone, Life(answered=done.answered, others=done.others)])
            yield from self._recover(worker)

    def _recover(self, gone: _Worker) -> Iterator[Result]:
        """Examples of a worker that died become suspects; one that died alone is the culprit."""
        held, code = list(gone.held.values()), gone.process.exitcode
        if not held and not gone.closed:
            raise VictimError(
                f"a worker process died while it started ({_cause(code)})",
                "try --workers 1 to see why; a Python script that uses workers needs its calls below "
                'if __name__ == "__main__":',
            )
        if len(held) == 1:
            yield _killed(held[0], code)
        elif held:
            middle = len(held) // 2
            self._suspects.extend((held[:middle], held[middle:]))
        if held and not gone.closed:
            self._workers.append(self._spawn())

    def _feed(self, worker: _Worker) -> None:
        """Fill the worker up to its fair share of what is unfinished, so that none is left with it all."""
        unfinished = self._remaining + sum(len(worker.held) for worker in self._workers)
        room = min(worker.wants, -(-unfinished // self._size) - len(worker.held))
        if room <= 0 and self._remaining > 0:
            return  # it goes on with what it holds, and is answered when the others have caught up
        given = list(islice(self._source, max(1, room)))
        self._remaining = self._remaining - len(given) if given else 0
        self._give(worker, given)

    def _give(self, worker: _Worker, examples: list[Example]) -> None:
        """Hand out examples; none at all means that no more will come."""
        worker.held.update((example.key, example) for example in examples)
        worker.wants = 0
        worker.closed = not examples
        # A worker that died just now cannot be told; its end of the pipe reports the death.
        with suppress(BrokenPipeError, ConnectionResetError):
            worker.pipe.send(examples)


def _serve(pipe: Connection, from_main_thread: bool) -> None:
    """A worker's life: load the victim once, attack what comes, leave when nothing more comes."""
    end_with_parent(from_main_thread=from_main_thread)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    ended, sending = threading.Event(), threading.Lock()

    def send(kind: str, content: Any) -> None:
        with sending:
            pipe.send((kind, content))

    def report(session: Session) -> None:
        """From a thread of its own, because one batch of a large model can take minutes."""
        with suppress(OSError):  # the parent is gone
            while not ended.wait(LOOK):
                send("life", session.life())

    try:
        trust, source, recipe, settings, known_good = pipe.recv()
        # A worker trusts what its parent trusts.
        with trusting(pickle=trust.pickle, remote_code=trust.remote_code, types=trust.types):
            victim = source() if isinstance(source, Reload) else source
            session = Session(victim, recipe, settings, known_good=known_good)
        threading.Thread(target=report, args=(session,), daemon=True).start()

        def incoming() -> Iterator[Example | None]:
            while True:
                send("want", settings.window)
                while session.engine.live and not pipe.poll():
                    yield None  # nothing yet; there is work to go on with
                given = pipe.recv()
                if not given:
                    return
                yield from given

        for result in session.attack(incoming()):
            send("result", result)
        send("counters", session.counters())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone
    except UserError as error:
        send("failed", error)
    except Exception as error:
        failure = VictimError(
            f"a worker failed: {type(error).__name__}: {error}", "try --workers 1 to see more"
        )
        send("failed", failure)
    finally:
        ended.set()
        with sending:
            pipe.close()


@dataclass(frozen=True)
class Reload:
    """A victim that each worker loads for itself, as the user named it."""

    spec: str
    options: dict[str, Any]

    def __call__(self) -> Victim:
        return load_victim(self.spec, **self.options)


def portable(victim: Victim) -> Victim | Reload:
    """How a worker gets its own copy of the victim."""
    spec = getattr(victim, "spec", None)
    if spec:
        return Reload(spec, dict(getattr(victim, "options", {})))
    try:
        pickle.dumps(victim)  # starting a process would fail with a message about processes
        return victim
    except Exception as error:
        raise VictimError(
            f"{victim.name} cannot be sent to worker processes: {error}",
            "use workers=1, or load the victim by path or `module:function` so that each worker can load it",
        ) from error


def _killed(example: Example, code: int | None) -> Result:
    text = example.text()
    return Result(
        key=example.key,
        outcome="error",
        label=example.label,
        fields=text.fields,
        field=text.field,
        perturbed=text.string,
        words=len(text.words),
        note=f"the worker process died on this example ({_cause(code)})",
        uncleaned=example.uncleaned,
    )


def _cause(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@contextmanager
def no_interrupts() -> Iterator[None]:
    """A process started in here ignores Ctrl-C from its first instruction on."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def threads(number: int) -> AbstractContextManager[None]:
    """A process started in here computes with so many threads."""
    return _environment(dict.fromkeys(_THREADS, str(number)))


def no_current_folder() -> AbstractContextManager[None]:
    """A Python started in here imports nothing from the folder that the user stands in.

    It would look there even for its own library, before it is told where the parent looks.
    """
    return _environment({"PYTHONSAFEPATH": "1"})


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
