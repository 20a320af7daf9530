"""LIME's word weights: how much each word speaks for the true class, from texts with words left out.

Ribeiro, Singh, Guestrin: *"Why Should I Trust You?": Explaining the Predictions of Any Classifier*, KDD 2016,
arXiv:1602.04938. A weighted ridge regression of the goal's score on which words are there; texts nearer to
the original weigh more, by an exponential kernel on the cosine distance. Works on decisions as on
probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unfooled.attacks.parts.importance import probe_each
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.text import Text


@dataclass(frozen=True)
class Lime:
    """`samples` texts with drawn words left out; None asks as many as the text has words."""

    samples: int | None = None
    kernel_width: float = 25.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if self.samples is not None and self.samples < 1:
            raise ValueError("samples is at least 1, or none for the number of words")

    def rank(self, a: Attempt, start: Scored, positions: Sequence[int]) -> Program[list[int]]:
        words = len(start.text.words)
        left_out = [self._drawn(words, a.rng) for _ in range(self.samples or words)]

        def without(number: int) -> Text:
            text = start.text
            for place in sorted(left_out[number], reverse=True):
                text = text.delete(place)
            return text

        asked = yield from probe_each(a, start, range(len(left_out)), without)
        present = np.ones((1 + len(left_out), words))
        for number, gone in enumerate(left_out, 1):
            present[number, list(gone)] = 0.0
        scores = np.array([start.score, *(probe.score for probe in asked)])
        weights = lime_weights(present, scores, self.kernel_width, self.ridge)
        # The score rises when a word that speaks for the true class is left out: its weight is negative.
        return sorted(positions, key=lambda place: round(float(weights[place]), 6))

    def _drawn(self, words: int, rng: np.random.Generator) -> list[int]:
        """Which words are left out: one at least, not all."""
        most = max(1, words - 1)
        count = int(rng.integers(1, most + 1))
        return [int(place) for place in rng.permutation(words)[: min(count, most)]] if words > 1 else []


def lime_weights(
    present: np.ndarray, scores: np.ndarray, kernel_width: float = 25.0, ridge: float = 1.0
) -> np.ndarray:
    """What each word adds to the score. Rows are texts, the first with all words."""
    words = present.shape[1]
    share = present.sum(axis=1) / max(1, words)
    distance = 100.0 * (1.0 - np.sqrt(share))  # of a row of ones and zeros from the row of ones, by cosine
    kernel = np.sqrt(np.exp(-(distance**2) / kernel_width**2))
    middle = kernel / max(float(kernel.sum()), math.ulp(1.0))
    centred = present - middle @ present
    target = scores - float(middle @ scores)
    left = centred.T @ (centred * kernel[:, None]) + ridge * np.eye(words)
    return np.asarray(np.linalg.solve(left, centred.T @ (kernel * target)))
