"""A victim that writes, as the engine sees it, and what attacks ask of its inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unfooled.core.questions import Asked, Forced, Pulled, Written
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import InBatchesOfVictim
from unfooled.errors import CapabilityError, VictimError


class WritingOracle(InBatchesOfVictim):
    """`Asked` → `Written`."""

    def __call__(self, items: Sequence[Any], /) -> list[Written]:
        asked = [Asked(*item) for item in items]
        answers: list[Written] = self.victim.write(asked)
        if len(answers) != len(asked) or not all(isinstance(answer.output, str) for answer in answers):
            raise VictimError(
                f"{self.victim.name} did not write one text for each of {len(asked)}",
                "let write return one Written per question",
            )
        return answers


class InsideOracle:
    """What a method of a victim says of its inside, item by item."""

    def __init__(
        self,
        victim: Victim,
        method: str,
        item: Callable[..., Any],
        *,
        batch_size: int,
        cacheable: bool = True,
    ) -> None:
        self._ask, self._item = getattr(_with(victim, method), method), item
        self.batch_size = batch_size
        self.cacheable = cacheable

    def __call__(self, items: Sequence[Any], /) -> list[Any]:
        return list(self._ask([self._item(*item) for item in items]))


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


def open_nearness(victim: Victim, _: str) -> InsideOracle:
    """`Forced` → the best log-probability of the keyword over the places of the given output."""
    # A search asks once about thousands of words.
    return InsideOracle(victim, "nearness", Forced, batch_size=4096, cacheable=False)


def open_pulls(victim: Victim, _: str) -> InsideOracle:
    """`Pulled` → words that would bring the keyword nearer, the best first."""
    return InsideOracle(victim, "pulls", Pulled, batch_size=256, cacheable=False)


def open_tokens(victim: Victim, _: str) -> InsideOracle:
    """(text, output) → the log-probability of each token of the output, the end sign last."""
    return InsideOracle(victim, "token_log_probs", lambda *item: item, batch_size=4096)


def open_target_words(victim: Victim, ranks: str) -> TargetWordsOracle:
    """`target-words:50-250`: the words of these ranks, counted from 0, the last left out."""
    first, _, last = ranks.partition("-")
    return TargetWordsOracle(_with(victim, "target_words"), int(first), int(last))
