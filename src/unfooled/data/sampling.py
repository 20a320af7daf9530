"""Which rows a limit takes: a seeded sample with every class in its share, not what comes first in a file.

The order of all rows is settled by the seed, and a limit takes its beginning: a larger limit adds rows and
keeps those of the smaller one, so that a run can grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Rows = Literal["stratified", "first"]
Numbers = NDArray[np.int64]


def stratified_order(classes: Sequence[int] | Numbers, seed: int) -> Numbers:
    """Places of all rows, so that every beginning holds each class in about its share of the whole.

    Within a class the order is random. Row number r of a class of s rows stands at (r + u) / s, where u is a
    random offset of the class: so no class is ever ahead by more than a row.
    """
    given = np.asarray(classes, dtype=np.int64)
    rng = np.random.default_rng([seed, given.size])
    heights = np.empty(given.size)
    # In the order in which the classes appear, which is the same whatever numbers a victim gives them.
    for number in dict.fromkeys(given.tolist()):
        places = np.flatnonzero(given == number)
        offset = rng.random()
        heights[rng.permutation(places)] = (np.arange(places.size) + offset) / places.size
    return np.argsort(heights, kind="stable").astype(np.int64)


def missing_classes(classes: Numbers, taken: Numbers, labels: Sequence[str]) -> str:
    """A sentence on the classes that the data has and the rows taken have not; empty where there are none."""
    lost = sorted(set(classes.tolist()) - set(classes[taken].tolist()) - {-1})
    names = ", ".join(labels[number] for number in lost if number < len(labels))
    if not names:
        return ""
    return f"{taken.size:,} rows are taken, and none of them is of the class {names}: take more rows"
