"""How right a classifier is, from true and predicted classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def confusion(true: Any, predicted: Any, classes: int) -> Counts:
    """How often each true class (row) was called each class (column).

    Where a decision is missing (a negative number, for a tie) there is one more column, for these.
    """
    columns = np.asarray(predicted, dtype=np.int64)
    width = classes + int((columns < 0).any())
    cells = np.asarray(true, dtype=np.int64) * width + np.where(columns < 0, classes, columns)
    return np.bincount(cells, minlength=classes * width).reshape(classes, width).astype(np.int64)


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
