"""Draws from a Lévy distribution with index 1.5, by Mantegna's method: mostly small, now and then a leap.

Mantegna: *Fast, accurate algorithm for numerical simulation of Lévy stable stochastic processes*, 1994.
"""

from __future__ import annotations

import math

import numpy as np

_INDEX = 1.5
_SHAPE = 2.737  # C(1.5) of the article's table
_TRIES = 1000


def _width() -> float:
    """The standard deviation of the numerator."""
    above = math.gamma(_INDEX + 1) * math.sin(math.pi * _INDEX / 2)
    below = math.gamma((_INDEX + 1) / 2) * _INDEX * 2 ** ((_INDEX - 1) / 2)
    return float((above / below) ** (1 / _INDEX))


def _stretch() -> float:
    """K(1.5) of the article: what the middle of the distribution is stretched by."""
    ratio = math.gamma((_INDEX + 1) / (2 * _INDEX)) / math.gamma(1 / _INDEX)
    inner = _INDEX * math.gamma((_INDEX + 1) / 2) / (math.gamma(_INDEX + 1) * math.sin(math.pi * _INDEX / 2))
    return float(_INDEX * ratio * inner ** (1 / _INDEX))


def levy_draw(rng: np.random.Generator) -> float:
    value = -math.inf
    while value < -10:
        above, below = rng.normal(size=2).tolist()
        value = above * _width() / abs(below) ** (1 / _INDEX)
    return value * ((_stretch() - 1.0) * math.exp(-value / _SHAPE) + 1.0)


def levy_within(rng: np.random.Generator, low: float, high: float) -> float:
    """The first of many draws that falls between the two; a uniform one if none does."""
    for _ in range(_TRIES):
        if low <= (drawn := levy_draw(rng)) <= high:
            return drawn
    return float(rng.uniform(low, high))
