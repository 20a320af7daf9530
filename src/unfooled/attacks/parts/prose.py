"""A language model reads a text as prose, with an edit and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.english import ALIKE_ASKS, alike_words
from unfooled.attacks.parts.fluency import ask_once
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.data.language import ENGLISH
from unfooled.language.typesetting import typeset
from unfooled.text import Text


@dataclass(frozen=True)
class ReadsOn:
    """To a language model that reads the text as prose an edit makes it hardly less likely.

    `Fluency` shows the model a text as the data has it, from its first word on. To a model that expects
    prose, spaces before commas and a beginning out of nowhere are most of the surprise, and what a word does
    to its sentence drowns in it. Here texts are set as usual and stand behind an `opening`. The whole text's
    log-probability may fall by `most_loss` nats where `Interchangeable` knows the new word for the old, by
    `unlisted` where it does not: what is only near may be another sense, and a slight surprise tells.
    """

    language: ClassVar[str] = ENGLISH
    most_loss: float = 4.5
    unlisted: float = 3.0
    model: str = "smollm2"
    opening: str = "Text: "

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"fluency:{self.model}", *ALIKE_ASKS)

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        if not options:
            return []
        alike = yield from alike_words(now, options[0].position)
        pairs = [(self._prose(now.text), self._prose(option.text)) for option in options]
        found = yield from ask_once(self.asks[0], pairs)
        losses = [found[before].log_probability - found[after].log_probability for before, after in pairs]
        return [
            option
            for option, loss in zip(options, losses, strict=True)
            if round(loss, 6) <= (self.most_loss if option.word.lower() in alike else self.unlisted)
        ]

    def _prose(self, text: Text) -> str:
        return self.opening + typeset(text.string)
