"""Mistakes after minus mistakes before, by harper, or link-grammar where it is installed."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure, before_and_after


def values(ask: Ask, results: Sequence[Result]) -> list[float]:
    return [float(after - before) for before, after in before_and_after(ask, results)]


MEASURE = Measure(
    name="grammar", title="mistakes added", better="low", oracle="grammar", default="harper", values=values
)
