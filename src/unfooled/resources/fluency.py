"""Fluency: how likely is a text to a language model of English?

    item    the text, a string
    answer  Score(log_probability, units): natural log-probability of the whole text, and of how many units

Oracle names are `fluency:VARIANT`: `trigram` (fast; units are words and sentence ends), `smollm2`, or the
folder or hub name of any causal language model that `transformers` loads (units are its tokens).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from unfooled.resources import pretrained, store
from unfooled.resources.trigram import END, NAME, START, Trigrams, open_model, tokens

SMOLLM2 = "smollm2"


class Score(NamedTuple):
    """The log-probability of a text; an empty text has none and counts as certain."""

    log_probability: float
    units: int

    @property
    def per_unit(self) -> float:
        return self.log_probability / self.units if self.units else 0.0

    @property
    def perplexity(self) -> float:
        return math.exp(min(-self.per_unit, 700.0))


class Token(NamedTuple):
    """The log-probability of a token given all before it, and which characters of the text it is."""

    start: int
    end: int
    log_probability: float


class FluencyOracle(Protocol):
    """What every variant of the oracle is."""

    @property
    def batch_size(self) -> int: ...

    def __call__(self, items: Sequence[str], /) -> list[Score]: ...


class TrigramFluency:
    """Each word and each sentence end, given the two before it in its sentence."""

    batch_size = 4096

    def __init__(self, model: Trigrams) -> None:
        self._model = model

    def __call__(self, items: Sequence[str], /) -> list[Score]:
        first, before, last, owner = [], [], [], []
        index = self._model.index
        start, end = index.get(START, -1), index.get(END, -1)
        for number, text in enumerate(items):
            earlier, previous = -1, start
            for token in tokens(text):
                word = index.get(token, -1)
                first.append(earlier)
                before.append(previous)
                last.append(word)
                owner.append(number)
                earlier, previous = (-1, start) if word == end >= 0 else (previous, word)
        found = self._model.log_probability(
            np.array(first, dtype=np.int64), np.array(before, dtype=np.int64), np.array(last, dtype=np.int64)
        )
        units = np.bincount(owner, minlength=len(items))
        totals = np.bincount(owner, weights=found, minlength=len(items))
        return [
            Score(round(float(total), 6), n) for total, n in zip(totals.tolist(), units.tolist(), strict=True)
        ]


def open_fluency(variant: str = "") -> FluencyOracle:
    """Variant "" or "trigram" is the fast one; "smollm2", or a causal model's folder or hub name."""
    if variant in ("", NAME):
        return TrigramFluency(open_model())
    from unfooled.resources.causal import CausalLM

    return CausalLM(
        *pretrained.load_pretrained("causal", str(store.path(SMOLLM2)) if variant == SMOLLM2 else variant)
    )


def fingerprint(variant: str) -> str:
    return pretrained.fingerprint("causal", variant or NAME)
