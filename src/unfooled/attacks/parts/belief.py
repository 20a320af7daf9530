"""What decisions teach about swaps: a Bayesian probit regression that learns from one decision at a time.

A text's tendency to flip is taken as a sum: one number for the text as it is, and for each swapped word its
features times weights that are not known. Each decision moves the weights' mean and narrows their
covariance by matching moments (assumed density filtering), a step in closed form.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Belief:
    """A Gaussian over weights. Features times weights, with noise of variance 1, above 0 is a flip."""

    def __init__(self, mean: Floats, deviation: Floats) -> None:
        self.mean = mean
        self.covariance = np.diag(deviation**2)
        self._root: Floats | None = None

    def learn(self, features: Floats, flipped: bool) -> None:
        """One decision more."""
        sign = 1.0 if flipped else -1.0
        reach = self.covariance @ features
        width = math.sqrt(1.0 + float(features @ reach))
        margin = sign * float(self.mean @ features) / width
        surprise = _hazard(margin)
        self.mean = self.mean + (sign * surprise / width) * reach
        self.covariance = self.covariance - (surprise * (margin + surprise) / width**2) * np.outer(
            reach, reach
        )
        self._root = None

    def draw(self, rng: np.random.Generator, spread: float = 1.0) -> Floats:
        """Weights as they might be; `spread` widens or narrows the doubt."""
        if self._root is None:
            self._root = np.asarray(
                np.linalg.cholesky(self.covariance + 1e-9 * np.eye(len(self.mean))), dtype=np.float64
            )
        return np.asarray(self.mean + spread * (self._root @ rng.standard_normal(len(self.mean))))


def _hazard(margin: float) -> float:
    """The normal density over the distribution function."""
    if margin < -6.0:
        return -margin
    below = 0.5 * math.erfc(-margin / math.sqrt(2.0))
    return math.exp(-0.5 * margin * margin) / math.sqrt(2.0 * math.pi) / below


def cheapest_flip(bias: float, effects: Floats, costs: Floats) -> list[tuple[int, int]]:
    """The swaps, one at most per place, whose effects lift `bias` above 0 at the least sum of costs, nearly.

    Rows are places, columns options; an option that is not there has an effect of minus infinity. None where
    all together do not lift it. Found by a price on cost: each place takes its best option at that price.
    """
    rows = np.arange(len(effects))

    def at_price(price: float) -> tuple[list[tuple[int, int]], float]:
        net = effects - price * costs
        best = net.argmax(axis=1)
        taken = net[rows, best] > 0.0
        places = rows[taken].tolist()
        return list(zip(places, best[taken].tolist(), strict=True)), bias + float(
            effects[rows, best][taken].sum()
        )

    chosen, lift = at_price(0.0)
    if lift <= 0.0:
        return []
    low, high = 1e-3, 1e6
    for _ in range(20):
        price = math.sqrt(low * high)
        fewer, left = at_price(price)
        if left > 0.0 and fewer:
            chosen, lift, low = fewer, left, price
        else:
            high = price
    for swap in sorted(chosen, key=lambda swap: -costs[swap]):
        if len(chosen) > 1 and lift - effects[swap] > 0.0:
            lift -= float(effects[swap])
            chosen = [other for other in chosen if other != swap]
    return chosen
