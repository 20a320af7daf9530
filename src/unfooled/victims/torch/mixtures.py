"""Oracles that say, by the gradient, what other words would change: single flips, and blends of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import Flip, Mixed, Mixture, Numbers, Pull, WordVectors
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import DECIMALS
from unfooled.victims.torch.oracles import BATCH, steady
from unfooled.victims.torch.word_oracles import highest, with_method

_ROWS = 32  # places whose gains for all words are held at a time


class FlipOracle:
    """`Pull` → the `Flip`s with the highest estimated gain, the best first, over the victim's own words.

    A flip's gain is the loss gradient at its place times the difference of the two words' vectors. Words that
    the victim does not read have none. Equal gains come in the order of the text, then of the vocabulary.
    With `each` it gives so many flips of every place, place by place.
    """

    batch_size = BATCH

    def __init__(self, victim: Victim, *, each: bool = False) -> None:
        self._victim = with_method(victim, "gradients", "gives no gradients", "gradients")
        with_method(victim, "embeddings", "shows no word vectors")
        with_method(victim, "vocabulary_vectors", "does not say which words it knows")
        self._each = each
        self.cacheable = each  # else the text changes with every step
        self._table: Numbers | None = None
        self._words: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}

    def __call__(self, items: Sequence[Any], /) -> list[tuple[Flip, ...]]:
        if self._table is None:
            self._words, self._table = self._victim.vocabulary_vectors()
            self._numbers = {word: number for number, word in enumerate(self._words)}
        asked = [Pull(*item) for item in items]
        texts = [item.text for item in asked]
        slopes = self._victim.gradients(texts, [item.label for item in asked], of="loss")
        own = [answer.input for answer in self._victim.embeddings(texts)]
        return [self._best(*row) for row in zip(asked, slopes, own, strict=True)]

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


def open_mixture(victim: Victim, _: str) -> MixtureOracle:
    return MixtureOracle(victim)
