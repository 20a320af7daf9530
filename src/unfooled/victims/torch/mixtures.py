"""Oracles that say, by the gradient, what other words would change: single flips, signs, blends of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import Along, Flip, Marked, Mixed, Mixture, Numbers, Pull, WordVectors
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import DECIMALS
from unfooled.victims.torch.oracles import BATCH, steady
from unfooled.victims.torch.word_oracles import highest, signs, with_method

_ROWS = 32  # places whose gains for all words are held at a time


class _OwnWords:
    """Gradients of texts, beside the vectors of the victim's own words."""

    def __init__(self, victim: Victim) -> None:
        self._victim = with_method(victim, "gradients", "gives no gradients", "gradients")
        with_method(victim, "embeddings", "shows no word vectors")
        with_method(victim, "vocabulary_vectors", "does not say which words it knows")
        self._table: Numbers | None = None
        self._words: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}

    def _slopes(self, texts: Sequence[Marked], labels: Sequence[int]) -> list[tuple[WordVectors, Numbers]]:
        """The loss gradient at each marked word of each text, and the words' own vectors."""
        if self._table is None:
            self._words, self._table = self._victim.vocabulary_vectors()
            self._numbers = {word: number for number, word in enumerate(self._words)}
        slopes = self._victim.gradients(texts, labels, of="loss")
        return list(zip(slopes, (answer.input for answer in self._victim.embeddings(texts)), strict=True))


class FlipOracle(_OwnWords):
    """`Pull` → the `Flip`s with the highest estimated gain, the best first, over the victim's own words.

    A flip's gain is the loss gradient at its place times the difference of the two words' vectors. Words that
    the victim does not read have none. Equal gains come in the order of the text, then of the vocabulary.
    With `each` it gives so many flips of every place, place by place.
    """

    batch_size = BATCH

    def __init__(self, victim: Victim, *, each: bool = False) -> None:
        super().__init__(victim)
        self._each = each
        self.cacheable = each  # else the text changes with every step

    def __call__(self, items: Sequence[Any], /) -> list[tuple[Flip, ...]]:
        asked = [Pull(*item) for item in items]
        slopes = self._slopes([item.text for item in asked], [item.label for item in asked])
        return [self._best(item, *row) for item, row in zip(asked, slopes, strict=True)]

    def _best(self, item: Pull, slopes: WordVectors, own: Numbers) -> tuple[Flip, ...]:
        assert self._table is not None
        gradient = steady(slopes.vectors) * np.float32(-1 if item.up else 1)  # more loss, less of the class
        words = item.text.words
        found: list[tuple[float, Flip]] = []
        read = np.flatnonzero(slopes.pieces)
        for first in range(0, len(read), _ROWS):
            places = read[first : first + _ROWS]
            part = gradient[places]
            gains = steady(part @ self._table.T - (part * own[places]).sum(axis=1, keepdims=True))
            for row, place in zip(gains, places.tolist(), strict=True):
                if (itself := self._numbers.get(words[place].lower())) is not None:
                    row[itself] = -np.inf
                best = highest(row[None].copy(), item.most)[0]
                found += [(float(row[at]), Flip(place, self._words[at])) for at in best if row[at] > -np.inf]
        if not self._each:
            found = sorted(found, key=lambda pair: -pair[0])[: item.most]
        return tuple(flip for _, flip in found)


class SignOracle(_OwnWords):
    """`Along` → the L1 distance of the signs for each word; None for what the victim knows no vector of."""

    batch_size = BATCH
    cacheable = False  # the text changes with every step

    def __call__(self, items: Sequence[Any], /) -> list[tuple[int | None, ...]]:
        asked = [Along(*item) for item in items]
        slopes = self._slopes([item.text for item in asked], [item.label for item in asked])
        return [self._distances(item, *row) for item, row in zip(asked, slopes, strict=True)]

    def _distances(self, item: Along, slopes: WordVectors, own: Numbers) -> tuple[int | None, ...]:
        assert self._table is not None
        (way,) = signs(slopes.vectors) * np.float32(-1 if item.up else 1)  # more loss, less of the class
        numbers = [self._numbers.get(word, self._numbers.get(word.lower())) for word in item.words]
        steps = {at: np.sign(self._table[at] - own[0]) for at in numbers if at is not None}
        distances = {at: int(np.abs(step - way).sum()) for at, step in steps.items()}
        return tuple(None if at is None else distances[at] for at in numbers)


class MixtureOracle:
    """`Mixture` → `Mixed`."""

    batch_size = BATCH
    cacheable = False  # asked once: the weights change with every step

    def __init__(self, victim: Victim) -> None:
        self._victim = with_method(victim, "mixed", "takes no blends of word vectors", "gradients")

    def __call__(self, items: Sequence[Any], /) -> list[Mixed]:
        return [
            Mixed(round(answer.margin, DECIMALS), tuple(map(steady, answer.slopes)))
            for answer in self._victim.mixed([Mixture(*item) for item in items])
        ]


def open_flips(victim: Victim, how: str) -> FlipOracle:
    """`flips`, or `flips:each` for those of every place."""
    return FlipOracle(victim, each=how == "each")


def open_signs(victim: Victim, _: str) -> SignOracle:
    return SignOracle(victim)


def open_mixture(victim: Victim, _: str) -> MixtureOracle:
    return MixtureOracle(victim)
