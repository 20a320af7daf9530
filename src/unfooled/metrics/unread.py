"""How much of each text a model that cuts never saw. An attack cannot change a decision there, and a text of
which the model reads little is not the text that a person reads."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

_LISTED = 200  # texts on the page; the others are in the mean


class CutText(NamedTuple):
    """`share` is that of its tokens behind the cut, before the attack."""

    key: int
    words: int
    share: float


@dataclass(frozen=True, slots=True)
class Unread:
    """Of the texts that were cut: how many, what share of them was not read, and those with the largest."""

    texts: int
    of: int
    mean: float
    most: float
    listed: tuple[CutText, ...]

    def __str__(self) -> str:
        return (
            f"{self.texts} of {self.of} texts are longer than the model reads: "
            f"it never saw {self.mean:.0%} of them on average, {self.most:.0%} at most"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"texts": self.texts, "mean": self.mean, "most": self.most}


class CutTexts:
    """Those of a run, one after the other; only the worst are kept."""

    def __init__(self) -> None:
        self._texts = 0
        self._sum = 0.0
        self._worst: list[CutText] = []

    def add(self, text: CutText) -> None:
        self._texts += 1
        self._sum += text.share
        self._worst.append(text)
        if len(self._worst) >= 2 * _LISTED:
            self._worst = self._listed()

    def unread(self, of: int) -> Unread | None:
        """What they say of so many texts; None where none was cut."""
        if not self._texts:
            return None
        listed = self._listed()
        return Unread(self._texts, of, self._sum / self._texts, listed[0].share, tuple(listed))

    def _listed(self) -> list[CutText]:
        return nsmallest(_LISTED, self._worst, key=lambda text: (-text.share, text.key))
