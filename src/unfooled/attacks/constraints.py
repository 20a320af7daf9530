"""What an edit must respect. A constraint sees all options for one word and returns those it allows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.text import Text

Scale = Literal["cosine", "angular", "arccos"]


class Option(NamedTuple):
    """A possible next text: `text` differs from the present one at `position` only."""

    text: Text
    position: int
    similarity: float | None = None

    @property
    def word(self) -> str:
        return self.text.words[self.position]


class Constraint(Protocol):
    def allow(self, a: Attempt, now: Scored, options: Sequence[Option], /) -> Program[list[Option]]: ...


@dataclass(frozen=True)
class SamePartOfSpeech:
    """The replacement's part of speech, in its context, is that of the word it replaces.

    The context is the original text's: `before` and `after` say how many words of it the tagger sees.
    `first_equal` reads the tag of the first equal word of that context instead, which is TextAttack's way.
    """

    tagger: str = "perceptron-tagger"
    before: int = 4
    after: int = 4
    noun_for_verb: bool = True
    first_equal: bool = False

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"tag:{self.tagger}",)

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        if not options:
            return []
        words = a.original.words
        index = now.text.origin[options[0].position]
        first = max(0, index - self.before)
        context = words[first : index + self.after + 1]
        place = index - first
        choices = (words[index], *(option.word for option in options))
        items: list[Hashable] = [(context, place, choices[1:])]
        earlier = {}
        if self.first_equal:
            # An equal word before the edited place: ask for that word's tag in the edited context.
            for i, word in enumerate(choices):
                if word in context[:place]:
                    earlier[i] = len(items)
                    items.append(((*context[:place], word, *context[place + 1 :]), context.index(word), ()))
        answers = yield from ask(f"tag:{self.tagger}", items)
        own, *tags = (answers[earlier[i]][0] if i in earlier else tag for i, tag in enumerate(answers[0]))
        return [option for option, tag in zip(options, tags, strict=True) if self._fits(own, tag)]

    def _fits(self, own: str, other: str) -> bool:
        return own == other or (self.noun_for_verb and {own, other} == {"NOUN", "VERB"})


@dataclass(frozen=True)
class SentenceSimilarity:
    """A sentence encoder sees little difference in a window of words around the edit.

    Scales: `cosine`; `angular` = 1 - arccos(cosine)/pi; `arccos` = 1 - arccos(cosine), the TextFooler code's.
    A threshold belongs to one encoder and one scale: `published_for` names the encoder it was chosen for.
    Texts shorter than the window are held to `short_threshold`; None lets them pass unmeasured.
    """

    threshold: float
    scale: Scale
    encoder: str = "minilm"
    window: int = 15
    against: Literal["current", "original"] = "current"
    short_threshold: float | None = None
    published_for: str = "universal-sentence-encoder"

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"scale is one of {', '.join(get_args(Scale))}")
        if self.window < 1:
            raise ValueError("window is at least 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"encode:{self.encoder}",)

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        if not options:
            return []
        index = options[0].position
        short = len(now.text.words) < self.window
        if short and self.short_threshold is None:
            return list(options)
        reference, place = now.text, index
        if self.against == "original":
            reference, place = a.original, now.text.origin[index]
        windows = [reference.window(place, self.window)]
        windows += [now.text.window(index, self.window, option.word) for option in options]
        vectors = np.array((yield from ask(f"encode:{self.encoder}", windows)))
        needed = self.short_threshold if short and self.short_threshold is not None else self.threshold
        values = on_scale(vectors[1:] @ vectors[0], self.scale)
        return [
            option._replace(similarity=value)
            for option, value in zip(options, values, strict=True)
            if value >= needed
        ]


def on_scale(cosines: np.ndarray, scale: Scale) -> list[float]:
    """Cosines as similarities on the named scale, rounded so that batches cannot tip a comparison."""
    clipped = np.clip(cosines.astype(np.float64), -1.0, 1.0)
    if scale == "angular":
        clipped = 1.0 - np.arccos(clipped) / math.pi
    elif scale == "arccos":
        clipped = 1.0 - np.arccos(clipped)
    values: list[float] = np.round(clipped, 6).tolist()
    return values


@dataclass(frozen=True)
class MaxCharacterEdits:
    """The edited words are together at most `most` character edits away from the original ones."""

    most: int = 30

    def allow(self, a: Attempt, now: Scored, options: Sequence[Option]) -> Program[list[Option]]:
        spent = sum(edit_distance(edit.before, edit.after) for edit in now.text.edits())
        return [
            option
            for option in options
            if spent + edit_distance(now.text.words[option.position], option.word) <= self.most
        ]
        yield  # no question is needed, but a program is a generator


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance of two words. What they share at both ends costs nothing to compare."""
    start = _shared(a, b)
    a, b = a[start:], b[start:]
    end = _shared(a[::-1], b[::-1])
    a, b = a[: len(a) - end], b[: len(b) - end]
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def _shared(a: str, b: str) -> int:
    """How many characters two words have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
