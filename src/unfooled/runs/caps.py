"""What a run may cost: it stops cleanly before it costs more, and goes on under a higher cap.

Money is counted per text that the victim is asked, over all commands that worked on the run, their looks at
the victim and the fitting of a surrogate included; hours are those of one command, from its start. No example
is begun that would exceed the cap if it were as dear as the dearest so far and those under way as dear as
usual; where they cost more, the run stops in their midst, and they are begun again later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from unfooled.core.result import Example, Result
from unfooled.core.session import Life
from unfooled.errors import CapReachedError, UserError
from unfooled.runs.file import FILE, RunFile

SPENT = "spent"  # the counter in a run file that holds how many texts all commands asked about
FITTING = "fitting"  # the counter that holds how many a surrogate was fitted on
KEEP = 1.0  # seconds between two notes of what was spent: a run that is killed forgets no more than that
FIRST = 4  # examples that are begun before it is known what one costs, where the cap lets so many
UNKNOWN = 500  # queries that one of these may take
LOOKS = 18  # of the texts that a look at the victim asks about come again
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
        """Whether there is a price to count with."""
        return bool(self.per_query or self.per_token)

    @contextmanager
    def counting(
        self, file: RunFile, sample: Sequence[Example], *, looked: int = 0, began: float | None = None
    ) -> Iterator[Spending | None]:
        """What counts while a run goes on, if there are bounds. Raises at the end where one was reached.

        `looked` texts were asked before it, by a command that `began` then by `time.monotonic`.
        """
        if self.max_cost is None and self.max_hours is None:
            yield None
            return
        spending = Spending(self, file, sample, looked=looked, began=began)
        try:
            yield spending
        finally:
            spending.keep()
        if spending.stopped:
            raise spending.error()

    def price(self, tokens: float) -> float:
        """Of one question about a text of so many tokens."""
        return self.per_query + self.per_token * tokens


def require_affordable(
    caps: Caps | None, queries: int, *, sample: Sequence[Example], looked: int = 0
) -> None:
    """Refuse questions that are asked before the run begins and would, after so many texts that were looked
    at, cost more than it may."""
    if caps is None or caps.max_cost is None:
        return
    price = caps.price(mean_tokens(sample))
    if (looked + queries) * price > caps.max_cost:
        raise CapReachedError(
            f"fitting a surrogate on {queries:,} answers would cost {queries * price:.4g}, after a look at "
            f"the model for {looked * price:.4g}, more than {caps.max_cost:g} (--max-cost)",
            "fit it on fewer with --surrogate-queries, or repeat the command with a higher --max-cost",
        )


def require_looks(
    caps: Caps | None, out: str | Path | None, sample: Sequence[Example], *, restart: bool
) -> None:
    """Refuse to look at the victim where not even that can be paid: of a run that reached its cap, say."""
    if caps is None or caps.max_cost is None:
        return
    before = 0
    if out is not None and not restart and (Path(out).expanduser() / FILE).is_file():
        with closing(RunFile.read(out)) as file:
            before = asked_by_all(file)
    price = caps.price(mean_tokens(sample))
    cost = (before + len(sample) + min(LOOKS, 2 * len(sample))) * price
    if cost > caps.max_cost:
        said = (
            f"{before * price:.4g} of {caps.max_cost:g} (--max-cost) are spent" if before else "the run costs"
        )
        raise CapReachedError(
            f"{said}, and to look at the model before the attack {cost - before * price:.4g}",
            "repeat the command with a higher --max-cost to go on",
        )


def asked_by_all(file: RunFile) -> int:
    """Texts that all commands so far asked about; what an uncapped one asked is told by its results."""
    counted = file.counters()
    told = int(counted.get(FITTING, {}).get("asked", 0)) + sum(result.queries for result in file.results())
    return max(int(counted.get(SPENT, {}).get("queries", 0)), told)


def mean_tokens(sample: Sequence[Example]) -> float:
    return sum(tokens_of(example.content) for example in sample) / max(1, len(sample))


def tokens_of(fields: Iterable[tuple[str, str]]) -> int:
    return -(-sum(len(content) for _, content in fields) // CHARACTERS)


class Spending:
    """Counts what a run costs while it goes on."""

    def __init__(
        self,
        caps: Caps,
        file: RunFile,
        sample: Sequence[Example],
        *,
        looked: int = 0,
        began: float | None = None,
    ) -> None:
        self._caps = caps
        self._file = file
        self._began = time.monotonic() if began is None else began
        self._life: Callable[[], Life] = Life
        self._begun = self._ended = 0  # examples, by this command
        self._asked = 0  # questions about examples that this command finished
        self._dearest = 1  # of these
        self._before = asked_by_all(file) + looked
        self._tokens = mean_tokens(sample)
        left = (caps.max_cost or 0.0) - self.cost()
        fit = left / (UNKNOWN * caps.price(self._tokens)) if caps.priced else FIRST
        self._first = int(min(FIRST, max(1, fit)))
        self._kept = -KEEP
        self.stopped = ""  # why nothing more is begun

    def working(self, life: Callable[[], Life]) -> None:
        self._life = life

    def admitted(self, examples: Iterable[Example | None]) -> Iterator[Example | None]:
        """Examples, until the next would be one too many; None where that is to be seen later."""
        for example in examples:
            while self._would_exceed():
                if self._begun == self._ended or self._over_time():
                    self.stopped = self._told()
                    return
                yield None  # what is under way may turn out cheaper than it looks
            self._begun += 1
            yield example

    def counted(self, results: Iterator[Result]) -> Iterator[Result]:
        """The same results, each of which ends an example."""
        for result in results:
            self._ended += 1
            self._asked += result.queries
            self._dearest = max(self._dearest, result.queries)
            yield result

    def cost(self) -> float:
        """So far, by all commands."""
        return (self._before + self._now()) * self._caps.price(self._tokens)

    def check(self) -> None:
        """Stop in the midst of examples where the cap is reached all the same."""
        if time.monotonic() - self._began - self._kept >= KEEP:
            self.keep()
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
        self._kept = time.monotonic() - self._began

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
        if not self._ended and under_way >= self._first:
            return True
        usual = self._asked / self._ended if self._ended else 1.0
        expected = max(self._asked + usual * under_way, self._now()) + self._dearest
        return (self._before + expected) * self._caps.price(self._tokens) > self._caps.max_cost

    def _told(self) -> str:
        if self._over_time():
            return f"stopped after {self._caps.max_hours:g} hours (--max-hours); what is finished is saved"
        return (
            f"stopped at {self.cost():.4g} of {self._caps.max_cost:g} (--max-cost); what is finished is saved"
        )
