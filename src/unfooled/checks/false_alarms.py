"""What a filter costs those who do nothing wrong, and what it catches at a fixed price.

Errors of the filter are counted by themselves: a text that it could not judge was neither blocked nor passed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.checks.replay import answers
from unfooled.core.result import decided
from unfooled.core.victim import TextValue, Victim
from unfooled.errors import UserError
from unfooled.metrics.summary import Rate
from unfooled.victims.filtering import BLOCKED, LABELS

PRICE = 0.01  # of honest texts that may be blocked, for the recall at a fixed price
_BLOCKED = LABELS.index(BLOCKED)

Change = Callable[[TextValue], TextValue]  # what a cure does to a text before the filter reads it


class CachedFilter:
    """A filter that is asked once about each text, whoever wants to know."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self.seconds = 0.0
        self._known: dict[TextValue, tuple[float, ...] | Exception] = {}

    @property
    def texts(self) -> int:
        """Distinct texts that it was asked about."""
        return len(self._known)

    def scores(self, texts: Sequence[TextValue], change: Change | None = None) -> list[float | None]:
        """The score of being blocked of each text; None where the filter failed."""
        wanted = [change(text) for text in texts] if change else list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._known]
        began = time.monotonic()
        self._known.update(answers(self.victim, new))
        self.seconds += time.monotonic() - began
        return [_score(self._known[text]) for text in wanted]

    def blocks(self, texts: Sequence[TextValue], change: Change | None = None) -> list[bool | None]:
        """Its decisions."""
        self.scores(texts, change)
        found = (self._known[change(text) if change else text] for text in texts)
        return [None if isinstance(row, Exception) else decided(row) == _BLOCKED for row in found]


def _score(row: tuple[float, ...] | Exception) -> float | None:
    return None if isinstance(row, Exception) else row[_BLOCKED]


def share(flags: Sequence[bool | None]) -> Rate:
    """Of those that are known."""
    known = [flag for flag in flags if flag is not None]
    return Rate.of(sum(known), len(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPrice:
    """Recall where the threshold blocks at most so many of the honest texts that it was chosen on.

    `allowed` of `chosen_on` texts were blocked there; `honest` is the share of others that are, which is what
    the price turned out to be.
    """

    price: float
    threshold: float
    allowed: int
    chosen_on: int
    recall: Rate
    honest: Rate

    def to_dict(self) -> dict[str, Any]:
        return {
            "price": self.price,
            "threshold": self.threshold,
            "allowed": self.allowed,
            "chosen_on": self.chosen_on,
            "recall": self.recall.to_dict(),
            "honest": self.honest.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> AtPrice:
        rates = {name: Rate.from_dict(stored[name]) for name in ("recall", "honest")}
        return cls(**{**stored, **rates})


def recall_at_price(
    bad: Sequence[float | None], honest: Sequence[float | None], *, seed: int = 0, price: float = PRICE
) -> AtPrice | None:
    """One half of the honest texts chooses the threshold; None where there are too few of them."""
    known = np.array([score for score in honest if score is not None])
    caught = [score for score in bad if score is not None]
    if len(known) < 2 or not caught:
        return None
    order = np.random.default_rng([seed, len(known)]).permutation(len(known))
    chosen, others = known[order[: len(known) // 2]], known[order[len(known) // 2 :]]
    allowed = math.floor(price * len(chosen))
    threshold = float(np.sort(chosen)[::-1][allowed])  # more than this is blocked
    return AtPrice(
        price=price,
        threshold=round(threshold, 6),
        allowed=int((chosen > threshold).sum()),
        chosen_on=len(chosen),
        recall=Rate.of(sum(score > threshold for score in caught), len(caught)),
        honest=Rate.of(int((others > threshold).sum()), len(others)),
    )


def read_lines(path: Path) -> list[TextValue]:
    """Harmless texts that look bad, one a line of a file."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})", "give a text file, one text a line") from error
    found: list[TextValue] = [line.strip() for line in lines if line.strip()]
    if not found:
        raise UserError(f"{path}: holds no text", "give a text file, one text a line")
    return found
