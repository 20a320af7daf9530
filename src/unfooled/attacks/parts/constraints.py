"""What an edit must respect. A constraint sees all options for one word, those that replace it and those that
put a new word beside it, and returns the ones it allows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking
from unfooled.core.victim import require_choice
from unfooled.text import Text

Scale = Literal["cosine", "angular", "arccos"]
# Encoders of ours that stand in for a published one.
_NEAREST = {"use": "universal-sentence-encoder"}


class NextText(NamedTuple):
    """A possible next text: `text` differs from the present one by its word at `position` only, which
    replaces another, where it is `inserted` is new, and where it is `merged` replaces two."""

    text: Text
    position: int
    similarity: float | None = None
    inserted: bool = False
    merged: bool = False

    @property
    def word(self) -> str:
        return self.text.words[self.position]


class Constraint(Protocol):
    """One that runs a model and judges each option by itself says so with `dear = True`: where the victim is
    cheaper, it may be asked after it (`victim_first.py`)."""

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText], /) -> Program[list[NextText]]: ...


@dataclass(frozen=True)
class SamePartOfSpeech:
    """The replacement's part of speech, in its context, is that of the word it replaces.

    The context is the original text's: `before` and `after` say how many words of it the tagger sees.
    `first_equal` reads the tag of the first equal word of that context instead, which is TextAttack's way.
    An inserted word replaces none and passes.
    """

    tagger: str = "perceptron-tagger"
    before: int = 4
    after: int = 4
    noun_for_verb: bool = True
    first_equal: bool = False

    asks = asking("tag:{self.tagger}")

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        swaps = [option for option in options if not option.inserted]
        if not swaps:
            return list(options)
        words = a.original.words
        index = now.text.origin[swaps[0].position]
        first = max(0, index - self.before)
        context = words[first : index + self.after + 1]
        place = index - first
        choices = (words[index], *(option.word for option in swaps))
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
        fits = (self._fits(own, tag) for tag in tags)
        return [option for option in options if option.inserted or next(fits)]

    def _fits(self, own: str, other: str) -> bool:
        return own == other or (self.noun_for_verb and {own, other} == {"NOUN", "VERB"})


@dataclass(frozen=True)
class SentenceSimilarity:
    """A sentence encoder sees little difference in a window of words around the edit.

    Scales: `cosine`; `angular` = 1 - arccos(cosine)/pi; `arccos` = 1 - arccos(cosine), the TextFooler code's.
    A threshold belongs to one encoder and one scale: `published_for` names the encoder it was chosen for.
    Texts shorter than the window are held to `short_threshold`; None lets them pass unmeasured.
    The window is that of the edited text. An inserted word's is compared with the same stretch before the
    insertion, that of two merged words with theirs; against the original, with the window of the original
    word beside it. No `window` means the whole text, 0 the text from its first word to its last, which is
    how TextAttack reads it: without the full stop.
    """

    dear: ClassVar[bool] = True
    threshold: float
    scale: Scale
    encoder: str = "minilm"
    window: int | None = 15
    against: Literal["current", "original"] = "current"
    short_threshold: float | None = None
    published_for: str = "universal-sentence-encoder"
    asks = asking("encode:{self.encoder}")

    def __post_init__(self) -> None:
        require_choice(self.scale, Scale, "scale")
        if self.window != 0:
            require_window(self.window)

    def settle(self) -> tuple[SentenceSimilarity, str]:
        """Changes nothing; says so where the threshold was chosen for another encoder."""
        if self.published_for in (self.encoder, _NEAREST.get(self.encoder)):
            return self, ""
        return self, (
            f"similarity of at least {self.threshold:g} ({self.scale}) was chosen for {self.published_for} "
            f"and is measured with {self.encoder}: it means something else there (see `unfooled calibrate`)"
        )

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        if not options:
            return []
        short = self.window is not None and len(now.text.words) < self.window
        if short and self.short_threshold is None:
            return list(options)
        places: dict[tuple[int, bool, bool], list[int]] = {}
        for number, option in enumerate(options):
            places.setdefault((option.position, option.inserted, option.merged), []).append(number)
        texts = [""] * len(options)
        for members in places.values():
            reference, before, after = self._frame(a, now, options[members[0]])
            texts.append(reference)
            for number in members:
                texts[number] = before + options[number].word + after
        # In double precision: near 1 the scales with an arccos blow up the last digits of a cosine.
        vectors = np.array((yield from ask(f"encode:{self.encoder}", texts)), dtype=np.float64)
        needed = self.short_threshold if short and self.short_threshold is not None else self.threshold
        values = [0.0] * len(options)
        for members, reference_vector in zip(places.values(), vectors[len(options) :], strict=True):
            found = on_scale(vectors[members] @ reference_vector, self.scale)
            for number, value in zip(members, found, strict=True):
                values[number] = value
        return [
            option._replace(similarity=value)
            for option, value in zip(options, values, strict=True)
            if value >= needed
        ]

    def _frame(self, a: Attempt, now: Scored, option: NextText) -> tuple[str, str, str]:
        """What the option's window is compared with, and the window before and after the option's word."""
        # A replaced word's window has the same frame in both texts, and `now` has its offsets at hand.
        moves = option.inserted or option.merged
        edited, index = option.text if moves else now.text, option.position
        before, after = edited.frame(index, self.window)
        if self.against == "original":
            known = [*edited.origin[index:], *edited.origin[index::-1]]
            place = next((origin for origin in known if origin >= 0), 0)
            return a.original.window(place, self.window), before, after
        if not moves:
            return before + now.text.words[index] + after, before, after
        if self.window is None:
            return now.text.string, before, after
        first, last = edited.bounds(index, self.window)
        if option.merged:
            return now.text.stretch(first, last + 1), before, after
        return now.text.stretch(first, last - 1) if last > first else "", before, after


def require_window(words: int | None) -> None:
    if words is not None and words < 1:
        raise ValueError("window is at least 1")


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

    def allow(self, a: Attempt, now: Scored, options: Sequence[NextText]) -> Program[list[NextText]]:
        spent = sum(edit_distance(edit.before, edit.after) for edit in now.text.edits())
        return [
            option
            for option in options
            if spent + edit_distance("" if option.inserted else now.text.words[option.position], option.word)
            <= self.most
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
