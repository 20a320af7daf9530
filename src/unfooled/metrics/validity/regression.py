"""A logistic regression of few numbers: weights of a known sign, kept small, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]

_STEPS = 100
_TOLERANCE = 1e-7
_WEAK = 1e-6  # keeps a curvature from vanishing


@dataclass(frozen=True, eq=False)
class Regression:
    """P = σ(bias + Σ weight · (value - centre) / scale), with the covariance of weights and bias."""

    features: tuple[str, ...]
    centre: Values
    scale: Values
    weights: Values
    bias: float
    covariance: Values  # of the weights, and last of the bias

    def score(self, table: Values) -> Values:
        """The logit of each row."""
        logits: Values = (table - self.centre) / self.scale @ self.weights + self.bias
        return logits

    def draws(self, table: Values, count: int, rng: np.random.Generator) -> Values:
        """Logits under `count` likely values of the numbers: [count, rows]."""
        sides = np.column_stack([(table - self.centre) / self.scale, np.ones(len(table))])
        centre = np.append(self.weights, self.bias)
        drawn = rng.multivariate_normal(centre, self.covariance, size=count, method="eigh")
        logits: Values = drawn @ sides.T
        return logits

    def to_dict(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "centre": _rounded(self.centre),
            "scale": _rounded(self.scale),
            "weights": _rounded(self.weights),
            "bias": round(self.bias, 6),
            "covariance": [_rounded(row) for row in self.covariance],
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Regression:
        """Raises KeyError, TypeError or ValueError where it is none."""
        features = tuple(map(str, given["features"]))
        centre, scale, weights = (
            np.array(given[name], dtype=np.float64) for name in ("centre", "scale", "weights")
        )
        covariance = np.array(given["covariance"], dtype=np.float64)
        size = len(features)
        shapes = [centre.shape, scale.shape, weights.shape, covariance.shape]
        if shapes != [(size,), (size,), (size,), (size + 1, size + 1)]:
            raise ValueError(f"{size} features, but numbers of the shapes {shapes}")
        numbers = [centre, scale, weights, covariance, np.array([float(given["bias"])])]
        if not all(np.isfinite(part).all() for part in numbers) or not (scale > 0).all():
            raise ValueError("a number is not finite, or a scale is not above 0")
        return cls(features, centre, scale, weights, float(given["bias"]), covariance)


def probability(logits: Values) -> Values:
    chances: Values = 1.0 / (1.0 + np.exp(-np.clip(logits, -40.0, 40.0)))
    return chances


def fit_weights(
    table: Values,
    target: Values,
    counts: Values,
    *,
    signs: Sequence[int],
    priors: Sequence[float],
    strength: float,
) -> Values:
    """Weights and, last, the bias that make the targets likely; every column is standardised already.

    `target` is a share between 0 and 1, `counts` how much each row says. A weight of sign 1 is never below 0.
    Each has a normal prior around its entry of `priors` with the precision `strength`; the bias has none.
    """
    sides = np.column_stack([table, np.ones(len(table))])
    least = np.append(np.where(np.array(signs) > 0, 0.0, -np.inf), -np.inf)
    most = np.append(np.where(np.array(signs) < 0, 0.0, np.inf), np.inf)
    middle = np.append(np.array(priors, dtype=np.float64), 0.0)
    precision = np.append(np.full(table.shape[1], strength), 0.0)

    def loss(weights: Values) -> float:
        logits = sides @ weights
        misfit = counts @ (np.logaddexp(0.0, logits) - target * logits)
        return float(misfit + precision @ (weights - middle) ** 2 / 2)

    weights: Values = np.clip(middle, least, most)
    now = loss(weights)
    for _ in range(_STEPS):
        chances = probability(sides @ weights)
        gradient = sides.T @ (counts * (chances - target)) + precision * (weights - middle)
        # A weight at its bound stays there while it is pushed outwards; the others take Newton's step.
        held = ((weights <= least) & (gradient > 0)) | ((weights >= most) & (gradient < 0))
        free = np.flatnonzero(~held)
        inner = sides[:, free]
        curvature = (inner.T * (counts * chances * (1.0 - chances))) @ inner
        step = np.zeros_like(weights)
        step[free] = np.linalg.solve(curvature + np.diag(precision[free] + _WEAK), gradient[free])
        pace = 1.0
        while loss(new := np.clip(weights - pace * step, least, most)) > now and pace > _TOLERANCE:
            pace /= 2.0
        moved = float(np.abs(new - weights).max())
        weights, now = new, loss(new)
        if moved < _TOLERANCE:
            break
    return weights


def standardisation(table: Values) -> tuple[Values, Values]:
    """Mean and spread of each column; a column that never changes has the spread 1."""
    spread = table.std(axis=0)
    return table.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def area_under_curve(positive: Sequence[bool] | NDArray[np.bool_], scores: Values) -> float:
    """How often a positive row has the higher score than a negative one; ties count half."""
    flags = np.asarray(positive, dtype=bool)
    above, below = scores[flags][:, None], scores[~flags][None, :]
    if not above.size or not below.size:
        return float("nan")
    return float(((above > below) + 0.5 * (above == below)).mean())


def _rounded(values: Values) -> list[float]:
    return [round(float(value), 6) for value in values]
