"""How to look for a text that reaches the goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, Option
from unfooled.attacks.parts.importance import Importance
from unfooled.core.attempt import Attempt, Scored, most_similar
from unfooled.core.program import Program
from unfooled.resources.stopwords import STOPWORDS
from unfooled.text import Text

Ties: TypeAlias = Literal["nearest", "text"]


@dataclass(frozen=True, kw_only=True)
class GreedySwap:
    """Go through the words once, the most important first, and keep the best replacement of each.

    Among options that reach the goal the most similar one ends the search; otherwise the option with the
    highest score is kept if it beats the present text (`accept="better"`) or at least the original
    (`accept="better-than-original"`). Equal scores fall to the option that comes first: the nearest word,
    or with `ties="text"` the text that sorts first.
    """

    importance: Importance
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    stopwords: str = "textfooler"
    stopwords_cased: bool = False
    accept: Literal["better", "better-than-original"] = "better"
    ties: Ties = "nearest"

    def __post_init__(self) -> None:
        if self.stopwords not in STOPWORDS:
            raise ValueError(f"stopwords is one of {', '.join(STOPWORDS)}")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        now = start
        positions = attackable(start.text, self.stopwords, cased=self.stopwords_cased)
        for i in (yield from self.importance.rank(a, start, positions)):
            words = yield from self.candidates.propose(a, now.text, i)
            options = [Option(now.text.replace(i, word), i) for word in words]
            options = yield from allowed(a, now, options, self.constraints, self.ties)
            floor = now if self.accept == "better" else start
            now = yield from best_step(a, now, options, floor.score)
            if now.success:
                break
        return now


def allowed(
    a: Attempt, now: Scored, options: list[Option], constraints: Sequence[Constraint], ties: Ties
) -> Program[list[Option]]:
    """The options that every constraint lets pass, in the order that decides among equals."""
    for constraint in constraints:
        options = yield from constraint.allow(a, now, options)
    return sorted(options, key=lambda option: option.text.string) if ties == "text" else options


def best_step(a: Attempt, now: Scored, options: Sequence[Option], floor: float) -> Program[Scored]:
    """The most similar option that reaches the goal; else the one with the highest score if that is above
    `floor`; else the present text."""
    scored = yield from a.score(
        [option.text for option in options], [option.similarity for option in options]
    )
    if won := [one for one in scored if one.success]:
        return most_similar(won)
    # max() keeps the first of equals, which is the tie rule.
    best = max(scored, key=lambda one: one.score, default=now)
    return best if best.score > floor else now


def attackable(text: Text, stopwords: str, *, cased: bool = False) -> list[int]:
    """Positions of the words that are not stop words."""
    listed = STOPWORDS[stopwords]
    if cased:
        return [i for i, word in enumerate(text.words) if word not in listed]
    return [i for i, word in enumerate(text.words) if word.lower().replace("’", "'") not in listed]
