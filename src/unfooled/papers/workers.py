"""Further processes that work on the same plan.

Each takes the next stage that nobody is at (see `StageRunner.carry_out`); a stage's outcome does not depend
on who does it. A helper that fails says so and leaves its stage undone: the first process gets to it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NoReturn

from unfooled.papers.runner import StageObserver, StageRunner
from unfooled.papers.stages import Stage
from unfooled.runs.workers.processes import no_current_folder, no_interrupts, threads

_PATIENCE = 20.0  # seconds in which a helper writes down how far it got
_LAST_WORDS = 5.0  # the same, when the process that started it is gone


@contextmanager
def helpers(
    number: int, stages: Sequence[Stage], work: Path, data: Path | None, watcher: StageObserver
) -> Iterator[None]:
    """`number` processes at `stages` for as long as the block lasts; all share the cores of this one."""
    if number < 1:
        yield
        return
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = []
    with _shared(number + 1) as share:
        try:
            for _ in range(number):
                process = context.Process(target=_help, args=(tuple(stages), work, data), daemon=True)
                with threads(share), no_interrupts(), no_current_folder():
                    process.start()
                processes.append(process)
            yield
        except BaseException:
            watcher.notes("stopping the other processes")
            raise
        finally:
            _dismiss(processes, watcher)


def _dismiss(processes: Sequence[BaseProcess], watcher: StageObserver) -> None:
    killed = [
        -process.exitcode for process in processes if process.exitcode is not None and process.exitcode < 0
    ]
    if killed:
        watcher.notes(
            f"{len(killed)} of {len(processes)} helpers were killed (signal {killed[0]}): out of memory?"
        )
    until = time.monotonic() + _PATIENCE
    try:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
    finally:  # after a second Ctrl-C at once
        for process in processes:
            process.kill()


@contextmanager
def _shared(processes: int) -> Iterator[int]:
    """How many threads each of `processes` has; this one computes with so many in here."""
    share = 1
    with ExitStack() as stack:
        if find_spec("torch") is not None:
            import torch

            before = torch.get_num_threads()
            share = max(1, before // processes)
            torch.set_num_threads(share)
            stack.callback(torch.set_num_threads, before)
        if find_spec("threadpoolctl") is not None:  # the same for numpy and scikit-learn
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(share))
        yield share


def _help(stages: tuple[Stage, ...], work: Path, data: Path | None) -> None:
    # Ctrl-C reaches all processes of a terminal; here the first one decides, and stops us by SIGTERM, which
    # is then taken as Ctrl-C is elsewhere: what is at work writes down how far it got. (On Windows it is
    # simply ended, and goes on from its last checkpoint.)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signal.signal(signal.SIGTERM, _stop)
        threading.Thread(target=_leave_with_parent, daemon=True).start()
        StageRunner(work, data).carry_out(stages)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        sys.stderr.write(f"a helper stopped, the rest is done without it: {type(error).__name__}: {error}\n")
        sys.exit(1)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing is left to write down


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LAST_WORDS)
        os._exit(1)  # in the middle of something that cannot be interrupted
