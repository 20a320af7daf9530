"""What attacks by decisions alone have in common: candidates, a start that flips the label, putting words
back.

    survey   which words may stand in each place; found once, on the original
    start    random words until the label flips: success is decided here
    reduce   original words are put back, those first that restore most similarity, while the label stays
             flipped
    refine   what each attack does with the rest of its queries: a more similar text that still flips

Similarity is that of a sentence encoder over the whole text and costs no query; it goes with every text
asked, so that the attempt keeps the most similar flip whenever the budget ends, and the curve on the way
there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unfooled.attacks.parts.belief import Floats
from unfooled.attacks.parts.candidates import Candidates, Neighbours, drawn
from unfooled.attacks.parts.constraints import Constraint, SamePartOfSpeech, on_scale
from unfooled.attacks.parts.limits import MinLetters, OnlyTags
from unfooled.attacks.parts.together import swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask, gather
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text

CONTENT_WORDS = (MinLetters(3), OnlyTags(), SamePartOfSpeech())
NEAREST = Neighbours(most=50, min_cosine=-1.0)
MOST_STARTS = 2500  # draws of all words at once, before a text is given up
MOST_STALE = 50


class Ground:
    """One example under attack by decisions: which words may stand where, and how similar a text is."""

    def __init__(self, a: Attempt, words: Mapping[int, Sequence[str]], encoder: str) -> None:
        self.a = a
        self.original = a.original
        self.words = {place: tuple(options) for place, options in words.items() if options}
        self.places = list(self.words)
        self.asked: list[Scored] = []
        self._encoder = encoder

    def changed(self, text: Text) -> list[int]:
        """Places whose word is not the original one."""
        return [place for place in self.places if text.words[place] != self.original.words[place]]

    def back(self, text: Text, *places: int) -> Text:
        """With the original words in these places."""
        for place in places:
            text = text.replace(place, self.original.words[place])
        return text

    def drawn(self, places: Iterable[int]) -> Text:
        """The original with a drawn candidate in each of the places."""
        text = self.original
        for place in places:
            text = text.replace(place, drawn(self.words[place], self.a.rng))
        return text

    def similarities(self, texts: Sequence[Text]) -> Program[list[float]]:
        """The cosine of each text with the original; the victim is not asked."""
        if not texts:
            return []
        strings = [self.original.string, *(text.string for text in texts)]
        vectors = np.array((yield from ask(f"encode:{self._encoder}", strings)), dtype=np.float64)
        return on_scale(vectors[1:] @ vectors[0], "cosine")

    def ask(self, texts: Sequence[Text]) -> Program[list[Scored]]:
        """What the victim decides, with the similarity of each text."""
        similarities = yield from self.similarities(texts)
        found = yield from self.a.score(texts, similarities)
        self.asked += found
        return found

    def flips(self, text: Text) -> Program[Scored | None]:
        """The text with its similarity if it flips the label, else None."""
        (scored,) = yield from self.ask([text])
        return scored if scored.success else None


@dataclass(frozen=True, kw_only=True)
class HardLabel(ABC):
    """A search that reads decisions only; `refine` is what attacks differ in.

    `encoder` measures the similarity that is raised. All candidates are found once, in the original's
    context.
    """

    candidates: Candidates = NEAREST
    constraints: tuple[Constraint, ...] = CONTENT_WORDS
    encoder: str = "minilm"

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"encode:{self.encoder}",)

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        a.curve = []
        ground = yield from self.survey(a, start)
        try:
            if ground.places:
                yield from self.find(ground)
        except BudgetExhaustedError as spent:
            a.note = str(spent)
        return a.best if a.best is not None and a.best.success else start

    def survey(self, a: Attempt, start: Scored) -> Program[Ground]:
        """The words that may stand in each place."""
        options = swapping(a, self.candidates, self.constraints)
        found = yield from gather([options(start, place) for place in range(len(start.text.words))])
        words = {place: [option.word for option in each] for place, each in enumerate(found)}
        return Ground(a, words, self.encoder)

    def find(self, ground: Ground) -> Program[None]:
        """Start, put words back, refine. Whatever it asks about may become the result."""
        flipped = yield from random_start(ground)
        if flipped is not None:
            reduced = yield from reduce(ground, flipped)
            yield from self.refine(ground, reduced)

    @abstractmethod
    def refine(self, ground: Ground, now: Scored, /) -> Program[None]:
        """Look for more similar texts, from one that flips."""


@dataclass(frozen=True, kw_only=True)
class HardLabelVectors(HardLabel):
    """One that reads word vectors too, those of `table`."""

    table: str = "counter-fitted"

    @property
    def asks(self) -> tuple[str, ...]:
        return (*super().asks, f"vectors:{self.table}")


def random_start(ground: Ground) -> Program[Scored | None]:
    """Drawn words in one place, in two, in three, places in a drawn order; then in all, again and again."""
    return (yield from draw_until_flip(ground, range(1, len(ground.places))))


def draw_until_flip(ground: Ground, counts: Iterable[int]) -> Program[Scored | None]:
    """Drawn words in so many places, places in a drawn order; then in all, until the label flips.

    None after 2,500 draws of all, or 50 in a row that were asked about before: a short text has few.
    """
    order = [ground.places[place] for place in ground.a.rng.permutation(len(ground.places))]
    stale = 0
    for count in [*counts, *[len(order)] * MOST_STARTS]:
        before = ground.a.queries
        flipped = yield from ground.flips(ground.drawn(order[:count]))
        stale = stale + 1 if ground.a.queries == before else 0
        if flipped is not None or stale == MOST_STALE:
            return flipped
    return None


def reduce(ground: Ground, now: Scored) -> Program[Scored]:
    """Puts original words back until no single one can be without losing the flip.

    Each round asks about every changed word alone, all together, then puts back those that could be, the most
    similar first, as far as the label stays flipped.
    """
    while len(changed := ground.changed(now.text)) > 1:
        probes = yield from ground.ask([ground.back(now.text, place) for place in changed])
        spare = [
            (-(probe.similarity or 0.0), place)
            for probe, place in zip(probes, changed, strict=True)
            if probe.success
        ]
        if not spare:
            break
        for _, place in sorted(spare):
            shorter = yield from ground.flips(ground.back(now.text, place))
            if shorter is None:
                break
            now = shorter
    return now


def more_similar(ground: Ground, now: Scored, place: int) -> Program[Scored | None]:
    """The most similar text that differs in this place alone, its original word included, and keeps the flip.

    Asks the most similar first and stops at the first flip; None where no more similar one flips.
    """
    present, original = now.text.words[place], ground.original.words[place]
    words = dict.fromkeys([original, *ground.words[place]])
    texts = [now.text.replace(place, word) for word in words if word != present]
    similarities = yield from ground.similarities(texts)
    nearer = sorted(
        ((-value, number) for number, value in enumerate(similarities) if value > (now.similarity or 0.0))
    )
    for _, number in nearer:
        if texts[number] == ground.original:
            continue
        flipped = yield from ground.flips(texts[number])
        if flipped is not None:
            return flipped
    return None


def word_vectors(ground: Ground, table: str) -> Program[dict[str, Floats]]:
    """The vector of every word that stands or may stand in a place, as it is written, where it has one."""
    words = dict.fromkeys(
        word for place in ground.places for word in (ground.original.words[place], *ground.words[place])
    )
    found = yield from ask(f"vectors:{table}", [word.lower() for word in words])
    return {
        word: np.asarray(vector, dtype=np.float64)
        for word, vector in zip(words, found, strict=True)
        if vector is not None
    }
