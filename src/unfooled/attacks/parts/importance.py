"""In which order to attack the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from unfooled.core.attempt import Attempt, Row, Scored
from unfooled.core.program import Program
from unfooled.text import Text

# Probes of a long text are built and asked in portions of about so many characters: memory stays bounded.
PORTION = 200_000
Taken = TypeVar("Taken")


class Importance(Protocol):
    def rank(self, a: Attempt, start: Scored, positions: Sequence[int], /) -> Program[list[int]]:
        """`positions`, the most important first. Equal ones keep their order in the text."""
        ...


@dataclass(frozen=True)
class Deletion:
    """How much the goal's score rises when the word is deleted.

    `flip_gain` adds the gain of the new class where the deletion changes the decision (Jin et al., eq. 2).
    """

    flip_gain: bool = False

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        return (yield from _by_probing(a, start, positions, start.text.delete, self.flip_gain))


@dataclass(frozen=True)
class Masking:
    """How much the goal's score rises when the word becomes a token that the victim does not know."""

    token: str = "[UNK]"
    flip_gain: bool = False

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        def masked(i: int) -> Text:
            return start.text.replace(i, self.token)

        return (yield from _by_probing(a, start, positions, masked, self.flip_gain))


@dataclass(frozen=True)
class RandomOrder:
    """The control for every other order."""

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        return [positions[i] for i in a.rng.permutation(len(positions))]
        yield  # no question is needed, but a program is a generator


@dataclass(frozen=True)
class TemporalScore:
    """DeepWordBug's combined score: what the word adds to the text before it, and to the text after it."""

    tail_weight: float = 1.0

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        text, n = start.text, len(start.text.words)
        heads = yield from _in_portions(a, n, len(text.string), lambda i: text.span(0, i + 1))
        tails = yield from _in_portions(a, n, len(text.string), lambda i: text.span(i, n))
        # The paper's F is the score of the true class; the empty text is taken as undecided.
        undecided = 1.0 / len(start.probs)
        head = [undecided, *(probed.probs[a.label] for probed in heads)]
        tail = [*(probed.probs[a.label] for probed in tails), undecided]
        worth = {i: head[i + 1] - head[i] + self.tail_weight * (tail[i] - tail[i + 1]) for i in positions}
        return sorted(positions, key=lambda i: -round(float(worth[i]), 6))


@dataclass(frozen=True)
class Bisection:
    """How much the score rises without a stretch of words, halved where it rises most: for long texts.

    A stretch without which the score does not rise is left whole. Asks at most about the share `most` of the
    words, `together` stretches at a time. Words of a stretch that was not halved further share its rise; of
    equal ones those come first that stand first.
    """

    most: float = 0.4
    together: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.most <= 1 or self.together < 1:
            raise ValueError("most is a share of the words above 0, together at least 1")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        rises: dict[tuple[int, ...], float] = {}  # of the stretches that are not halved
        left = int(self.most * len(positions))
        halved = [tuple(positions)]
        while halved and left >= 2:
            parts = [part for stretch in halved[: left // 2] for part in _halves(stretch)]
            left -= len(parts)
            made = partial(_without, start.text, parts)
            probed = yield from _in_portions(a, len(parts), len(start.text.string), made)
            for stretch in halved[: len(parts) // 2]:
                rises.pop(stretch, None)
            rises |= {part: answer.score - start.score for part, answer in zip(parts, probed, strict=True)}
            matters = [part for part, rise in rises.items() if len(part) > 1 and round(rise, 6) > 0]
            halved = sorted(matters, key=lambda stretch: -round(rises[stretch], 6))[: self.together]
        worth = {i: rise / len(stretch) for stretch, rise in rises.items() for i in stretch}
        return sorted(positions, key=lambda i: -round(worth.get(i, 0.0), 6))


def _halves(stretch: tuple[int, ...]) -> list[tuple[int, ...]]:
    middle = len(stretch) // 2
    return [part for part in (stretch[:middle], stretch[middle:]) if part]


def _without(text: Text, stretches: Sequence[Sequence[int]], number: int) -> Text:
    for i in reversed(stretches[number]):
        text = text.delete(i)
    return text


def _by_probing(
    a: Attempt, start: Scored, positions: Sequence[int], probe: Callable[[int], Text], flip_gain: bool
) -> Program[list[int]]:
    found = yield from probe_each(a, start, positions, probe)
    worth: dict[int, float] = {}
    for i, probed in zip(positions, found, strict=True):
        worth[i] = probed.score - start.score
        if flip_gain and (new := int(probed.probs.argmax())) != a.label:
            worth[i] += float(probed.probs[new] - start.probs[new])
    return sorted(positions, key=lambda i: -round(worth[i], 6))


class Probed(NamedTuple):
    """What the victim says of a probe. The text itself is not kept: there are as many as words."""

    probs: Row
    score: float


def probe_each(
    a: Attempt, start: Scored, positions: Sequence[int], probe: Callable[[int], Text]
) -> Program[list[Probed]]:
    """What the victim says of the text that `probe` makes of each position."""
    return (yield from _in_portions(a, len(positions), len(start.text.string), lambda n: probe(positions[n])))


def _in_portions(a: Attempt, n: int, length: int, probe: Callable[[int], Text]) -> Program[list[Probed]]:
    """What the victim says of `probe(0)` to `probe(n - 1)`, few long texts at a time."""
    return (yield from in_portions(a, n, length, probe, _told, probe=True))


def _told(scored: Scored) -> Probed:
    return Probed(scored.probs, scored.score)


def in_portions(
    a: Attempt,
    n: int,
    length: int,
    make: Callable[[int], Text],
    take: Callable[[Scored], Taken],
    *,
    probe: bool = False,
) -> Program[list[Taken]]:
    """What `take` keeps of the scores of `make(0)` to `make(n - 1)`, few long texts at a time."""
    found: list[Taken] = []
    size = max(1, PORTION // max(1, length))
    for first in range(0, n, size):
        texts = [make(i) for i in range(first, min(n, first + size))]
        found += map(take, (yield from a.score(texts, probe=probe)))
    return found
