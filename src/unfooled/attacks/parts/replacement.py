"""What a one-word attack puts in the place of the chosen word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.importance import PORTION
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import OWN, Pool
from unfooled.core.recipe import require_counts
from unfooled.core.victim import require_choice
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text

# Words are tried in portions that grow: early successes stay cheap, a whole vocabulary stays batched.
FIRST, LARGEST = 32, 512
_NEAREST = Neighbours(most=8)


class Replacement(Protocol):
    def replace(self, a: Attempt, start: Scored, index: int, /) -> Program[Scored]:
        """A text that reaches the goal with another word at `index`; else the best that was found."""
        ...


@dataclass(frozen=True, kw_only=True)
class FromVocabulary:
    """Words of the victim's own `vocabulary` ("victim"), or of a file, one per line; the first `size`."""

    vocabulary: str = OWN
    size: int | None = 10_000

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError("size is at least 1, or none for all words")

    @property
    def asks(self) -> tuple[str, ...]:
        return (self._oracle,)

    @property
    def _oracle(self) -> str:
        return f"vocabulary:{self.size or 'all'}:{self.vocabulary}"

    @property
    def reads(self) -> Mapping[str, str]:
        return {} if self.vocabulary == OWN else {self.vocabulary: "write a file of one word per line"}

    def words(self) -> Program[tuple[str, ...]]:
        (words,) = yield from ask(self._oracle, ["words"])
        found: tuple[str, ...] = words
        return found


@dataclass(frozen=True, kw_only=True)
class RandomWords(FromVocabulary):
    """Words of a vocabulary in random order until one succeeds or none is left."""

    def replace(self, a: Attempt, start: Scored, index: int) -> Program[Scored]:
        words = yield from self.words()
        order = a.rng.permutation(len(words)).tolist()
        best = start
        for texts in _variants(start.text, index, words, order):
            scored = yield from _affordable(a, texts)
            if won := next((candidate for candidate in scored if candidate.success), None):
                return won
            best = max([best, *scored], key=lambda candidate: candidate.score)
            _require_all(a, scored, texts)
        return best


@dataclass(frozen=True, kw_only=True)
class ClosestWord(FromVocabulary):
    """Of all words that succeed, the one that moves the sentence's embedding least (L1).

    `encoder` is `victim` for its own sentence embedding (`pool`: `head` is what its last layer reads, `mean`
    its last hidden states averaged), or the name of a sentence encoder.
    """

    encoder: str = OWN
    pool: str = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.pool, Pool, "pool")

    @property
    def asks(self) -> tuple[str, ...]:
        own = self.encoder == OWN
        return (self._oracle, f"sentence-distance:{self.pool}" if own else f"encode:{self.encoder}")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("embeddings",) if self.encoder == OWN else ()

    def replace(self, a: Attempt, start: Scored, index: int) -> Program[Scored]:
        words = yield from self.words()
        won: list[Scored] = []
        best = start
        try:
            for texts in _variants(start.text, index, words, range(len(words))):
                scored = yield from _affordable(a, texts)
                won += [candidate for candidate in scored if candidate.success]
                best = max([best, *scored], key=lambda candidate: candidate.score)
                _require_all(a, scored, texts)
        except BudgetExhaustedError:
            if not won:
                raise
        if not won:
            return best
        distances: list[float] = []
        for first in range(0, len(won), LARGEST):
            distances += yield from self._distances(start.text, won[first : first + LARGEST])
        least = min(distances)
        a.facts["distance"] = least
        return won[distances.index(least)]

    def _distances(self, before: Text, after: Sequence[Scored]) -> Program[list[float]]:
        if self.encoder == OWN:
            items = [(before.value, candidate.text.value) for candidate in after]
            return (yield from ask(f"sentence-distance:{self.pool}", items))
        strings = [before.string, *(candidate.text.string for candidate in after)]
        vectors = np.array((yield from ask(f"encode:{self.encoder}", strings)), dtype=np.float64)
        gaps: list[float] = np.round(np.abs(vectors[1:] - vectors[0]).sum(axis=1), 6).tolist()
        return gaps


@dataclass(frozen=True, kw_only=True)
class ListedWords:
    """Each synonym of a list, the nearest first; the first that succeeds is taken."""

    candidates: Candidates = _NEAREST

    def replace(self, a: Attempt, start: Scored, index: int) -> Program[Scored]:
        words = yield from self.candidates.propose(a, start.text, index)
        scored = yield from a.score([start.text.replace(index, word) for word in words])
        won = next((candidate for candidate in scored if candidate.success), None)
        return won or max([start, *scored], key=lambda candidate: candidate.score)


@dataclass(frozen=True, kw_only=True)
class RandomDraws(FromVocabulary):
    """RANDOM: any word becomes any word of the vocabulary; how often that works is estimated at one go.

    `draws` pairs of a position and a word are drawn per example and put to the victim in a few large asks.
    The first draw is the attack: it decides the outcome. All of them together estimate how likely such an
    attack succeeds on this example; `draws` and `draws_won` go into the result's facts, and the summary
    shows their mean over the examples with its interval.
    """

    draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "draws")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        words = yield from self.words()
        text = start.text
        places = a.rng.integers(len(text.words), size=self.draws).tolist()
        drawn = a.rng.integers(len(words), size=self.draws).tolist()
        first: Scored | None = None
        made = won = 0
        try:
            for begin, end in _portions(self.draws, len(text.string)):
                pairs = zip(places[begin:end], drawn[begin:end], strict=True)
                texts = [text.replace(i, _other(words, n, text.words[i])) for i, n in pairs]
                scored = yield from _affordable(a, texts)
                first = first or scored[0]
                made += len(scored)
                won += sum(candidate.success for candidate in scored)
                _require_all(a, scored, texts)
        except BudgetExhaustedError:
            if first is None:
                raise
        assert first is not None
        a.facts |= {"draws": made, "draws_won": won}
        a.note = f"{won:,} of {made:,} draws succeed"
        return first


def _other(words: Sequence[str], number: int, word: str) -> str:
    """The word of that number, or the next one where it is the word that stands there."""
    return words[number] if words[number] != word else words[(number + 1) % len(words)]


def _variants(text: Text, index: int, words: Sequence[str], order: Sequence[int]) -> Iterator[list[Text]]:
    """The text with each word at `index`, in portions; what stands there already is left out."""
    own = text.words[index]
    others = [words[place] for place in order if words[place] != own]
    for begin, end in _portions(len(others), len(text.string)):
        yield [text.replace(index, word) for word in others[begin:end]]


def _portions(count: int, length: int) -> Iterator[tuple[int, int]]:
    """Stretches of doubling size, with a bound on the characters of texts of this length."""
    begin, size = 0, FIRST
    most = max(FIRST, min(LARGEST, PORTION // max(1, length)))
    while begin < count:
        yield begin, min(count, begin + size)
        begin += size
        size = min(most, 2 * size)


def _affordable(a: Attempt, texts: Sequence[Text]) -> Program[list[Scored]]:
    """Scores of those that the budget pays for: a search may still use them before it ends."""
    room = a.room
    return (yield from a.score(texts if room is None else texts[: max(1, room)]))


def _require_all(a: Attempt, scored: Sequence[Scored], texts: Sequence[Text]) -> None:
    if len(scored) < len(texts):
        raise a.spent()
