"""How much of each text a model that cuts never saw. An attack cannot change a decision there, and a text of
which the model reads little is not the text that a person reads."""

from __future__ import annotations

from collections.abc import Sequence
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

    @classmethod
    def of_texts(cls, cut: Sequence[CutText], of: int) -> Unread:
        shares = [text.share for text in cut]
        worst = nsmallest(_LISTED, cut, key=lambda text: (-text.share, text.key))
        return cls(len(cut), of, sum(shares) / len(shares), max(shares), tuple(worst))

    def __str__(self) -> str:
        return (
            f"{self.texts} of {self.of} texts are longer than the model reads: "
            f"it never saw {self.mean:.0%} of them on average, {self.most:.0%} at most"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"texts": self.texts, "mean": self.mean, "most": self.most}
