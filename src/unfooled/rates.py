"""How right a classifier is, and how sure that is.

Accuracy and macro F1 from true and predicted classes; intervals for rates, means, F1 and paired differences;
the test for paired decisions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_CELLS = 1_000_000  # numbers drawn at a time


def confusion(true: Any, predicted: Any, classes: int) -> Counts:
    """How often each true class (row) was called each class (column)."""
    cells = np.asarray(true, dtype=np.int64) * classes + np.asarray(predicted, dtype=np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes).astype(np.int64)


def accuracy(table: Any) -> Any:
    """Of one confusion table, or of many stacked in front."""
    counts = np.asarray(table)
    total = counts.sum(axis=(-2, -1))
    return np.trace(counts, axis1=-2, axis2=-1) / np.maximum(total, 1)


def macro_f1(table: Any) -> Any:
    """Mean of the classes' F1. A class that is neither there nor ever predicted is left out."""
    counts = np.asarray(table)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    sizes = counts.sum(axis=-1) + counts.sum(axis=-2)
    scores = 2 * hits / np.maximum(sizes, 1)
    return scores.sum(axis=-1) / np.maximum((sizes > 0).sum(axis=-1), 1)


def scores(true: Any, predicted: Any, classes: int) -> dict[str, float]:
    table = confusion(true, predicted, classes)
    return {"accuracy": float(accuracy(table)), "macro_f1": float(macro_f1(table))}


def wilson(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Score interval of a rate (Wilson 1927). Nothing observed leaves everything possible: (0, 1).

    Successes that are only probable count by their probability.
    """
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


def f1_interval(
    table: NDArray[np.int64], seed: int = 0, resamples: int = 2000, confidence: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap of macro F1: drawing examples again is drawing cells of the confusion table."""
    total = int(table.sum())
    if not total:
        return 0.0, 1.0
    drawn = np.random.default_rng(seed).multinomial(total, table.ravel() / total, size=resamples)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(macro_f1(drawn.reshape(-1, *table.shape)), [tail, 100 - tail])
    return float(low), float(high)


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p-value that two classifiers are right equally often (McNemar 1947).

    The arguments count the examples that only the first, or only the second, gets right; examples on which
    both agree say nothing. Exact: the chance of so uneven a split, or a worse one, of fair coins.
    """
    if min(only_first, only_second) < 0:
        raise ValueError(f"{only_first} and {only_second} are no counts")
    n, fewer = only_first + only_second, min(only_first, only_second)
    tail = ways = 1
    for k in range(fewer):
        ways = ways * (n - k) // (k + 1)
        tail += ways
    return min(1.0, float(2 * tail / 2**n))


def paired_difference(
    differences: Sequence[float] | NDArray[np.float64], confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of paired differences, each from -1 to 1 (Agresti and Min 2005).

    Two pseudo-pairs are added: half a pair for either side and one for none. So a handful of examples without
    any difference does not pass for certainty, as it would in a bootstrap. Of no pairs it is (-1, 1).
    """
    sample = np.asarray(differences, dtype=np.float64)
    if sample.size == 0:
        return -1.0, 1.0
    n = sample.size + 2
    mean = float(sample.sum()) / n
    variance = (float((sample**2).sum()) + 1.0) / n - mean**2
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(max(0.0, variance) / n)
    # The centre is pulled towards zero; the ends must still hold what was seen.
    seen = float(sample.mean())
    widest = max(1.0, float(np.abs(sample).max()))
    return max(-widest, min(seen, mean - half)), min(widest, max(seen, mean + half))
