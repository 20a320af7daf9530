"""The victim's own words as candidates, chosen by its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.class_words import pushed
from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.questions import Pull, mark
from unfooled.core.recipe import require_counts
from unfooled.text import Text


@dataclass(frozen=True)
class OwnWords:
    """The words of the victim's vocabulary that the gradient likes best in a place, as it spells them."""

    most: int = 50
    asks: ClassVar[tuple[str, ...]] = ("flips:each",)
    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def __post_init__(self) -> None:
        require_counts(self, "most")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        label, sign = pushed(a)
        # The same question for each word of a text: asked once.
        (flips,) = yield from ask("flips:each", [Pull(mark(text), label, sign > 0, self.most)])
        return [word for place, word in flips if place == index and word != text.words[index]]
