"""What attacks that go on after a success had found after so many queries, over all examples of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unfooled.core.curve import best_within
from unfooled.metrics.columns import ResultColumns, query_limits
from unfooled.metrics.summary import Mean

MARKS = (100, 500, 1000, 5000)  # budgets that papers on hard-label attacks report


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """After `queries` per example: how many are broken, and what the best texts are like."""

    queries: int
    attacked: int
    broken: int
    similarity: Mean
    share: Mean  # of words changed
    changed: Mean  # words changed


def progress(ledger: ResultColumns) -> list[QueryProgress]:
    """At round numbers of queries up to what the run spent; none before the first success."""
    rows = np.flatnonzero(ledger.attacked).tolist()
    top = int(np.nan_to_num(ledger.queries[ledger.attacked]).max(initial=1))
    marks = sorted({*map(int, query_limits(ledger)), *(mark for mark in MARKS if mark <= top)})
    found = []
    for mark in marks:
        best = [(row, best_within(ledger.curves[row], mark)) for row in rows]
        points = [(int(ledger.words[row]), point) for row, point in best if point is not None]
        if points:
            found.append(
                QueryProgress(
                    queries=mark,
                    attacked=len(rows),
                    broken=len(points),
                    similarity=Mean.of([point.similarity for _, point in points], within=(-1.0, 1.0)),
                    share=Mean.of(
                        [point.changed / max(1, words) for words, point in points], within=(0.0, 1.0)
                    ),
                    changed=Mean.of([point.changed for _, point in points], within=(0.0, np.inf)),
                )
            )
    return found
