"""A process that another one started ends when that one does, however it ends and whatever is at work."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with_parent(*, from_main_thread: bool) -> None:
    """To be called first of all in a process of `multiprocessing`.

    A thread waits for the parent and ends the process. Code in C that lets no other thread of Python run
    would keep it from that: on Linux the kernel ends us as well. It does so when the thread that started us
    ends, so only where that was the parent's main thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    threading.Thread(target=_leave_after, args=(parent,), daemon=True).start()
    if from_main_thread and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent.pid:  # it died before the kernel was told
            os._exit(1)


def _leave_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
