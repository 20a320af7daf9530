"""Cosine of the edited field before and after, whole texts, by an encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure, before_and_after


def values(ask: Ask, results: Sequence[Result]) -> list[float]:
    return [round(float(np.dot(before, after)), 6) for before, after in before_and_after(ask, results)]


MEASURE = Measure(
    name="similarity",
    title="similarity of the whole texts",
    better="high",
    oracle="encode",
    default="minilm",
    values=values,
)
