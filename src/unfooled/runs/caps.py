"""What a run may cost: it stops cleanly before it costs more, and goes on under a higher cap.

Money is counted per text that the victim is asked, over all commands that worked on the run; hours are those
of one command. No example is begun whose expected cost would exceed the cap; where those under way cost more
than expected, the run stops in their midst, and they are begun again later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from unfooled.core.result import Example, Result
from unfooled.core.session import Life
from unfooled.errors import CapReachedError, UserError
from unfooled.runs.file import RunFile

SPENT = "spent"  # the counter in a run file that holds how many texts all commands asked about
FITTING = "fitting"  # the counter that holds how many texts a surrogate was fitted on
FIRST = 4  # examples that are begun before it is known what one costs
CHARACTERS = 4  # that are taken for a token


@dataclass(frozen=True, kw_only=True)
class Caps:
    """Prices, in any currency, and bounds. A token is taken for four characters.

    Example:

        >>> caps = unfooled.Caps(per_query=0.01, max_cost=0.1)
        >>> try:
        ...     run = unfooled.attack("fake", "reviews.csv", "deepwordbug", out="runs/paid", caps=caps)
        ... except unfooled.UserError as error:
        ...     print(error.remedy)
        repeat the command with a higher --max-cost to go on
    """

    max_cost: float | None = None
    max_hours: float | None = None
    per_query: float = 0.0
    per_token: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value >= 0:  # nan is neither
                raise UserError(f"{name}={value} makes no sense", f"{name} is at least 0")
        if math.inf in (self.per_query, self.per_token):
            raise UserError("a price without end makes no sense", "give a price that is a number")
        if self.max_cost is not None and not self.priced:
            raise UserError(
                "--max-cost has no price to count with", "give --price-per-query or --price-per-token"
            )

    @property
    def priced(self) -> bool:
        return bool(self.per_query or self.per_token)

    @property
    def bound(self) -> bool:
        return self.max_cost is not None or self.max_hours is not None

    def price(self, tokens: float) -> float:
        """Of one question about a text of so many tokens."""
        return self.per_query + self.per_token * tokens

    def affordable(self, sample: Sequence[Example]) -> float:
        """How many questions about texts such as these the money is enough for."""
        if self.max_cost is None:
            return math.inf
        price = self.price(_usual_tokens(sample))
        return self.max_cost / price if price else math.inf


def tokens_of(fields: Iterable[tuple[str, str]]) -> int:
    return -(-sum(len(content) for _, content in fields) // CHARACTERS)


def _usual_tokens(sample: Sequence[Example]) -> float:
    lengths = [tokens_of(example.content) for example in sample]
    return sum(lengths) / max(1, len(lengths))


@contextmanager
def spending_within(caps: Caps | None, file: RunFile, sample: Sequence[Example]) -> Iterator[Spending]:
    """What counts while a run goes on; without bounds nothing is counted. Raises where a cap was reached."""
    if caps is None or not caps.bound:
        yield Spending()
        return
    counting = BoundSpending(caps, file, sample)
    try:
        yield counting
    finally:
        counting.keep()
    if counting.stopped:
        raise counting.error()


class Spending:
    """Counts nothing: a run without bounds."""

    checks: Callable[[], None] | None = None  # called again and again while the run goes on

    def working(self, life: Callable[[], Life]) -> None:
        pass

    def admitted(self, examples: Iterable[Example]) -> Iterable[Example | None]:
        """Examples, until the next would be one too many; None where that is to be seen later."""
        return examples

    def finished(self, result: Result) -> None:
        pass


class BoundSpending(Spending):
    """Counts what a run costs while it goes on."""

    def __init__(self, caps: Caps, file: RunFile, sample: Sequence[Example]) -> None:
        self._caps = caps
        self._file = file
        self._began = time.monotonic()
        self._life: Callable[[], Life] = Life
        self._begun = self._ended = 0  # examples, by this command
        self._asked = 0  # questions about examples that this command finished
        counted = file.counters()
        self._before = max(
            int(counted.get(SPENT, {}).get("queries", 0)),
            int(counted.get(FITTING, {}).get("asked", 0)) + sum(result.queries for result in file.results()),
        )
        self._tokens = _usual_tokens(sample)
        self.stopped = ""  # why nothing more is begun
        self.checks = self.check

    def working(self, life: Callable[[], Life]) -> None:
        self._life = life

    def admitted(self, examples: Iterable[Example]) -> Iterator[Example | None]:
        for example in examples:
            while self._would_exceed():
                if self._begun == self._ended or self._over_time():
                    self.stopped = self._told()
                    return
                yield None  # what is under way may turn out cheaper than it looks
            self._begun += 1
            yield example

    def finished(self, result: Result) -> None:
        self._ended += 1
        self._asked += result.queries

    def cost(self) -> float:
        """So far, by all commands."""
        return (self._before + self._now()) * self._caps.price(self._tokens)

    def check(self) -> None:
        """Stop in the midst of examples where the cap is reached all the same."""
        if self._over_time() or (self._caps.max_cost is not None and self.cost() >= self._caps.max_cost):
            self.stopped = self.stopped or self._told()
            raise self.error()

    def error(self) -> CapReachedError:
        option = "--max-hours" if self._over_time() else "--max-cost"
        higher = "" if option == "--max-hours" else f" with a higher {option}"
        return CapReachedError(self.stopped, f"repeat the command{higher} to go on")

    def keep(self) -> None:
        """Write down what this command asked, for the next one to count on from."""
        self._file.set_counters({SPENT: {"queries": self._before + self._now()}})

    def _now(self) -> int:
        return max(self._asked, self._life().answered)

    def _over_time(self) -> bool:
        hours = (time.monotonic() - self._began) / 3600
        return self._caps.max_hours is not None and hours >= self._caps.max_hours

    def _would_exceed(self) -> bool:
        if self._over_time():
            return True
        if self._caps.max_cost is None:
            return False
        under_way = self._begun - self._ended
        if not self._ended and under_way >= FIRST:
            return True
        usual = self._asked / self._ended if self._ended else 1.0
        expected = max(self._asked + usual * (under_way + 1), self._now() + usual)
        return (self._before + expected) * self._caps.price(self._tokens) > self._caps.max_cost

    def _told(self) -> str:
        if self._over_time():
            return f"stopped after {self._caps.max_hours:g} hours (--max-hours); what is finished is saved"
        return (
            f"stopped at {self.cost():.4g} of {self._caps.max_cost:g} (--max-cost); what is finished is saved"
        )
