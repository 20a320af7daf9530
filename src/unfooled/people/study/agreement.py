"""How far people agree beyond chance, by the Natural Language Toolkit (Apache licence).

Krippendorff's alpha takes incomplete answers and knows that 4 is nearer to 5 than 1 is; Fleiss' kappa is the
figure most papers print. Both are 1 for full agreement and 0 for that of chance. Checked against the worked
examples of Krippendorff (2011) and Fleiss (1971) in `tests/test_agreement.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from unfooled.extras import libraries_of

Level = Literal["nominal", "ordinal"]
Votes: TypeAlias = Mapping[int, Mapping[int, int]]  # item → annotator → answer


@dataclass(frozen=True, slots=True)
class Agreement:
    """`alpha` over every item with two answers; `kappa` over the items that all annotators answered.

    nan where it is not defined: fewer than two annotators, or everybody gave one and the same answer.
    """

    question: str
    level: Level
    alpha: float
    items: int
    kappa: float
    complete: int  # items that all answered
    annotators: int


def agreement(question: str, votes: Votes, level: Level) -> Agreement:
    """What annotators answered to one question, as the two figures."""
    paired = {item: given for item, given in votes.items() if len(given) > 1}
    raters = {rater for given in votes.values() for rater in given}
    complete = {item: given for item, given in paired.items() if len(given) == len(raters)}
    return Agreement(
        question=question,
        level=level,
        alpha=krippendorff_alpha(paired, level),
        items=len(paired),
        kappa=fleiss_kappa(complete),
        complete=len(complete),
        annotators=len(raters),
    )


def krippendorff_alpha(votes: Votes, level: Level) -> float:
    """Items with fewer than two answers say nothing and are left out."""
    paired = {item: given for item, given in votes.items() if len(given) > 1}
    counts = Counter(value for given in paired.values() for value in given.values())
    if len(counts) < 2:
        return math.nan
    distance = _unequal if level == "nominal" else _ordinal(counts)
    return float(_task(paired, distance).alpha())


def fleiss_kappa(votes: Votes) -> float:
    """Every item needs the same number of answers. The toolkit knows the figure as multi-pi."""
    sizes = {len(given) for given in votes.values()}
    counts = Counter(value for given in votes.values() for value in given.values())
    if len(sizes) != 1 or max(sizes) < 2 or len(counts) < 2:
        return math.nan
    # Who answered does not matter to Fleiss, only how many gave each answer.
    numbered = {item: dict(enumerate(given.values())) for item, given in votes.items()}
    return float(_task(numbered, _unequal).pi())


def _task(votes: Votes, distance: Callable[[int, int], float]) -> Any:
    with libraries_of("web", "nltk", needed_for="agreement between annotators"):
        from nltk.metrics.agreement import AnnotationTask
    rows = [(rater, item, value) for item, given in votes.items() for rater, value in given.items()]
    return AnnotationTask(rows, distance=distance)


def _unequal(answer: int, other: int) -> float:
    return float(answer != other)


def _ordinal(counts: Mapping[int, int]) -> Callable[[int, int], float]:
    """Krippendorff's distance of ranks: how many answers lie between the two, ends counted half."""

    def distance(answer: int, other: int) -> float:
        low, high = min(answer, other), max(answer, other)
        between = sum(count for value, count in counts.items() if low <= value <= high)
        return float((between - (counts[answer] + counts[other]) / 2) ** 2)

    return distance
