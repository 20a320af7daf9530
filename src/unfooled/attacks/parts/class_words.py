"""Word lists of a naive Bayes model as an oracle, and what the attacks that use them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unfooled.core.attempt import Attempt, Goal, Scored
from unfooled.core.recipe import asking
from unfooled.core.victim import Victim
from unfooled.data.labels import match_labels
from unfooled.errors import DataError, ResourceError
from unfooled.resources.class_words import COMMAND, ClassWords


class ClassWordsOracle:
    """("strongest", class, most) → words; ("sway", class, words) → a number per word.

    Classes are numbered as the victim numbers them.
    """

    batch_size = 1024

    def __init__(self, words: ClassWords, columns: Sequence[int]) -> None:
        self._words = words
        self._columns = columns  # of each of the victim's classes

    def __call__(self, items: Sequence[Any], /) -> list[tuple[Any, ...]]:
        return [self._answer(*item) for item in items]

    def _answer(self, question: str, label: int, about: Any) -> tuple[Any, ...]:
        column = self._columns[label]
        if question == "strongest":
            return tuple(word for word, _ in self._words.strongest(column, about))
        return tuple(self._words.sway(word, column) for word in about)


def open_class_words(victim: Victim, path: str) -> ClassWordsOracle:
    """`class-words:words.json`; every class of the victim must be among the file's."""
    words = ClassWords.read(path)
    try:
        partner = match_labels(words.labels, victim.labels)
    except DataError:
        partner = {}
    columns = {partner[label]: column for column, label in enumerate(words.labels) if label in partner}
    if len(columns) < len(victim.labels):
        raise ResourceError(
            f"{path} has words for the classes {', '.join(words.labels)}, "
            f"but those of {victim.name} are {', '.join(victim.labels)}",
            f"make it from data with the victim's labels: {COMMAND.format(path)}, "
            "with --label-map old=new,… where only the names differ",
        )
    return ClassWordsOracle(words, [columns[label] for label in range(len(victim.labels))])


class ReadsClassWords:
    """A search that asks for words of a class; `words` names the file that holds them."""

    words: str

    asks = asking("class-words:{self.words}")

    @property
    def reads(self) -> Mapping[str, str]:
        return {self.words: f"make it: {COMMAND.format(self.words)}, or name yours: --set search.words=FILE"}


def target_of(goal: Goal) -> int | None:
    """The class to reach; None where any other than the true one will do."""
    inner = getattr(goal, "goal", None)  # a goal may narrow another one down
    target: int | None = getattr(goal, "target", None) if inner is None else target_of(inner)
    return target


def opposite(a: Attempt, start: Scored) -> int:
    """The class to push to: the target; else the likeliest after the true one, which of two is the other."""
    target = target_of(a.goal)
    if target is not None:
        return target
    others = [label for label in range(len(start.probs)) if label != a.label]
    return max(others, key=lambda label: float(start.probs[label]))


def pushed(a: Attempt) -> tuple[int, float]:
    """The class whose output is moved, and which way: the true one down, or the target up."""
    target = target_of(a.goal)
    return (a.label, -1.0) if target is None else (target, 1.0)
