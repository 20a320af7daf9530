"""The victim's own words as candidates, chosen by its gradient."""

from __future__ import annotations

from dataclasses import dataclass

from unfooled.attacks.parts.class_words import pushed
from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.questions import Pull, mark
from unfooled.text import Text


@dataclass(frozen=True)
class OwnWords:
    """The words of the victim's vocabulary that the gradient likes best in a place, as it spells them."""

    most: int = 50

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError("most is at least 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return ("flips:each",)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gradients",)

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        label, sign = pushed(a)
        # The same question for each word of a text: asked once.
        (flips,) = yield from ask("flips:each", [Pull(mark(text), label, sign > 0, self.most)])
        return [word for place, word in flips if place == index and word != text.words[index]]
