"""Character edits, as a share of the original's length."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.attacks.parts.constraints import edit_distance
from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure


def values(ask: Ask, results: Sequence[Result]) -> list[float]:
    return [
        round(sum(edit_distance(e.before, e.after) for e in result.edits) / max(1, len(result.original)), 6)
        for result in results
    ]


MEASURE = Measure(name="edit-distance", title="characters edited, share", better="low", values=values)
