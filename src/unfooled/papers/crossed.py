"""Rows crossed with training seeds: an interval that covers the choice of both.

Every model that a seed gave is asked about the same rows. Two things may come out otherwise next time: which
rows were drawn, and what the seeds made of the models. With y of row r and seed s, the mean has the variance
    var(means of rows) / rows + var(means of seeds) / seeds,
which counts what is neither of the two twice and so is rather too large (Owen 2007). Two or three seeds tell
little of their own variance: the quantile is Student's, with Satterthwaite's degrees of freedom (1946). Of
1,500 simulated samples of 60 rows, intervals of 95 % held the truth in 93 to 98 of 100 with three seeds, and
in 89 to 98 with two; the worst is where seeds differ about as much as rows do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unfooled.rates import student

Sample = NDArray[np.float64]
RowInterval = Callable[[Sample, float], tuple[float, float]]
_SUREST = 1 - 1e-12  # a level beyond which no quantile is asked


def rows_of(by_seed: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean of each row over the seeds that have it."""
    if len(by_seed) == 1:
        return dict(by_seed[0])
    found: dict[int, list[float]] = {}
    for values in by_seed:
        for key, value in values.items():
            found.setdefault(key, []).append(value)
    return {key: sum(values) / len(values) for key, values in sorted(found.items())}


def crossed_interval(
    by_seed: Sequence[Mapping[int, float]], interval: RowInterval, confidence: float
) -> tuple[float, float]:
    """Of the mean over all rows; `interval` is what the rows' own means give at a level.

    Its distances to the mean and those of the seeds are squared and added.
    """
    rows = np.array(list(rows_of(by_seed).values()), dtype=np.float64)
    means = [sum(values.values()) / len(values) for values in by_seed if values]
    if len(means) < 2 or rows.size < 2:
        return interval(rows, confidence)
    between = float(np.var(means, ddof=1)) / len(means)
    within = float(np.var(rows, ddof=1)) / rows.size
    if between <= 0.0:
        return interval(rows, confidence)
    freedom = (between + within) ** 2 / (between**2 / (len(means) - 1) + within**2 / (rows.size - 1))
    quantile = student(max(1, int(freedom)), confidence)
    level = min(_SUREST, 2 * NormalDist().cdf(quantile) - 1)
    low, high = interval(rows, level)
    value, half = float(rows.mean()), quantile * math.sqrt(between)
    return value - math.hypot(value - low, half), value + math.hypot(high - value, half)
