"""Attacks on victims that write text, a translation say, instead of choosing a class.

The victim is asked `Asked` and answers `Written`. Everything else (budget, random numbers, searches, run
file) is that of any other attempt; only the goal reads texts where others read probabilities.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import Asked, Written
from unfooled.core.result import KEYWORD, REFERENCE, Example
from unfooled.text import Text


class TextGoal(abc.ABC):
    """What an attack wants of a victim that writes."""

    def attempt_on(self, example: Example, **shared: Any) -> WritingAttempt:
        """The attempt in which this goal is pursued on an example."""
        return WritingAttempt(example.text(), example.reference, self, **shared)

    @abc.abstractmethod
    def take_aim(self, a: WritingAttempt, /) -> Program[str]:
        """Decide what this example is after (`a.keyword`); returns why it is passed over, or nothing."""

    @abc.abstractmethod
    def judge(self, answers: Sequence[Written], a: WritingAttempt, /) -> tuple[list[float], list[bool]]:
        """A score to raise and whether the goal is reached, for each answer."""


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

    def begin(self) -> Program[tuple[Scored, str]]:
        """Asks for the original's output, which goals compare with, before it is scored."""
        value = self.original.string
        self._pay([value])
        (answer,) = yield from ask("victim", [Asked(value)])
        self.before = answer.output
        unwanted = yield from self.goal.take_aim(self)
        (start,) = yield from self.score([self.original])
        return start, unwanted

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        more = ((REFERENCE, self.reference), (KEYWORD, self.keyword))
        return (*self.original.fields, *((name, value) for name, value in more if value))

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
