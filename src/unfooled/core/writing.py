"""Attacks on victims that write text, a translation say, instead of choosing a class.

The victim is asked `Asked` and answers `Written`. Everything else (budget, random numbers, searches, run
file) is that of any other attempt; only the goal reads texts where others read probabilities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unfooled.core.attempt import Attempt, Scored, Search, conclude, reason_of, require_readable
from unfooled.core.program import Program, ask
from unfooled.core.result import Outcome, Result
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text

# Names of what a result's fields hold beside the text that was attacked.
REFERENCE, KEYWORD = "reference", "keyword"


class Asked(NamedTuple):
    """Write something for this text; with a keyword, also say how near that is to being written."""

    text: str
    keyword: str = ""


class Written(NamedTuple):
    """What was written, and the best log-probability of the keyword over the places of the output."""

    output: str
    nearness: float = 0.0


class Forced(NamedTuple):
    """How near is the keyword to being written, were the output for `text` to go along `along`?"""

    text: str
    along: str
    keyword: str


class Pulled(NamedTuple):
    """Which words, in the place of the characters `start` to `end`, would bring the keyword nearer?"""

    text: str
    start: int
    end: int
    along: str
    keyword: str
    most: int


@runtime_checkable
class TextGoal(Protocol):
    """What an attack wants of a victim that writes."""

    def take_aim(self, a: WritingAttempt, /) -> Program[str]:
        """Decide what this example is after (`a.keyword`); returns why it is passed over, or nothing."""
        ...

    def judge(self, answers: Sequence[Written], a: WritingAttempt, /) -> tuple[list[float], list[bool]]: ...


class WritingAttempt(Attempt):
    """One text, what the victim writes for it, and what a person wrote."""

    goal: Any  # a `TextGoal`

    def __init__(
        self, text: Text, reference: str, goal: TextGoal, *, key: int, seed: int, budget: int | None = None
    ) -> None:
        super().__init__(text, 0, goal, key=key, seed=seed, budget=budget)  # type: ignore[arg-type]
        self.reference = reference
        self.before = ""  # the output for the original text
        self.keyword = ""

    def begin(self) -> Program[None]:
        """Ask for the original's output, which goals compare with."""
        value = self.original.string
        self._pay([value])
        (answer,) = yield from ask("victim", [Asked(value)])
        self.before = answer.output

    def _question(self, value: str | tuple[str, ...]) -> Hashable:
        return Asked(value if isinstance(value, str) else value[self.original.field], self.keyword)

    def _judge(self, texts: Sequence[Text], answers: list[Any]) -> list[Scored]:
        if not texts:
            return []
        scores, successes = self.goal.judge(answers, self)
        return [
            Scored(text, np.zeros(0), score, success, output=answer.output)
            for text, answer, score, success in zip(texts, answers, scores, successes, strict=True)
        ]


def writing_attempt(
    text: Text,
    reference: str,
    goal: TextGoal,
    search: Search,
    *,
    key: int,
    seed: int,
    budget: int | None = None,
    max_words: int | None = None,
) -> Program[Result]:
    """The whole life of one example, from the first query to its `Result`. Never raises an `Exception`."""
    a = WritingAttempt(text, reference, goal, key=key, seed=seed, budget=budget)
    start: Scored | None = None
    final: Scored | None = None
    outcome: Outcome = "failure"
    note = ""
    try:
        require_readable(text, max_words)
        yield from a.begin()
        unwanted = yield from goal.take_aim(a)
        (start,) = yield from a.score([text])
        if unwanted:
            outcome, note = "skipped", unwanted
        elif start.success:
            outcome, note = "skipped", "the goal is reached without any edit"
        elif not text.words:
            outcome, note = "error", "there are no words to edit"
        else:
            final = yield from search.run(a, start)
            note = a.note
    except BudgetExhaustedError as spent:
        final, note = a.best, str(spent)
    except Exception as error:
        outcome, final, note = "error", None, reason_of(error)
    result = conclude(a, outcome, start, final, note)
    more = [(name, value) for name, value in ((REFERENCE, reference), (KEYWORD, a.keyword)) if value]
    return dataclasses.replace(result, fields=(*result.fields, *more))
