"""How right a classifier is, and how sure that is.

Accuracy and macro F1 from true and predicted classes; intervals for rates, means, F1 and paired differences;
the test for paired decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_HALVINGS = 60  # of a stretch, which leaves nothing of it in double precision
_MOST_WORTH = 1.5  # rows of a rate that one row may be worth to macro F1
_SERIES = 60  # degrees of freedom up to which Student's distribution is summed


def confusion(true: Any, predicted: Any, classes: int, times: Any = None) -> Counts:
    """How often each true class (row) was called each class (column); `times` are how often each pair counts.

    Where a decision is missing (a negative number, for a tie) there is one more column, for these.
    """
    columns = np.asarray(predicted, dtype=np.int64)
    width = classes + int((columns < 0).any())
    cells = np.asarray(true, dtype=np.int64) * width + np.where(columns < 0, classes, columns)
    return np.bincount(cells, times, minlength=classes * width).reshape(classes, width).astype(np.int64)


def accuracy(table: Any) -> Any:
    """Of one confusion table, or of many stacked in front."""
    counts = np.asarray(table)
    total = counts.sum(axis=(-2, -1))
    return np.trace(counts, axis1=-2, axis2=-1) / np.maximum(total, 1)


def macro_f1(table: Any) -> Any:
    """Mean of the classes' F1. A class that is neither there nor ever predicted is left out."""
    counts = np.asarray(table)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    sizes = counts.sum(axis=-1) + counts.sum(axis=-2)[..., : counts.shape[-2]]
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
    return _score(successes / n, n, NormalDist().inv_cdf(0.5 + confidence / 2))


def _score(rate: float, n: float, z: float) -> tuple[float, float]:
    """Rates from which `rate` of `n` is at most `z` standard errors away; `n` need not be whole."""
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push the ends past what was seen.
    low = 0.0 if rate <= 0.0 else max(0.0, min(rate, centre - half))
    high = 1.0 if rate >= 1.0 else min(1.0, max(rate, centre + half))
    return low, high


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    *,
    times: Any = 1,
    within: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Student's interval of a mean, corrected for skewness (Hall 1992); `within` bounds what it can be.
    `times` are how often each value occurs.

    Numbers of queries and of words have a long tail on one side: the mean of a few of them is mostly too low,
    and the upper end must reach further than the lower. Of no values the interval is (nan, nan); of equal
    values, or of one, it is the value itself, because nothing is known of what was never seen.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        return math.nan, math.nan
    if sample.min() == sample.max():
        return float(sample[0]), float(sample[0])
    often = np.broadcast_to(times, sample.shape)
    n = int(often.sum())
    mean = float((sample * often).sum() / n)
    apart = sample - mean
    squares = float((apart * apart * often).sum())
    error = math.sqrt(squares / (n - 1)) / math.sqrt(n)
    quantile = student(n - 1, confidence)
    skew = _skewness(apart / math.sqrt(squares / n), often, n)
    below, above = _reach(quantile, skew, n), _reach(quantile, -skew, n)
    return max(within[0], mean - error * below), min(within[1], mean + error * above)


def _reach(quantile: float, skew: float, n: int) -> float:
    """Standard errors from the mean down to the lower end; of the mirrored skewness, up to the upper one.

    Where the correction draws an end nearer than Student's, half of that counts: few values tell little of
    the skewness, and an end that is too near costs more than one that is too far.
    """
    corrected = _unskewed(quantile, skew, n)
    return max(corrected, (corrected + quantile) / 2)


def _skewness(apart: NDArray[np.float64], times: NDArray[np.int64], n: int) -> float:
    """Of the distribution that a sample comes from, which lies so many standard deviations `apart` from its
    mean; 0 of two values, which show none."""
    if n < 3:
        return 0.0
    return float((apart**3 * times).sum() / n) * math.sqrt(n * (n - 1)) / (n - 2)


def _unskewed(quantile: float, skew: float, n: int) -> float:
    """How many standard errors the mean lies from the truth where Hall's cubic transform gives `quantile`."""
    bend = skew / (3 * math.sqrt(n))
    wanted = quantile - skew / (6 * math.sqrt(n))
    if abs(bend) < 1e-9:
        return wanted
    return (math.cbrt(1 + 3 * bend * wanted) - 1) / bend


@lru_cache(maxsize=256)
def student(freedom: int, confidence: float = 0.95) -> float:
    """How far, in standard errors, Student's t stays from 0 with this confidence."""
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    if freedom > _SERIES:
        terms = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
    return _crossing(lambda t: _student_inside(t, freedom) >= confidence, 0.0, 1e5)


def _student_inside(t: float, freedom: int) -> float:
    """The chance that Student's t lies between -t and t: a finite sum for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= k / (k + 1) * math.cos(angle) ** 2
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def _crossing(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Where `reached` turns true between `low` and `high`."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def f1_interval(table: NDArray[np.int64], confidence: float = 0.95) -> tuple[float, float]:
    """Score interval of macro F1, as of a rate over as many rows as would leave it as uncertain.

    How uncertain it is says the delta method: what each row adds to macro F1. A table without any error, or
    without any hit, shows no spread, and yet says no more than its rows: never (0, 0) or (1, 1).
    """
    total = int(table.sum())
    if not total:
        return 0.0, 1.0
    value = float(macro_f1(table))
    variance = _f1_variance(table / total)
    rows = float(total)
    if variance > 0 and 0 < value < 1:
        rows *= min(_MOST_WORTH, value * (1 - value) / variance)
    return _score(value, max(1.0, rows), student(max(1, total - 1), confidence))


def _f1_variance(shares: NDArray[np.float64]) -> float:
    """Of what one row adds to macro F1."""
    classes = len(shares)
    sizes = shares.sum(axis=0)[:classes] + shares.sum(axis=1)
    there = sizes > 0
    weights = np.where(there, 1 / np.where(there, sizes, 1.0), 0.0) / there.sum()
    lost = 2 * np.diagonal(shares) * np.where(there, 1 / np.where(there, sizes, 1.0), 0.0) * weights
    added = np.repeat(-lost[:, None], shares.shape[1], axis=1)  # a row without a decision counts once
    added[:, :classes] += np.diag(2 * weights) - lost[None, :]
    return float((shares * (added - (shares * added).sum()) ** 2).sum())


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
    """Interval of the mean of paired differences, each from -1 to 1. Of no pairs it is (-1, 1).

    Of decisions, where each difference is -1, 0 or 1, it is the score interval (Tango 1998). Of anything else
    it is that of Agresti and Min (2005), with two pseudo-pairs: half a pair for either side and one for none.
    With both a handful of examples without any difference does not pass for certainty, as in a bootstrap.
    """
    sample = np.asarray(differences, dtype=np.float64)
    if sample.size == 0:
        return -1.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    up, down = int((sample == 1.0).sum()), int((sample == -1.0).sum())
    if up + down + int((sample == 0.0).sum()) == sample.size:
        return _score_of_pairs(up, down, sample.size, z)
    n = sample.size + 2
    mean = float(sample.sum()) / n
    variance = (float((sample**2).sum()) + 1.0) / n - mean**2
    half = z * math.sqrt(max(0.0, variance) / n)
    # The centre is pulled towards zero; the ends must still hold what was seen.
    seen = float(sample.mean())
    widest = max(1.0, float(np.abs(sample).max()))
    return max(-widest, min(seen, mean - half)), min(widest, max(seen, mean + half))


def _score_of_pairs(up: int, down: int, n: int, z: float) -> tuple[float, float]:
    """Differences of two rates from which `up` pairs for and `down` against are at most `z` errors away."""

    def beyond(difference: float) -> bool:
        """Whether what was seen is unlikely at this difference, whose best share of `down` is `least`."""
        free = -up - down + (2 * n - up + down) * difference
        root = math.sqrt(max(0.0, free * free + 8 * n * down * difference * (1 - difference)))
        least = (root - free) / (4 * n)
        variance = max(0.0, n * (2 * least + difference * (1 - difference)))
        return abs(up - down - n * difference) > z * math.sqrt(variance)

    seen = (up - down) / n
    low = -1.0 if not beyond(-1.0) else -_crossing(lambda distance: beyond(-distance), -seen, 1.0)
    high = 1.0 if not beyond(1.0) else _crossing(beyond, seen, 1.0)
    return min(seen, low), max(seen, high)


def correlation_interval(value: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Of Spearman's rank correlation, by Fisher's transform with the error of Bonett and Wright (2000)."""
    if n < 4:
        return -1.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    middle = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, value)))
    half = z * math.sqrt((1 + value * value / 2) / (n - 3))
    return math.tanh(middle - half), math.tanh(middle + half)


def area_interval(
    area: float, positive: int, negative: int, variance: float = 0.0, confidence: float = 0.95
) -> tuple[float, float]:
    """All areas that are not too far from the one found, by the deviation that they themselves would have.

    Newcombe (2006), method 5. Percentiles of a bootstrap hold 86 of 100 areas of 0.9 with 20 texts. Where
    resampled originals vary more (`variance`), texts of one original are alike, and there are fewer in truth.
    """
    if math.isnan(area):
        return math.nan, math.nan
    usual = _area_variance(area, positive, negative)
    alike = max(1.0, variance / usual) if usual > 0.0 else 1.0
    reach = NormalDist().inv_cdf((1 + confidence) / 2)

    def furthest(end: float) -> float:
        near, far = area, end
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            deviation = math.sqrt(alike * _area_variance(middle, positive, negative))
            near, far = (middle, far) if abs(middle - area) <= reach * deviation else (near, middle)
        return near

    return furthest(0.0), furthest(1.0)


def _area_variance(area: float, positive: int, negative: int) -> float:
    """Of an area between exponential scores, as many texts of either kind taken as there are on average."""
    others = (positive + negative) / 2 - 1
    spread = 1 + others * ((1 - area) / (2 - area) + area / (1 + area))
    return area * (1 - area) * spread / (positive * negative)
