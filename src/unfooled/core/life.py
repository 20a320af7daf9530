"""How far a running attack is, for whoever watches it: numbers that can be read at any time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Life(NamedTuple):
    """Questions are texts put to the victim, and whatever else an attack asks."""

    examples: int = 0  # under way
    answered: int = 0  # questions to the victim, those of a batch that is still being computed included
    others: int = 0  # questions answered by language models, encoders and the like
    open: int = 0  # questions to the victim that wait for an answer
    oldest: int | None = None  # the example that has been under way for longest
    oldest_asked: int = 0  # its questions so far
    oldest_answered: int = 0

    @classmethod
    def together(cls, parts: Iterable[Life]) -> Life:
        """Of several processes: the sums, and the example that has asked most."""
        parts = list(parts)
        slowest = max(parts, key=lambda part: part.oldest_asked, default=cls())
        return cls(
            sum(part.examples for part in parts),
            sum(part.answered for part in parts),
            sum(part.others for part in parts),
            sum(part.open for part in parts),
            slowest.oldest,
            slowest.oldest_asked,
            slowest.oldest_answered,
        )


class Estimate:
    """How much longer, from what finished examples took and how far the others are.

    Counting examples alone says "one second" for as long as the last of them take: those that the victim
    gets wrong end at once, and hundreds are under way side by side. So the unit is the question. An example
    that has asked more than finished ones did is taken to need half as much again as it has had.
    """

    def __init__(self) -> None:
        self._finished = self._attacked = self._queries = 0

    def finished(self, queries: int, *, attacked: bool) -> None:
        self._finished += 1
        self._attacked += attacked
        self._queries += queries if attacked else 0

    def seconds(self, life: Life, left: int, elapsed: float) -> float | None:
        """For `left` examples, `elapsed` seconds after the start; None while there is nothing to go by."""
        if not left:
            return 0.0
        if not life.answered or elapsed <= 0:
            return None
        live = min(life.examples, left)
        spent = max(0, life.answered - self._queries)  # by those that are still under way
        if self._attacked:
            usual = self._queries / self._attacked
            waiting = (left - live) * self._attacked / self._finished
            rest = max(usual * live - spent, spent / 2) + usual * waiting
        elif left > live:
            return None  # nothing has ended, so how long the next ones take is not known
        else:
            rest = spent / 2
        return max(rest, life.open) * elapsed / life.answered
