"""Workers that are processes of this machine, each at the other end of a pipe."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from unfooled.runs.parent import end_with_parent
from unfooled.runs.workers.job import Job, ParentGoneError, work
from unfooled.runs.workers.pool import GoneError

# Several processes with as many threads each as there are cores only get in each other's way.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class ProcessChannel:
    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe

    def send(self, items: list[Any], /) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(items)

    def messages(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        try:
            while self.pipe.poll():
                found.append(self.pipe.recv())
        except (EOFError, ConnectionResetError):
            if not found:  # else it is heard once more
                self.pipe.close()
                self.process.join()
                raise GoneError(_cause(self.process.exitcode)) from None
        return found


class Processes:
    """Starts a process per worker; each gets the job through its pipe."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def start(self) -> ProcessChannel:
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
        return ProcessChannel(process, ours)

    def ready(self, channels: Sequence[ProcessChannel], timeout: float | None, /) -> list[ProcessChannel]:
        owners = {channel.pipe: channel for channel in channels}
        return [owners[pipe] for pipe in wait(list(owners), timeout)]  # type: ignore[index]

    def close(self, channels: Sequence[ProcessChannel], /) -> None:
        for channel in channels:
            channel.pipe.close()
            channel.process.terminate()
        for channel in channels:
            channel.process.join()


class _PipeLine:
    """A worker's end of the pipe; it is used by two threads."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()

    def send(self, kind: str, content: Any, /) -> None:
        with self._sending, _parent_there():
            self._pipe.send((kind, content))

    def waits(self) -> bool:
        with _parent_there():
            return self._pipe.poll()

    def receive(self) -> Any:
        with _parent_there():
            return self._pipe.recv()

    def close(self) -> None:
        with self._sending:
            self._pipe.close()


@contextmanager
def _parent_there() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise ParentGoneError from error


def _serve(pipe: Connection, from_main_thread: bool) -> None:
    end_with_parent(from_main_thread=from_main_thread)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    line = _PipeLine(pipe)
    with suppress(ParentGoneError):
        try:
            work(line.receive, line)
        finally:
            line.close()


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
