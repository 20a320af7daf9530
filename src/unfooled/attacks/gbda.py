"""GBDA: a distribution over words for each place, moved by the gradient until texts drawn from it flip.

Guo, Sablayrolles, Jégou, Kiela: *Gradient-based Adversarial Attacks against Text Transformers*, EMNLP 2021,
arXiv:2104.13733.

    1. Each place gets a number per word that may stand there; softmax makes them a distribution. At the start
       nearly all of it lies on the word that does stand there.
    2. Draw blends of words from all places by Gumbel-softmax; the victim reads the blended vectors.
    3. The loss is the margin of the true class (as far as it is above -5), and how unlikely and how far from
       the original the words are. Its gradient moves the numbers (Adam, step 0.3).
    4. After 100 steps of 10 blends draw up to 100 whole texts,
    5. and ask the victim about these. A success is a text that flipped, never a blend.

Versions
    @neighbours  TextFooler's candidates: 50 counter-fitted neighbours of the same part of speech. 30 steps of
                 4 blends: on the LSTM of MR 100 steps of 10 found no more.
    @free        the same without the two terms for likelihood and similarity. With the same words to choose
                 from as TextFooler, what it finds more is what a search without gradients misses.
    @paper       100 steps of 10 blends over the 50 words of the victim's own vocabulary that its gradient
                 likes best in each place, stop words too, with no constraint but the two terms of the loss.

A blend is no text and no query; the result counts them (`gradients`). A budget bounds them as well.

Differences from the paper (its code was not used)
    - The distribution is over whole words, and over 50 for each place, not over all tokens: nothing is cut
      otherwise when a drawn text is read again. A word of several pieces is blended in as their mean.
    - The language model: a differentiable one that shares the victim's tokens is to be had for no victim of
      ours. `search.language_model` (a trigram model, or smollm2) reads 15 words around each word, swapped
      in alone; how much likelihood per word of the text that costs is the price of the word, so that the term
      is linear in the distribution. The similarity is that of counter-fitted vectors, word by word, in place
      of BERTScore; a word without a vector is as far as an unrelated one.
    - The start is a chance of 0.99 for the true word, which is what the paper's 15 means for a vocabulary.
    - Of the texts drawn that flip, the one with the fewest words changed is the result (the paper's: the
      first), and what it does not need is taken back (`search.undo`).
    - The words of @neighbours and @free respect the constraints, each for itself: the drawn text is not
      checked as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.class_words import pushed
from unfooled.attacks.parts.constraints import Constraint, NextText, SamePartOfSpeech
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.own_words import OwnWords
from unfooled.attacks.parts.search import attackable, require_stopwords
from unfooled.attacks.parts.together import swapping
from unfooled.attacks.parts.undoing import undo_needless
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask, gather
from unfooled.core.questions import Mixture, mark, marked
from unfooled.core.recipe import Recipe, require_counts
from unfooled.text import Text

Matrix = NDArray[np.float64]
_KEEP, _KEEP_SQUARES, _SMALL = 0.9, 0.999, 1e-8  # of Adam
_WINDOW = 15  # words around a swap that the language model reads
_DECIMALS = 6  # of a weight: what the victim is asked does not depend on a last digit


@dataclass(frozen=True, kw_only=True)
class Gbda:
    """Move a distribution over words by gradients of `steps` times `blends` blends; draw `draws` texts."""

    candidates: Candidates
    constraints: tuple[Constraint, ...] = ()
    steps: int = 100
    blends: int = 10
    rate: float = 0.3
    margin: float = 5.0
    certain: float = 0.99
    language_model: str = "trigram"
    likelihood: float = 1.0
    vectors: str = "counter-fitted"
    similarity: float = 1.0
    draws: int = 100
    undo: bool = True
    stopwords: str = "english"
    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_counts(self, "steps", "blends", "draws")
        if not 0.0 < self.certain < 1.0:
            raise ValueError("certain is a probability between 0 and 1")

    @property
    def asks(self) -> tuple[str, ...]:
        named = {
            f"fluency:{self.language_model}": self.likelihood,
            f"vectors:{self.vectors}": self.similarity,
        }
        return ("readable", "mixture", *(name for name, weight in named.items() if weight))

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        swaps = swapping(a, self.candidates, self.constraints)
        (readable,) = yield from ask("readable", [mark(start.text)])
        open_to_all = set(attackable(start.text, self.stopwords))
        proposed = yield from gather([swaps(start, i) for i in readable if i in open_to_all])
        places = [options for options in proposed if options]
        a.facts["gradients"] = 0.0
        if not places:
            return start
        prices = yield from self._prices(a, places)
        logits = yield from self._moved(a, places, prices)
        return (yield from self._drawn(a, start, places, logits))

    # -- what each word costs ----------------------------------------------------------------------

    def _prices(self, a: Attempt, places: Sequence[list[NextText]]) -> Program[Matrix]:
        """What the language model and the word vectors hold against each word; the word itself is free."""
        options = [option for some in places for option in some]
        prices = np.zeros(len(options))
        if self.likelihood:
            texts = [
                text.window(option.position, _WINDOW)
                for option in options
                for text in (a.original, option.text)
            ]
            told = yield from ask(f"fluency:{self.language_model}", texts)
            chances = np.array([score.log_probability for score in told]).reshape(-1, 2)
            prices += self.likelihood * (chances[:, 0] - chances[:, 1])
        if self.similarity:
            words = [(a.original.words[option.position].lower(), option.word.lower()) for option in options]
            known = list(dict.fromkeys(word for pair in words for word in pair))
            vectors = dict(zip(known, (yield from ask(f"vectors:{self.vectors}", known)), strict=True))
            near = [_cosine(vectors[old], vectors[new]) for old, new in words]
            prices += self.similarity * (1.0 - np.array(near))
        table = _empty(places, 0.0)
        ends = np.cumsum([len(some) for some in places])
        for row, (some, end) in enumerate(zip(places, ends, strict=True)):
            table[row, 1 : len(some) + 1] = prices[end - len(some) : end] / len(a.original.words)
        return table

    # -- the distribution --------------------------------------------------------------------------

    def _moved(self, a: Attempt, places: Sequence[list[NextText]], prices: Matrix) -> Program[Matrix]:
        """The numbers of all places after the last step; minus infinity where a place has no such word."""
        label, sign = pushed(a)
        text = marked(a.original, [some[0].position for some in places])
        words = tuple(tuple(option.word for option in some) for some in places)
        logits = _empty(places, -np.inf)
        for row, some in enumerate(places):
            logits[row, 0] = np.log(len(some) * self.certain / (1.0 - self.certain))
            logits[row, 1 : len(some) + 1] = 0.0
        mean, square = np.zeros_like(logits), np.zeros_like(logits)
        for step in range(1, self.steps + 1):
            if a.room is not None and a.facts["gradients"] + self.blends > a.room:
                break
            blends = [np.round(_softmax(logits + noise), _DECIMALS) for noise in self._noise(a, logits)]
            items = [Mixture(text, label, words, _rows(blend, places)) for blend in blends]
            told = yield from ask("mixture", items)
            a.facts["gradients"] += self.blends
            gradient = np.zeros_like(logits)
            for blend, answer in zip(blends, told, strict=True):
                slopes = prices.copy()
                if -sign * answer.margin > -self.margin:  # of the true class, or what a target lacks
                    for row, own in enumerate(answer.slopes):
                        slopes[row, : len(own)] -= sign * own.astype(np.float64)
                gradient += blend * (slopes - (blend * slopes).sum(axis=1, keepdims=True))
            gradient /= self.blends
            mean = _KEEP * mean + (1.0 - _KEEP) * gradient
            square = _KEEP_SQUARES * square + (1.0 - _KEEP_SQUARES) * gradient**2
            size = np.sqrt(square / (1.0 - _KEEP_SQUARES**step)) + _SMALL
            logits = logits - self.rate * mean / (1.0 - _KEEP**step) / size
        return logits

    def _noise(self, a: Attempt, logits: Matrix) -> Matrix:
        return a.rng.gumbel(size=(self.blends, *logits.shape))

    def _drawn(
        self, a: Attempt, start: Scored, places: Sequence[list[NextText]], logits: Matrix
    ) -> Program[Scored]:
        """The victim's word on texts drawn from the distribution."""
        chosen = [
            (logits + a.rng.gumbel(size=logits.shape)).argmax(axis=1).tolist() for _ in range(self.draws)
        ]
        texts = dict.fromkeys(_text(a.original, places, choice) for choice in chosen)
        texts.pop(a.original, None)
        scored = yield from a.score(list(texts))
        if not scored:
            return start
        best = max(
            scored, key=lambda found: (found.success, -found.text.changes * found.success, found.score)
        )
        return (yield from undo_needless(a, best)) if self.undo else best


def _text(text: Text, places: Sequence[list[NextText]], choice: Sequence[int]) -> Text:
    """With the chosen word in each place; 0 is the word that stands there."""
    for some, number in zip(places, choice, strict=True):
        if number:
            text = text.replace(some[0].position, some[number - 1].word)
    return text


def _empty(places: Sequence[list[NextText]], value: float) -> Matrix:
    return np.full((len(places), 1 + max(map(len, places))), value)


def _rows(blend: Matrix, places: Sequence[list[NextText]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row[: len(some) + 1]) for row, some in zip(blend.tolist(), places, strict=True))


def _softmax(values: Matrix) -> Matrix:
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _cosine(old: NDArray[np.float32] | None, new: NDArray[np.float32] | None) -> float:
    if old is None or new is None:
        return 0.0
    lengths = max(float(np.linalg.norm(old) * np.linalg.norm(new)), 1e-12)
    return round(float(old @ new) / lengths, _DECIMALS)


_NEIGHBOURS = Gbda(candidates=Neighbours(), constraints=(SamePartOfSpeech(),), steps=30, blends=4)

_FREE = replace(_NEIGHBOURS, likelihood=0.0, similarity=0.0)

_AS_PAPER = Gbda(candidates=OwnWords(), stopwords="none")

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"neighbours": _NEIGHBOURS, "free": _FREE, "paper": _AS_PAPER},
    name="gbda",
    summary="moves a distribution over words by gradients, then draws texts from it",
    paper="Guo et al. 2021, arXiv:2104.13733",
)
