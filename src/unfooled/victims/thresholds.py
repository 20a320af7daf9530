"""A classifier as it is deployed, with thresholds: a class is decided when its score reaches a bound.

    unfooled attack --model m --data d --threshold offensive=0.8

The decision
    1. A class with a threshold is decided when its score is at least the threshold. Of several that reach
       theirs, the one furthest above it is decided, measured in odds: score / (1 - score), divided by the
       same of the threshold.
    2. Where none reaches its threshold, the class with the highest score among those without a threshold is
       decided. At least one class has none.
    With two classes and a threshold for one of them: that class from the threshold on, else the other.

What others see
    Everything here (attacks, tables, files) takes the class with the highest score for the decided one. So
    the scores are told on a scale on which that is true: the score of a class with a threshold becomes its
    odds divided by those of the threshold, the others are divided by the highest of them, and all are
    divided by their sum. With two classes the threshold itself reads 0.5, 0 and 1 stay what they are, and no
    two texts change their order: an attack that looks at scores takes the same steps as without a threshold,
    and only ends where the deployed decision falls. A threshold of 0.5 changes nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.core.victim import Probabilities, Reloadable, TextValue, Victim, digest
from unfooled.core.victim_oracle import DECIMALS, validate
from unfooled.errors import VictimError
from unfooled.victims.around import INSIDE, AroundVictim

_INSIDE = INSIDE | {"concurrency", "vocabulary", "vocabulary_vectors"}
# Methods that tell scores, or make another victim: theirs are re-scaled as those of `predict` are.
_RESCALED = {"answer": "_answer", "zeroed": "_zeroed", "slopes": "_slopes", "redrawn": "_redrawn"}
_TINY = 1e-9  # nearer to 0 and 1 no score is taken: odds have no end there
_LEAD = 4e-6  # of the decided class, so that rounded scores still show it


class Thresholded(AroundVictim, Reloadable):
    """The classifier inside, deciding by thresholds; see the module."""

    def __init__(self, inner: Victim, thresholds: Mapping[str, float | str]) -> None:
        if "probabilities" not in inner.capabilities:
            raise VictimError(
                f"{inner.name} gives no score per class, so a threshold has nothing to look at",
                "leave --threshold out, or load the model so that it gives scores",
            )
        self.inner = inner
        self.thresholds = settled_thresholds(thresholds, inner.labels)
        bounds = ", ".join(f"{name} ≥ {value:g}" for name, value in self.thresholds.items())
        self.name = f"{inner.name} ({bounds})"
        self.labels = inner.labels
        self._limits = {inner.labels.index(name): value for name, value in self.thresholds.items()}
        if spec := getattr(inner, "spec", ""):
            self.spec = spec
            self.options = {**getattr(inner, "options", {}), "thresholds": self.thresholds}

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return self._rescaled(self.inner.predict(texts), len(texts))

    def fingerprint(self) -> str:
        return digest("thresholds", self.inner.fingerprint(), sorted(self.thresholds.items()))

    def __getattr__(self, name: str) -> Any:
        return self._seen(name, _INSIDE, _RESCALED)

    def _rescaled(self, answers: Any, count: int) -> Probabilities:
        scores = validate(answers, count, self.labels, self.inner.name)
        return rescaled(scores, self._limits) if count else scores

    async def _answer(self, items: Sequence[Any], /) -> Probabilities:
        inner: Any = self.inner
        return self._rescaled(await inner.answer(items), len(items))

    def _zeroed(self, items: Sequence[Any], /) -> Probabilities:
        inner: Any = self.inner
        return self._rescaled(inner.zeroed(items), len(items))

    def _slopes(self, texts: Sequence[Any], labels: Sequence[int], /) -> list[Any]:
        inner: Any = self.inner
        found = inner.slopes(texts, labels)
        rows = self._rescaled([slope.scores for slope in found], len(found))
        return [dataclasses.replace(slope, scores=row) for slope, row in zip(found, rows, strict=True)]

    def _redrawn(self, draw: int, /) -> Thresholded:
        inner: Any = self.inner
        return Thresholded(inner.redrawn(draw), self.thresholds) if draw else self


def settled_thresholds(given: Mapping[str, float | str], labels: Sequence[str]) -> dict[str, float]:
    """Thresholds by the victim's own names of its classes, in its order."""
    own = {label.casefold(): label for label in labels}
    found: dict[str, float] = {}
    for name, value in given.items():
        if name.casefold() not in own:
            raise VictimError(
                f"there is no class {name!r} to put a threshold on", f"the classes are {', '.join(labels)}"
            )
        try:
            bound = float(value)
        except (TypeError, ValueError):
            bound = math.nan
        if not 0.0 < bound < 1.0:
            raise VictimError(
                f"a threshold of {value} for {name} is no score", "give a number between 0 and 1, such as 0.8"
            )
        found[own[name.casefold()]] = bound
    if not set(labels) - set(found):
        raise VictimError(
            "every class has a threshold, so nothing is decided where none is reached",
            "leave the threshold of the default class out: it is decided where no other reaches its own",
        )
    return {label: found[label] for label in labels if label in found}


def rescaled(scores: Probabilities, limits: Mapping[int, float]) -> Probabilities:
    """Scores on the scale where the highest belongs to the decided class; `limits` are by class number."""
    # Rounded first: a model's last digits change with the batch, and dividing would make them larger.
    exact = np.clip(np.round(scores, DECIMALS), 0.0, 1.0)
    near = np.clip(exact, _TINY, 1.0 - _TINY)
    free = [column for column in range(scores.shape[1]) if column not in limits]
    parts = np.empty_like(near)
    parts[:, free] = near[:, free] / near[:, free].max(axis=1, keepdims=True)
    reached = np.zeros(scores.shape, dtype=bool)
    for column, limit in limits.items():
        own = near[:, column]
        parts[:, column] = own / (1.0 - own) * (1.0 - limit) / limit
        reached[:, column] = exact[:, column] >= limit
    # By the scores themselves: division must not tip a score that is exactly at its threshold.
    best = np.where(
        reached.any(axis=1),
        np.where(reached, parts, -1.0).argmax(axis=1),
        np.where(np.isin(np.arange(scores.shape[1]), free), parts, -1.0).argmax(axis=1),
    )
    told = parts / parts.sum(axis=1, keepdims=True)
    rows = np.arange(len(told))
    top = told[rows, best]
    capped = np.minimum(told, (top - _LEAD)[:, None])
    capped[rows, best] = 0.0
    capped = np.maximum(capped, 0.0)
    capped[rows, best] = 1.0 - capped.sum(axis=1)
    return np.asarray(capped, dtype=np.float64)
