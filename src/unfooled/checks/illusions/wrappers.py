"""The same model as an adaptive attacker would look at it: re-scaled, averaged, or led by another model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.core.victim import Probabilities, TextValue, Victim, digest, one_hot, softmax
from unfooled.runs.workers.portable import Reload, portable
from unfooled.victims.around import INSIDE, AroundVictim
from unfooled.victims.randomness import is_redrawable, logits_of

FRESH = 1000  # number of the first draw that no attack has seen
SECOND = 500  # number of the first draw of a second attack with one draw
_REMEMBERED = 100_000
_AGREED = 5  # fresh draws that are enough if they all agree


class Wrapped(AroundVictim):
    """A victim around a victim. Travels to worker processes as what it wraps does."""

    spec = ""
    options: Mapping[str, Any] = {}

    def __init__(self, inner: Victim) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        raise NotImplementedError

    def settings(self) -> tuple[object, ...]:
        """What changes the answers besides the inner victim."""
        return ()

    def fingerprint(self) -> str:
        return digest(type(self).__name__, self.inner.fingerprint(), *self.settings())

    def __getattr__(self, name: str) -> Any:
        if name in INSIDE:
            return getattr(self.inner, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "inner": portable(self.inner)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            {name: value() if isinstance(value, Reload) else value for name, value in state.items()}
        )


class Tempered(Wrapped):
    """The same decisions with scores of another temperature: softmax(logits / temperature)."""

    def __init__(self, inner: Victim, temperature: float) -> None:
        super().__init__(inner)
        self.temperature = temperature

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if not texts:
            return np.zeros((0, len(self.labels)))
        return softmax(logits_of(self.inner, texts) / self.temperature)

    def settings(self) -> tuple[object, ...]:
        return (repr(self.temperature),)


class Averaged(Wrapped):
    """The mean of several draws of a random victim; with one draw, its answer as first heard.

    A mean that is close to a tie gets three times as many draws on top, so that a search is not stopped by
    luck. Answers are remembered: a search that asks again hears the same.
    """

    def __init__(self, inner: Victim, *, draws: int = 1, first: int = 0) -> None:
        """`first` is the number of the first draw: others than an earlier attack heard."""
        super().__init__(inner)
        self.draws = draws
        self.first = first
        self._known: dict[TextValue, Any] = {}

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for text, row in zip(new, self._mean(new), strict=True):
            self._known[text] = row
        rows = [self._known[text] for text in texts]
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return np.array(rows).reshape(len(texts), len(self.labels))

    def _mean(self, texts: list[TextValue]) -> Probabilities:
        if not texts:
            return np.zeros((0, len(self.labels)))
        total = sum(drawn(self.inner, self.first + n).predict(texts) for n in range(self.draws))
        mean = np.asarray(total, dtype=np.float64) / self.draws
        if self.draws > 1:
            close = np.flatnonzero(_lead(mean) < 1.0 / np.sqrt(self.draws))
            if close.size:
                few = [texts[i] for i in close]
                extra = range(self.first + self.draws, self.first + 4 * self.draws)
                more = sum(drawn(self.inner, n).predict(few) for n in extra)
                mean[close] = (mean[close] * self.draws + more) / (4 * self.draws)
        return mean

    def settings(self) -> tuple[object, ...]:
        return (self.draws, self.first) if self.first else (self.draws,)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_known": {}}


class Votes(Wrapped):
    """The share of fresh draws that decide for each class: what a random victim says on other days.

    Where the first five agree, they are enough; a close vote is repeated with three times as many draws on
    top: luck must not decide.
    """

    def __init__(self, inner: Victim, *, draws: int) -> None:
        super().__init__(inner)
        self.draws = draws

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        shares = np.zeros((len(texts), len(self.labels)))
        open_ = np.arange(len(texts))
        counted = 0
        for upto in (min(_AGREED, self.draws), self.draws, 4 * self.draws):
            if upto > counted and open_.size:
                more = self._votes([texts[i] for i in open_.tolist()], range(FRESH + counted, FRESH + upto))
                shares[open_] = (shares[open_] * counted + more) / upto
                counted = upto
            lead = _lead(shares[open_])
            close = min(1.0, 2.0 / np.sqrt(self.draws)) if counted >= self.draws else 1.0
            open_ = open_[lead < close - 1e-9]
        return shares

    def _votes(self, texts: Sequence[TextValue], draws: range) -> Probabilities:
        votes = [_vote(drawn(self.inner, n).predict(texts)) for n in draws]
        return np.asarray(np.sum(votes, axis=0))

    def settings(self) -> tuple[object, ...]:
        return (self.draws,)


class Guided(Wrapped):
    """The victim decides; another model's scores lead the search. Hidden or flat scores do not help then."""

    def __init__(self, inner: Victim, guide: Victim, order: Sequence[int]) -> None:
        """`order[i]` is the guide's column of the victim's class i."""
        super().__init__(inner)
        self.guide = guide
        self.order = list(order)

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if not texts:
            return np.zeros((0, len(self.labels)))
        decided = one_hot(self.inner.predict(texts).argmax(axis=1), len(self.labels))
        # A little more than half, so that the decision is always the victim's.
        return np.asarray(0.51 * decided + 0.49 * self.guide.predict(texts)[:, self.order])

    def settings(self) -> tuple[object, ...]:
        return (self.guide.fingerprint(), self.order)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "guide": portable(self.guide)}


def _vote(scores: Probabilities) -> Probabilities:
    """One vote per row, shared by the classes of a tie: a tie decides nothing."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def _lead(scores: Probabilities) -> Probabilities:
    """How far the best class of each row is ahead of the second."""
    best = np.sort(scores, axis=1)
    return np.asarray(best[:, -1] - best[:, -2])


def drawn(victim: Victim, number: int) -> Victim:
    """Draw `number` of a victim: other random numbers where it lets us choose, else just another asking."""
    return victim.redrawn(number) if is_redrawable(victim) else victim
