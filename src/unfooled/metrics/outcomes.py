"""What the run file alone says: who was mistaken for whom, and how many words it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unfooled.core.result import ABSTAINED, Result, decided
from unfooled.metrics.summary import COUNTS, Mean
from unfooled.rates import confusion


@dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of true class (row) and decided class (column). Examples that ended in an error are left out."""

    labels: tuple[str, ...]
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    @property
    def n(self) -> int:
        return int(self.before.sum())

    def decisions(self, when: str) -> tuple[str, ...]:
        """Names of the columns `before` or `after`: the classes and, where there are ties, their own."""
        ties = getattr(self, when).shape[1] > len(self.labels)
        return (*self.labels, ABSTAINED) if ties else self.labels


@dataclass(frozen=True)
class WordsChanged:
    """How many successful attacks needed how many words."""

    counts: dict[int, int]  # edited words → successes, in rising order
    words: Mean
    share: Mean  # of the original's words

    @property
    def n(self) -> int:
        return sum(self.counts.values())


def outcomes(results: Iterable[Result], labels: tuple[str, ...]) -> tuple[Confusion, WordsChanged]:
    """One pass over the run, a few numbers kept of each result."""
    true: list[int] = []
    first: list[int] = []
    then: list[int] = []
    changed: list[int] = []
    shares: list[float] = []
    for result in results:
        if result.outcome == "error":
            continue
        true.append(result.label)
        first.append(decided(result.probs))
        then.append(decided(result.perturbed_probs))
        if result.outcome == "success":
            changed.append(len(result.edits))
            shares.append(result.share)
    classes = len(labels)
    return (
        Confusion(labels, confusion(true, first, classes), confusion(true, then, classes)),
        WordsChanged(
            dict(sorted(Counter(changed).items())), Mean.of(changed, COUNTS), Mean.of(shares, COUNTS)
        ),
    )
