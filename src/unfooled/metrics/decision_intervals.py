"""Intervals of a rate that a decision may rest on: their errors are bounded, not just close to 5 %.

On either side an interval misses the true rate in at most 2.5 % of all cases, whatever that rate is. Of a run
whose size was fixed before anybody saw a result the exact interval does (Clopper and Pearson 1934). Who looks
again and again while a run grows, and stops at the first answer that pleases, needs one that holds at all
sizes at once (Robbins 1970): it is wider, and no way of looking makes it err more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable

ERROR = 0.025  # on either side
_PRIOR = 20.0  # rows that the bet is worth before any: needs the fewest rows where some hundreds decide
_HALVINGS = 60
_FRACTIONS = 10_000
_TINY = 1e-300


def exact_interval(successes: int, n: int, error: float = ERROR) -> tuple[float, float]:
    """95 % interval of a rate over `n` rows, a number that was fixed before they were looked at.

    `error` is the chance to miss the rate on either side.
    """
    return _both_ends(successes, n, error, _exact_low)


def anytime_interval(successes: int, n: int, error: float = ERROR) -> tuple[float, float]:
    """95 % interval of a rate over the `n` rows so far, however often a growing run was looked at.

    A rate is left out once a bet against it, spread over all higher (or all lower) rates, has multiplied what
    was staked by 40. From a fair bet nobody wins that much with a chance above 1 in 40, at whatever moment.
    """
    return _both_ends(successes, n, error, _anytime_low)


def _both_ends(
    successes: int, n: int, error: float, low: Callable[[int, int, float], float]
) -> tuple[float, float]:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    return low(successes, n - successes, error), 1.0 - low(n - successes, successes, error)


def _exact_low(hits: int, misses: int, error: float) -> float:
    if not hits:
        return 0.0
    return _last(lambda rate: beta_below(rate, hits, misses + 1) <= error, hits / (hits + misses))


def _anytime_low(hits: int, misses: int, error: float) -> float:
    if not hits:
        return 0.0
    enough = -math.log(error)
    return _last(lambda rate: log_evidence(rate, hits, misses) >= enough, hits / (hits + misses))


def log_evidence(rate: float, hits: int, misses: int) -> float:
    """Logarithm of what a bet on higher rates than this one has won, spread by a beta distribution."""
    if not 0.0 < rate < 1.0:
        return math.inf if hits and rate <= 0.0 else -math.inf
    a, b = _PRIOR * rate, _PRIOR * (1.0 - rate)
    won = _log_beta(hits + a, misses + b) + _log_share(1.0 - rate, misses + b, hits + a)
    staked = _log_beta(a, b) + _log_share(1.0 - rate, b, a)
    return won - staked - hits * math.log(rate) - misses * math.log1p(-rate)


def _log_share(x: float, a: float, b: float) -> float:
    return math.log(max(_TINY, beta_below(x, a, b)))


def _last(left_out: Callable[[float], bool], most: float) -> float:
    """The highest rate below `most` that is left out; a little lower rather than higher."""
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if left_out(middle) else (low, middle)
    return low


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def beta_below(x: float, a: float, b: float) -> float:
    """The share of the beta distribution below `x`: the regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction of the other side converges sooner
        return 1.0 - beta_below(1.0 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b)) / a
    # Lentz's way to a continued fraction, from its beginning on.
    upper, lower = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, _FRACTIONS):
        before = value
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1.0 / _away_from_zero(1.0 + part * lower)
            upper = _away_from_zero(1.0 + part / upper)
            value *= lower * upper
        if abs(value - before) <= 1e-14 * abs(value):
            break
    return front * value


def _away_from_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
