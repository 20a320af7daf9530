"""Options of many places, or of many texts, proposed and scored together: in one ask, or a few if long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.importance import PORTION
from unfooled.attacks.parts.search import Ties, allowed, replacing
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, gather

Options: TypeAlias = Program[list[NextText]]  # what may be done in one place of one text
Take: TypeAlias = Callable[[int, list[Scored]], None]
_PER_PLACE = 10  # about so many options, for portions that do not fill the memory


def swapping(
    a: Attempt, candidates: Candidates, constraints: Sequence[Constraint], ties: Ties = "nearest"
) -> Callable[[Scored, int], Options]:
    """What may stand in the place of a word, as far as every constraint lets it pass."""
    propose = replacing(a, candidates)

    def options(now: Scored, index: int) -> Options:
        proposed = yield from propose(now, index)
        return (yield from allowed(a, now, proposed, constraints, ties))

    return options


def score_together(a: Attempt, places: Sequence[Options], take: Take) -> Program[None]:
    """Hands what the victim says of the options of each place, by its number, to `take`, in their order."""
    size = _portion(a)
    for first in range(0, len(places), size):
        proposed = yield from gather(places[first : first + size])
        options = [option for some in proposed for option in some]
        scored = yield from a.score(
            [option.text for option in options], [option.similarity for option in options]
        )
        begin = 0
        for number, some in enumerate(proposed, first):
            take(number, scored[begin : begin + len(some)])
            begin += len(some)


def best_of_each(a: Attempt, places: Sequence[Options]) -> Program[list[Scored | None]]:
    """The option with the highest score of each place, the first of equals; None where there is none."""
    best: list[Scored | None] = [None] * len(places)

    def take(number: int, found: list[Scored]) -> None:
        best[number] = max(found, key=lambda scored: scored.score, default=None)

    yield from score_together(a, places, take)
    return best


def count_each(a: Attempt, places: Sequence[Options]) -> Program[list[int]]:
    """How many options each place has; the victim is not asked."""
    counts: list[int] = []
    size = _portion(a)
    for first in range(0, len(places), size):
        counts += map(len, (yield from gather(places[first : first + size])))
    return counts


def _portion(a: Attempt) -> int:
    """So many places at once do not fill the memory."""
    return max(1, PORTION // (_PER_PLACE * max(1, len(a.original.string))))
