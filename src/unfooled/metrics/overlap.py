"""Which runs break which examples: several attacks on the same model and data, example by example.

The splits of the BAE paper (Garg and Ramakrishnan 2020, table 4) are read from here: with the runs R, I and
R/I, A is what R/I breaks and R does not, B what R/I breaks and I does not, C what only R/I breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from unfooled.metrics.columns import Column, Flags, ResultColumns
from unfooled.metrics.summary import Rate
from unfooled.rates import mcnemar, mean_interval, paired_difference

BAE_MODES = ("bae-r", "bae-i", "bae-r-or-i")


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Examples that every run attacked; `broken[name]` says which of them that run broke."""

    n: int
    broken: Mapping[str, Flags]

    def groups(self) -> list[tuple[tuple[str, ...], int]]:
        """How many examples are broken by just these runs, the largest group first; by none comes last."""
        names = list(self.broken)
        marks = np.array([self.broken[name] for name in names], dtype=np.int64).T
        found, counts = np.unique(marks, axis=0, return_counts=True)
        listed = [
            (tuple(name for name, hit in zip(names, row, strict=True) if hit), int(count))
            for row, count in zip(found.tolist(), counts.tolist(), strict=True)
        ]
        return sorted(listed, key=lambda line: (not line[0], -line[1], line[0]))

    def only(self, name: str, *without: str) -> Rate:
        """Broken by `name` and by none of `without`, of all."""
        others = reduce(np.logical_or, (self.broken[unwanted] for unwanted in without))
        return Rate.of(int((self.broken[name] & ~others).sum()), self.n)


def overlap(ledgers: Mapping[str, ResultColumns]) -> Overlap | None:
    """None where no example was attacked by all of the runs."""
    keys = reduce(np.intersect1d, (ledger.keys[ledger.attacked] for ledger in ledgers.values()))
    if not len(keys):
        return None
    broken = {
        name: ledger.has("success")[np.searchsorted(ledger.keys, keys)] for name, ledger in ledgers.items()
    }
    return Overlap(len(keys), broken)


def bae_splits(found: Overlap, r: str, i: str, either: str) -> dict[str, Rate]:
    """A, B and C, as shares of the examples that all three runs attacked."""
    return {
        "A": found.only(either, r),
        "B": found.only(either, i),
        "C": found.only(either, r, i),
    }


@dataclass(frozen=True, slots=True)
class Difference:
    """A number of one run minus the same number of the other, over the `n` examples that both have."""

    name: str
    value: float
    low: float
    high: float
    n: int
    p: float | None = None  # exact McNemar test, for decisions


def differences(first: ResultColumns, other: ResultColumns) -> list[Difference]:
    """`other` minus `first`: the row of an ablation table. Pairs only, errors left out."""
    _, at_first, at_other = np.intersect1d(first.keys, other.keys, return_indices=True)
    judged = first.judged[at_first] & other.judged[at_other]
    at_first, at_other = at_first[judged], at_other[judged]
    if not len(at_first):
        return []
    found = []
    if (first.before[at_first] >= 0).any():  # a victim that decides for classes
        right = [
            (side.right_before & ~side.fallen)[at] for side, at in ((first, at_first), (other, at_other))
        ]
        found.append(_decisions("accuracy under attack", right[0], right[1]))
    attacked = first.attacked[at_first] & other.attacked[at_other]
    won, too = first.has("success")[at_first], other.has("success")[at_other]
    both = won & too
    if attacked.any():
        found.append(_decisions("broken", won[attacked], too[attacked]))
        spent = other.queries[at_other][attacked] - first.queries[at_first][attacked]
        if (told := np.isfinite(spent)).any():
            found.append(_mean("queries", spent[told]))
    if both.any():
        words = other.changed[at_other][both] - first.changed[at_first][both]
        found.append(_mean("words changed, where both broke it", words.astype(np.float64)))
    return found


def _decisions(name: str, first: Flags, other: Flags) -> Difference:
    apart = other.astype(np.float64) - first.astype(np.float64)
    p = mcnemar(int((apart < 0).sum()), int((apart > 0).sum()))
    return Difference(name, float(apart.mean()), *paired_difference(apart), len(apart), p)


def _mean(name: str, apart: Column) -> Difference:
    return Difference(name, float(apart.mean()), *mean_interval(apart), len(apart))


def by_attack(attacks: Sequence[str]) -> dict[str, int] | None:
    """The places of the three BAE modes among the attacks of some runs, if each is there once."""
    plain = [attack.partition("@")[0] for attack in attacks]
    if any(plain.count(mode) != 1 for mode in BAE_MODES):
        return None
    return {mode: plain.index(mode) for mode in BAE_MODES}
