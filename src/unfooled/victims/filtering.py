"""A classifier as a filter: of its classes some are blocked, and a text is blocked or it passes.

    unfooled attack --model m --data d --goal evade:hate,offensive@0.8

Whoever owns a filter does not mind that hate is taken for mere offence: both are blocked. So the decision has
two classes, `passed` and `blocked`, and is the one that the classifier makes, thresholds included: blocked
where the class that it decides for is among the flagged. The score of `blocked` is the highest of the flagged
classes, that of `passed` the highest of the others, divided by their sum; with two classes these are the
classifier's own scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.victim import Probabilities, Reloadable, TextValue, Victim, digest
from unfooled.core.victim_oracle import DECIMALS, validate
from unfooled.errors import DataError, VictimError
from unfooled.victims.around import INSIDE, AroundVictim

PASSED, BLOCKED = "passed", "blocked"
LABELS = (PASSED, BLOCKED)
_SHOWN = INSIDE - {"gradients", "jacobian"} | {"concurrency", "vocabulary"}
_OWN = {"answer": "_answer", "redrawn": "_redrawn"}


class Filter(AroundVictim, Reloadable):
    """The classifier inside, deciding whether a text passes; see the module."""

    labels = LABELS

    def __init__(self, inner: Victim, flag: Sequence[str]) -> None:
        self.inner = inner
        self.flag = flagged(flag, inner.labels)
        self.name = f"{inner.name}: {' or '.join(self.flag)}"
        self._columns = [inner.labels.index(label) for label in self.flag]
        self._others = [column for column in range(len(inner.labels)) if column not in self._columns]
        if spec := getattr(inner, "spec", ""):
            self.spec = spec
            self.options = {**getattr(inner, "options", {}), "flag": self.flag}

    @property
    def capabilities(self) -> frozenset[str]:
        # Slopes towards a class are not slopes towards several.
        return self.inner.capabilities & {"probabilities"}

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return self._decided(self.inner.predict(texts), len(texts))

    def fingerprint(self) -> str:
        return digest("filter", self.inner.fingerprint(), *self.flag)

    def __getattr__(self, name: str) -> Any:
        return self._seen(name, _SHOWN, _OWN)

    def _decided(self, answers: Any, count: int) -> Probabilities:
        scores = np.round(validate(answers, count, self.inner.labels, self.inner.name), DECIMALS)
        if not count:
            return np.zeros((0, 2))
        two = np.stack([scores[:, self._others].max(axis=1), scores[:, self._columns].max(axis=1)], axis=1)
        return np.asarray(two / two.sum(axis=1, keepdims=True))  # of one row, so never 0

    async def _answer(self, items: Sequence[Any], /) -> Probabilities:
        inner: Any = self.inner
        return self._decided(await inner.answer(items), len(items))

    def _redrawn(self, draw: int, /) -> Filter:
        inner: Any = self.inner
        return Filter(inner.redrawn(draw), self.flag) if draw else self


def flagged(names: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """The blocked classes by the classifier's own names, in its order."""
    own = {label.casefold(): label for label in labels}
    wanted = [name.strip() for name in names if name.strip()]
    for name in wanted:
        if name.casefold() not in own:
            remedy = f"the classes are {', '.join(labels)}; names that are not the model's own: --labels"
            raise VictimError(f"there is no class {name!r} to block", remedy)
    chosen = {own[name.casefold()] for name in wanted}
    if not chosen:
        raise VictimError("no class is named that is blocked", f"the classes are {', '.join(labels)}")
    if chosen == set(labels):
        raise VictimError("every class is blocked, so nothing can pass", "name only those that are blocked")
    return tuple(label for label in labels if label in chosen)


def parse_goal(goal: str) -> tuple[list[str], dict[str, str]]:
    """`evade:hate,offensive@0.8` as classes and thresholds; a single one at the end is for all."""
    kind, colon, rest = goal.partition(":")
    if kind != "evade" or not colon or not rest.strip():
        raise DataError(
            f"{goal!r} is no goal", "write evade:LABEL, evade:LABEL@THRESHOLD, or several: evade:A@0.8,B@0.5"
        )
    parts = [part.partition("@") for part in rest.split(",")]
    names = [name.strip() for name, _, _ in parts]
    given = [value.strip() for _, _, value in parts]
    if given[-1] and not any(given[:-1]):
        given = [given[-1]] * len(given)
    return names, {name: value for name, value in zip(names, given, strict=True) if value}
