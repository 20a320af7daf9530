"""Constraints that ask a language model or a grammar checker what an edit does to the text.

Both compare whole texts, or the windows around the edit, of the field that may be edited. Against the
`original` they bound what all edits do together; against the `current` text, what each edit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from unfooled.attacks.parts.constraints import NextText, require_window
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking
from unfooled.core.victim import require_choice
from unfooled.resources.fluency import Score

Against = Literal["original", "current"]
Measure = Literal["text", "per-unit", "perplexity"]


class BesideReference:
    """Edited texts are asked about beside the texts that they are compared with."""

    dear: ClassVar[bool] = True
    against: Against
    window: int | None

    def __post_init__(self) -> None:
        require_choice(self.against, Against, "against")
        require_window(self.window)

    @property
    def asks(self) -> tuple[str, ...]:
        raise NotImplementedError

    def told(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[tuple[Any, Any]]]:
        """For each option what the oracle says of the reference, and of the edited text."""
        pairs = _pairs(a, now, options, self.against, self.window)
        found = yield from ask_once(self.asks[0], pairs)
        return [(found[reference], found[edited]) for reference, edited in pairs]


@dataclass(frozen=True)
class Fluency(BesideReference):
    """To a language model the edited text is not much less likely than the text it is compared with.

    `most_loss` is, by `measure`: how far the log-probability of the text may fall (`text`, in nats, so that
    e^most_loss is how many times less likely it may be); how far its mean per word or token may fall
    (`per-unit`: perplexity may rise by the factor e^most_loss); or how far perplexity may rise
    (`perplexity`). `window` counts the words around the edit that are looked at; None takes the whole text.
    An inserted word costs its own probability.
    """

    most_loss: float
    model: str = "trigram"
    measure: Measure = "text"
    against: Against = "original"
    window: int | None = None
    asks = asking("fluency:{self.model}")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.measure, Measure, "measure")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        told = yield from self.told(a, now, options)
        losses = [self._loss(reference, edited) for reference, edited in told]
        return [option for option, loss in zip(options, losses, strict=True) if loss <= self.most_loss]

    def _loss(self, reference: Score, edited: Score) -> float:
        if self.measure == "perplexity":
            loss = edited.perplexity - reference.perplexity
        elif self.measure == "per-unit":
            loss = reference.per_unit - edited.per_unit
        else:
            loss = reference.log_probability - edited.log_probability
        return round(loss, 6)


@dataclass(frozen=True)
class Grammar(BesideReference):
    """A grammar checker finds at most so many mistakes more than in the text it is compared with."""

    most_new_errors: int = 0
    checker: str = "harper"
    against: Against = "original"
    window: int | None = None

    asks = asking("grammar:{self.checker}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        told = yield from self.told(a, now, options)
        more = [edited - reference for reference, edited in told]
        return [option for option, new in zip(options, more, strict=True) if new <= self.most_new_errors]


def ask_once(oracle: str, pairs: Sequence[tuple[str, str]]) -> Program[dict[str, Any]]:
    """What the oracle says of each text, by text."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    return dict(zip(texts, (yield from ask(oracle, texts)), strict=True))


def _pairs(
    a: Attempt, now: Scored, options: Sequence[NextText], against: Against, window: int | None
) -> list[tuple[str, str]]:
    """For each option what it is compared with, and how it would read."""
    if window is None:
        reference = a.original.string if against == "original" else now.text.string
        return [(reference, option.text.string) for option in options]
    return [(_beside(a, now, option, against, window), _window(now, option, window)) for option in options]


def _window(now: Scored, option: NextText, window: int) -> str:
    """The words around the edit. Those of a replaced word stand in the present text, with their offsets."""
    if option.inserted:
        return option.text.window(option.position, window)
    return now.text.window(option.position, window, option.word)


def _beside(a: Attempt, now: Scored, option: NextText, against: Against, window: int) -> str:
    """What stood in the option's window before this edit, or before any: a new word has nothing there."""
    edited = option.text
    first, last = edited.bounds(option.position, window)
    if against == "original":
        kept = [origin for origin in edited.origin[first : last + 1] if origin >= 0]
        return a.original.stretch(kept[0], kept[-1]) if kept else ""
    last -= option.inserted
    return now.text.stretch(first, last) if last >= first else ""
