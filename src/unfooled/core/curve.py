"""How good the best text was after so many queries, of an attack that goes on after its first success.

A result keeps the curve among its facts, two for each better text: `similarity@37` and `changed@37` say what
was found with the 37th query. So a run with a large budget tells what a smaller one would have found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_SIMILARITY, _CHANGED = "similarity@", "changed@"


class CurvePoint(NamedTuple):
    """The best text so far: found with this query, so similar to the original, so many words changed."""

    queries: int
    similarity: float
    changed: int


def curve_facts(points: Iterable[CurvePoint]) -> dict[str, float]:
    """The points by the names under which a result keeps them."""
    facts: dict[str, float] = {}
    for point in points:
        facts[f"{_SIMILARITY}{point.queries}"] = point.similarity
        facts[f"{_CHANGED}{point.queries}"] = float(point.changed)
    return facts


def curve_of(facts: Iterable[tuple[str, float]]) -> list[CurvePoint]:
    """The points among a result's facts, in their order; none where no curve was kept."""
    known = dict(facts)
    queries = sorted(int(name.removeprefix(_SIMILARITY)) for name in known if name.startswith(_SIMILARITY))
    return [
        CurvePoint(number, known[f"{_SIMILARITY}{number}"], round(known[f"{_CHANGED}{number}"]))
        for number in queries
    ]


def best_within(points: Sequence[CurvePoint], queries: int) -> CurvePoint | None:
    """What so many queries find."""
    return next((point for point in reversed(points) if point.queries <= queries), None)
