"""Perplexity after divided by perplexity before, by a language model."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure, before_and_after


def values(ask: Ask, results: Sequence[Result]) -> list[float]:
    return [
        round(after.perplexity / before.perplexity, 6) for before, after in before_and_after(ask, results)
    ]


MEASURE = Measure(
    name="perplexity",
    title="perplexity, times that of the original",
    better="low",
    oracle="fluency",
    default="trigram",
    values=values,
)
