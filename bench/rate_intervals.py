"""Other intervals of a rate, beside Wilson's: what each would cover, counted exactly.

    python bench/rate_intervals.py

For 49 true rates from 2 to 98 % and several numbers of rows: the mean, the lowest and the highest coverage,
how many of the rates are covered in 93 to 97 of 100 cases, and the mean width. A rate of few rows comes in
steps: `possible` is the share of rates at which any interval at all could be within 93 to 97 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from coverage import RATES, Interval
from unfooled.metrics.decision_intervals import beta_below, exact_interval
from unfooled.rates import wilson

SIZES = (20, 50, 100, 200)
HALVINGS = 40
Z = NormalDist().inv_cdf(0.975)


def chances(n: int, rate: float) -> NDArray[np.float64]:
    """Of every number of hits."""
    hits = np.arange(n + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in hits])
    found: NDArray[np.float64] = np.exp(ways + hits * math.log(rate) + (n - hits) * math.log(1 - rate))
    return found


def wilson_moved(rows: float) -> Interval:
    """Wilson's of a little fewer hits for the lower end, and of a little more for the upper one."""

    def interval(hits: int, n: int) -> tuple[float, float]:
        low = wilson(max(0.0, hits - rows), n)[0] if hits else 0.0
        return low, wilson(min(float(n), hits + rows), n)[1] if hits < n else 1.0

    return interval


def agresti_coull(hits: int, n: int) -> tuple[float, float]:
    size = n + Z * Z
    middle = (hits + Z * Z / 2) / size
    half = Z * math.sqrt(middle * (1 - middle) / size)
    return max(0.0, middle - half), min(1.0, middle + half)


def jeffreys(hits: int, n: int) -> tuple[float, float]:
    return _both(hits, n, lambda rate, k: beta_below(rate, k + 0.5, n - k + 0.5) <= 0.025)


def mid_p(hits: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's, with half the chance of what was seen."""

    def beyond(rate: float, k: int) -> bool:
        seen = chances(n, rate)
        return float(seen[k + 1 :].sum() + seen[k] / 2) <= 0.025

    return _both(hits, n, beyond)


def blaker(hits: int, n: int) -> tuple[float, float]:
    """Exact, and shorter: the likelier tail, with as much of the other one as is no likelier."""

    def beyond(rate: float, k: int) -> bool:
        seen = chances(n, rate)
        below, above = np.cumsum(seen), np.cumsum(seen[::-1])[::-1]
        tail = min(below[k], above[k])
        other = above if below[k] <= above[k] else below
        return float(tail + max(other[other <= tail + 1e-12], default=0.0)) < 0.05

    return _both(hits, n, beyond)


def _both(hits: int, n: int, beyond: Callable[[float, int], bool]) -> tuple[float, float]:
    """The lower end of the hits, and of the misses turned round: the highest rate that is left out."""

    def low(k: int) -> float:
        if not k:
            return 0.0
        left_out, kept = 1e-9, k / n - 1e-9
        for _ in range(HALVINGS):
            middle = (left_out + kept) / 2
            left_out, kept = (middle, kept) if beyond(middle, k) else (left_out, middle)
        return left_out

    return low(hits), 1.0 - low(n - hits)


INTERVALS: dict[str, Interval] = {
    "Wilson": wilson,
    "Wilson, a tenth of a row further": wilson_moved(0.1),
    "Wilson, half a row further": wilson_moved(0.5),
    "Agresti–Coull": agresti_coull,
    "Jeffreys": jeffreys,
    "mid-P": mid_p,
    "Blaker": blaker,
    "Clopper–Pearson": exact_interval,
}


def possible(n: int) -> float:
    """Share of the rates for which some neighbouring numbers of hits together have 93 to 97 %."""
    found = 0
    for rate in RATES:
        below = np.concatenate([[0.0], np.cumsum(chances(n, rate))])
        together = below[None, :] - below[:, None]
        found += bool(((together >= 0.93) & (together <= 0.97)).any())
    return found / len(RATES)


def main() -> None:
    print(
        "| interval | n | mean | lowest | highest | in 93–97 % | width |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for n in SIZES:
        every = np.array([chances(n, rate) for rate in RATES])
        for name, interval in INTERVALS.items():
            low, high = np.array([interval(hits, n) for hits in range(n + 1)]).T
            rates = np.array(RATES)[:, None]
            covered = (every * ((low <= rates) & (rates <= high))).sum(axis=1)
            inside = ((covered >= 0.93) & (covered <= 0.97)).mean()
            width = (every * (high - low)).sum(axis=1).mean()
            ends = f"{covered.min():.1%} | {covered.max():.1%}"
            print(
                f"| {name} | {n} | {covered.mean():.1%} | {ends} | {inside:.0%} | {width:.3f} |", flush=True
            )
        print(f"| possible | {n} | | | | {possible(n):.0%} | |", flush=True)


if __name__ == "__main__":
    main()
