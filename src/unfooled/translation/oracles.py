"""A victim that writes, as the engine sees it, and what attacks ask of its inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unfooled.core.questions import Asked, Forced, Pulled, Written
from unfooled.core.victim import Victim
from unfooled.errors import CapabilityError, VictimError
from unfooled.translation.victim import Translator


class WritingOracle:
    """`Asked` → `Written`."""

    def __init__(self, victim: Translator) -> None:
        self.victim = victim

    @property
    def batch_size(self) -> int:
        return self.victim.batch_size

    def __call__(self, items: Sequence[Any], /) -> list[Written]:
        asked = [Asked(*item) for item in items]
        answers = self.victim.write(asked)
        if len(answers) != len(asked) or not all(isinstance(answer.output, str) for answer in answers):
            raise VictimError(
                f"{self.victim.name} did not write one text for each of {len(asked)}",
                "let write return one Written per question",
            )
        return answers


class NearnessOracle:
    """`Forced` → the best log-probability of the keyword over the places of the given output."""

    batch_size = 4096
    cacheable = False  # a search asks once about thousands of words

    def __init__(self, victim: Any) -> None:
        self.victim = victim

    def __call__(self, items: Sequence[Any], /) -> list[float]:
        found: list[float] = self.victim.nearness([Forced(*item) for item in items])
        return found


class PullOracle:
    """`Pulled` → words that would bring the keyword nearer, the best first."""

    batch_size = 256
    cacheable = False

    def __init__(self, victim: Any) -> None:
        self.victim = victim

    def __call__(self, items: Sequence[Any], /) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = self.victim.pulls([Pulled(*item) for item in items])
        return found


class TokenOracle:
    """(text, output) → the log-probability of each token of the output, the end sign last."""

    batch_size = 4096

    def __init__(self, victim: Any) -> None:
        self.victim = victim

    def __call__(self, items: Sequence[Any], /) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = self.victim.token_log_probs([tuple(item) for item in items])
        return found


class TargetWordsOracle:
    """Any item → words that the victim may write, the most frequent first: those from `first` to `last`."""

    batch_size = 1

    def __init__(self, victim: Any, first: int, last: int) -> None:
        self.victim, self._range = victim, slice(first, last)

    def __call__(self, items: Sequence[Any], /) -> list[tuple[str, ...]]:
        return [self.victim.target_words()[self._range]] * len(items)


def _with(victim: Victim, method: str) -> Any:
    if not hasattr(victim, method):
        raise CapabilityError(
            f"{victim.name} does not let one look into what it writes", "use a torch encoder-decoder"
        )
    return victim


def open_nearness(victim: Victim, _: str) -> NearnessOracle:
    return NearnessOracle(_with(victim, "nearness"))


def open_pulls(victim: Victim, _: str) -> PullOracle:
    return PullOracle(_with(victim, "pulls"))


def open_tokens(victim: Victim, _: str) -> TokenOracle:
    return TokenOracle(_with(victim, "token_log_probs"))


def open_target_words(victim: Victim, ranks: str) -> TargetWordsOracle:
    """`target-words:50-250`: the words of these ranks, counted from 0, the last left out."""
    first, _, last = ranks.partition("-")
    return TargetWordsOracle(_with(victim, "target_words"), int(first), int(last))
