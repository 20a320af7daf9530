"""The trigram model as a fill-mask oracle: every word of its vocabulary is tried in the gap at once.

With the words l2 l1 before the gap and r1 r2 behind it, a word w scores

    log P(w | l2 l1) + log P(r1 | l1 w) + log P(r2 | w r1)

and the scores are scaled to probabilities over the vocabulary. Sentence ends count as words; other
punctuation is not in the model and is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.errors import OracleError
from unfooled.resources.fillmask import FillIn, MaskItem
from unfooled.resources.trigram import END, START, Trigrams, tokens
from unfooled.text import WORD

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
_SEEN = 200  # characters of either side: two words are enough


class TrigramCloze:
    """Answers fill-mask questions. Each is answered by itself, so company does not matter."""

    batch_size = 1024

    def __init__(self, model: Trigrams) -> None:
        self._model = model
        self._allowed = np.array([i for i, word in enumerate(model.words) if WORD.fullmatch(word)])
        # The pairs by their first word; the file has them by their last.
        self._by_first = np.argsort(model.pair_before, kind="stable")
        self._first_from = np.searchsorted(model.pair_before[self._by_first], np.arange(len(model.words) + 1))
        self._last = np.repeat(np.arange(len(model.words)), np.diff(model.pair_from))

    def __call__(self, items: Sequence[MaskItem], /) -> list[tuple[FillIn, ...]]:
        return [self._fill(*item) for item in items]

    def _fill(self, left: str, right: str, k: int) -> tuple[FillIn, ...]:
        if k < 1:
            raise OracleError(f"{k} words were asked for a gap; ask for at least 1")
        l2, l1 = [-1, -1, *self._model.ids(before(left))][-2:]
        r1, r2 = [*self._model.ids(after(right)), -1, -1][:2]
        total = self._after(l2, l1)
        if r1 >= 0:
            total += self._in_the_middle(l1, r1)
            if r2 >= 0:
                total += self._in_front(r1, r2)
        scores = total[self._allowed].astype(np.float64)
        scores -= scores.max()
        scores = np.round(scores - np.log(np.exp(scores).sum()), 6)
        k = min(k, len(scores))
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        best = np.flatnonzero(scores >= least)
        best = best[np.argsort(-scores[best], kind="stable")][:k]
        return tuple(FillIn(self._model.words[self._allowed[i]], float(scores[i])) for i in best)

    def _after(self, l2: int, l1: int) -> Floats:
        """log P(w | l2 l1) for every w."""
        model = self._model
        if l1 < 0:
            return model.single.copy()
        total: Floats = model.single + model.single_backoff[l1]
        pairs = self._starting_with(l1)
        total[self._last[pairs]] = model.pair[pairs]
        history = int(model.find_pairs(np.array([l2]), np.array([l1]))[0])
        if history >= 0:
            total += model.pair_backoff[history]
            self._put_triples(total, l2, pairs, self._last)
        return total

    def _in_the_middle(self, l1: int, r1: int) -> Floats:
        """log P(r1 | l1 w) for every w."""
        model = self._model
        total: Floats = model.single_backoff + model.single[r1]
        pairs = np.arange(model.pair_from[r1], model.pair_from[r1 + 1])
        total[model.pair_before[pairs]] = model.pair[pairs]
        if l1 >= 0:
            histories = self._starting_with(l1)
            total[self._last[histories]] += model.pair_backoff[histories]
            self._put_triples(total, l1, pairs, model.pair_before)
        return total

    def _in_front(self, r1: int, r2: int) -> Floats:
        """log P(r2 | w r1) for every w."""
        model = self._model
        pair = int(model.find_pairs(np.array([r1]), np.array([r2]))[0])
        usual = model.pair[pair] if pair >= 0 else model.single[r2] + model.single_backoff[r1]
        total = np.full(len(model.words), usual, dtype=np.float32)
        histories = slice(model.pair_from[r1], model.pair_from[r1 + 1])
        total[model.pair_before[histories]] += model.pair_backoff[histories]
        if pair >= 0:
            triples = slice(model.triple_from[pair], model.triple_from[pair + 1])
            total[model.triple_before[triples]] = model.triple[triples]
        return total

    def _put_triples(self, total: Floats, first: int, pairs: Integers, places: npt.NDArray[Any]) -> None:
        """Where `first` before a pair is known, its own probability, in the place of the word asked for."""
        triples = self._model.find_triples(np.full(len(pairs), first), pairs)
        known = triples >= 0
        total[places[pairs[known]]] = self._model.triple[triples[known]]

    def _starting_with(self, word: int) -> Integers:
        return self._by_first[self._first_from[word] : self._first_from[word + 1]]


def before(left: str) -> list[str]:
    """The words that come before a gap: those of its own sentence, and the start mark where they begin."""
    words = tokens(left[-_SEEN:])
    if END in words:
        words = words[len(words) - words[::-1].index(END) :]
        return [START, *words]
    return words if len(left) > _SEEN else [START, *words]


def after(right: str) -> list[str]:
    """The words that follow a gap, up to the end mark of its sentence."""
    words = tokens(right[:_SEEN])
    if END in words:
        return words[: words.index(END) + 1]
    return words if len(right) > _SEEN else [*words, END]
