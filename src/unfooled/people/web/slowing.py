"""Guessing slows down: per client, and in all when guesses come from many places at once.

Nobody is shut out for ever. A client's wait has a longest length and is forgotten; when there are too many
failures in all, tries stand in one line in which every client has one place, and the line moves.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from math import ceil

FREE = 5  # failures of a client that cost nothing
LONGEST = 60.0  # seconds that a client waits
FORGOTTEN = 900.0  # seconds after which a client's failures are
MOST_CLIENTS = 4096  # remembered; the one that failed longest ago gives way
FREE_IN_ALL = 60  # failures of everybody within a minute
PACE = 0.5  # seconds between two tries when there were more
MOST_WAITING = 64


@dataclass
class _Failures:
    failures: int = 0
    last: float = 0.0
    wait: float = 0.0


class SlowDown:
    """For one loop: ask for a `turn`, look at what was given, then `tell` what came of it, all in one go."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, _Failures] = OrderedDict()
        self._lately: deque[float] = deque(maxlen=FREE_IN_ALL + 1)
        self._waiting: set[str] = set()
        self._next = 0.0

    async def turn(self, client: str) -> int:
        """0 when the client may try now, else the seconds to wait. May itself take a while."""
        name, now = _network(client), time.monotonic()
        record = self._records.get(name)
        if record is not None and record.last + record.wait > now:
            return ceil(record.last + record.wait - now)
        if len(self._lately) <= FREE_IN_ALL or now - self._lately[0] > 60:
            return 0
        if name in self._waiting or len(self._waiting) >= MOST_WAITING:
            return ceil(PACE * MOST_WAITING)
        self._next = max(now, self._next + PACE)
        self._waiting.add(name)
        try:
            await asyncio.sleep(self._next - now)
        finally:
            self._waiting.discard(name)
        return 0

    def tell(self, client: str, *, right: bool) -> None:
        name, now = _network(client), time.monotonic()
        record = self._records.pop(name, None)
        if right:
            return
        if record is None or now - record.last > FORGOTTEN:
            record = _Failures()
        record.failures += 1
        record.last = now
        over = record.failures - FREE
        record.wait = min(LONGEST, 2.0 ** min(over - 1, 10)) if over > 0 else 0.0
        self._records[name] = record
        if len(self._records) > MOST_CLIENTS:
            self._records.popitem(last=False)
        self._lately.append(now)


def _network(client: str) -> str:
    """Who counts as one: an address, or the network of an IPv6 address, whose owner has them all."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:64]
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
