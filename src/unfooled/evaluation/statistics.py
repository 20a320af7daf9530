"""Intervals for rates and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_CELLS = 1_000_000  # numbers drawn at a time


def wilson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Score interval of a rate (Wilson 1927). Nothing observed leaves everything possible: (0, 1)."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push the ends past what was seen.
    low = 0.0 if successes == 0 else max(0.0, min(rate, centre - half))
    high = 1.0 if successes == n else min(1.0, max(rate, centre + half))
    return low, high


def bootstrap_mean(
    values: Sequence[float] | NDArray[np.float64],
    seed: int = 0,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Percentile interval of a mean. Of no values it is (nan, nan), of one value the value itself."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(sample, return_counts=True)
    if distinct.size == 1:
        return float(distinct[0]), float(distinct[0])
    # How often each distinct value is drawn says the same as the draws and is cheap for counts and shares.
    few = 4 * distinct.size < sample.size
    means = np.empty(resamples)
    step = max(1, _CELLS // (distinct.size if few else sample.size))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if few:
            drawn = rng.multinomial(sample.size, counts / sample.size, size=size)
            means[start : start + size] = drawn @ distinct / sample.size
        else:
            means[start : start + size] = sample[rng.integers(sample.size, size=(size, sample.size))].mean(
                axis=1
            )
    tail = 50 * (1 - confidence)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
