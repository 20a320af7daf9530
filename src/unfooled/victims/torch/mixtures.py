"""Oracles that say, by the gradient, what other words would change: single flips, and blends of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import Flip, Mixed, Mixture, Numbers, Pull
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import DECIMALS
from unfooled.victims.torch.oracles import BATCH, steady
from unfooled.victims.torch.word_oracles import highest, with_method


class FlipOracle:
    """`Pull` → the `Flip`s with the highest estimated gain, the best first, over the victim's own words.

    A flip's gain is the loss gradient at its place times the difference of the two words' vectors. Words that
    the victim does not read have none. Equal gains come in the order of the text, then of the vocabulary.
    """

    batch_size = BATCH
    cacheable = False  # the text changes with every step

    def __init__(self, victim: Victim) -> None:
        self._victim = with_method(victim, "gradients", "gives no gradients", "gradients")
        with_method(victim, "embeddings", "shows no word vectors")
        with_method(victim, "vocabulary_vectors", "does not say which words it knows")
        self._table: Numbers | None = None
        self._words: tuple[str, ...] = ()

    def __call__(self, items: Sequence[Any], /) -> list[tuple[Flip, ...]]:
        if self._table is None:
            self._words, self._table = self._victim.vocabulary_vectors()
        asked = [Pull(*item) for item in items]
        texts = [item.text for item in asked]
        slopes = self._victim.gradients(texts, [item.label for item in asked], of="loss")
        own = [answer.input for answer in self._victim.embeddings(texts)]
        return [self._best(*row) for row in zip(asked, slopes, own, strict=True)]

    def _best(self, item: Pull, slopes: Any, own: Numbers) -> tuple[Flip, ...]:
        assert self._table is not None
        if not len(own):
            return ()
        gradient = steady(slopes.vectors) * np.float32(-1 if item.up else 1)  # more loss, less of the class
        gains = steady(gradient @ self._table.T - (gradient * own).sum(axis=1, keepdims=True))
        gains[slopes.pieces == 0] = -np.inf
        places = {word: number for number, word in enumerate(self._words)}
        for row, word in enumerate(item.text.words):
            if word.lower() in places:
                gains[row, places[word.lower()]] = -np.inf
        flat = gains.reshape(1, -1)
        allowed = int(np.isfinite(flat).sum())
        found = highest(flat, min(item.most, allowed))[0] if allowed else []
        return tuple(Flip(at // len(self._words), self._words[at % len(self._words)]) for at in found)


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


def open_flips(victim: Victim, _: str) -> FlipOracle:
    return FlipOracle(victim)


def open_mixture(victim: Victim, _: str) -> MixtureOracle:
    return MixtureOracle(victim)
