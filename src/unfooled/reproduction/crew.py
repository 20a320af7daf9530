"""Further processes that work on the same plan.

Each takes the next stage that nobody is at (see `Laboratory.carry_out`); a stage's outcome does not depend
on who does it. A helper that fails leaves its stage undone: the first process gets to it and says why.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from unfooled.errors import MissingExtraError, UserError
from unfooled.evaluation.workers import no_interrupts, threads
from unfooled.reproduction.laboratory import Laboratory
from unfooled.reproduction.stages import Stage

_PATIENCE = 60.0  # seconds in which a helper writes down how far it got


@contextmanager
def helpers(number: int, stages: Sequence[Stage], work: Path, data: Path | None) -> Iterator[None]:
    """`number` processes at `stages` for as long as the block lasts; all share the threads of this one."""
    if number < 1:
        yield
        return
    try:
        import torch
    except ImportError:
        raise MissingExtraError("work on several stages at once", "torch") from None
    before = torch.get_num_threads()
    share = max(1, before // (number + 1))
    context = multiprocessing.get_context("spawn")
    crew = [
        context.Process(target=_help, args=(tuple(stages), work, data), daemon=True) for _ in range(number)
    ]
    torch.set_num_threads(share)
    try:
        with threads(share), no_interrupts():
            for one in crew:
                one.start()
        yield
    finally:
        torch.set_num_threads(before)
        for one in crew:
            if one.is_alive():
                one.terminate()
        for one in crew:
            if one.pid is not None:
                one.join(_PATIENCE)
                one.kill()


def _help(stages: tuple[Stage, ...], work: Path, data: Path | None) -> None:
    # Ctrl-C reaches all processes of a terminal; here the first one decides, and stops us by SIGTERM, which
    # is then taken as Ctrl-C is elsewhere: what is at work writes down how far it got.
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        Laboratory(work, data).carry_out(stages)
    except (UserError, KeyboardInterrupt):
        return


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
