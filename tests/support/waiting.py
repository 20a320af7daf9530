"""Waits for what must happen, and no longer than a busy machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0  # seconds


def eventually(happened: Callable[[], object], what: str = "") -> None:
    """Until `happened()` is true; an AssertionError when it is not after `PATIENCE`."""
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, what or "it did not happen"
        time.sleep(0.01)
