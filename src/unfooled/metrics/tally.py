"""Numbers by how often each occurs: those of millions of rows mostly repeat, and take no memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PORTION = 1 << 14  # numbers that wait to be counted


class Tally:
    """Numbers in any order. Only how many different ones there are costs memory.

    Example:

        >>> tally = Tally([3, 1, 3, 3])
        >>> len(tally), tally.quantile(0.5)
        (4, 3.0)
    """

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._values: NDArray[np.float64] = np.empty(0)  # rising
        self._times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._waiting = array("d")
        for number in numbers:
            self.add(number)

    def add(self, number: float) -> None:
        self._waiting.append(number)
        # Where none repeats, sorting them in ever larger portions takes no more time per number.
        if len(self._waiting) >= max(_PORTION, len(self._values)):
            self._count()

    def __len__(self) -> int:
        return int(self._times.sum()) + len(self._waiting)

    @property
    def counted(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The different numbers, rising, and how often each occurs."""
        self._count()
        return self._values, self._times

    def quantile(self, share: float) -> float:
        """Between the two numbers around that place, as `numpy.quantile` does; nan of none."""
        values, times = self.counted
        if not values.size:
            return math.nan
        ends = times.cumsum()
        place = (int(ends[-1]) - 1) * share
        below = math.floor(place)
        low, high = (
            float(values[np.searchsorted(ends, at, side="right")])
            for at in (below, min(below + 1, int(ends[-1]) - 1))
        )
        part = place - below
        return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part

    def _count(self) -> None:
        if not self._waiting:
            return
        fresh, often = np.unique(np.frombuffer(self._waiting), return_counts=True)
        self._waiting = array("d")
        self._values, places = np.unique(np.concatenate([self._values, fresh]), return_inverse=True)
        times: Any = np.zeros(len(self._values), dtype=np.int64)
        np.add.at(times, places, np.concatenate([self._times, often]))
        self._times = times
