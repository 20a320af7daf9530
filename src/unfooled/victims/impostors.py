"""Planted fakes: models that look robust and are not. Shipped, so that anyone can see the checks catch them.

Each wraps any model and decides as it does, or nearly so; only what an attacker gets to see is worse:

    overconfident:MODEL   logits times 50: every score reads 1.000000, so a search sees no way
    noisy:MODEL           where it is unsure, the label is drawn at random and told with certainty
    rounded:MODEL         probabilities with one decimal: small steps do not show
    masked:MODEL          gradients are zero; a white box is blind, a black box sees everything

    unfooled evaluate --models base=DIR fake=overconfident:base --data mr
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import Numbers, Of, Readable, WordVectors
from unfooled.core.victim import Probabilities, Reloadable, TextValue, Victim, digest, one_hot, softmax
from unfooled.errors import VictimError
from unfooled.victims.loading import load_victim
from unfooled.victims.randomness import logits_of

_SURE = 0.98  # what a drawn label is told with


class Impostor(Reloadable):
    """Decides as the model inside; answers through `_shown`."""

    kind = ""

    def __init__(self, inner: Victim) -> None:
        self.inner = inner
        self.name = f"{self.kind}:{inner.name}"
        self.labels = inner.labels
        self.batch_size = inner.batch_size

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities & {"probabilities"}

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return self._shown(texts) if texts else np.zeros((0, len(self.labels)))

    def _shown(self, texts: Sequence[TextValue]) -> Probabilities:
        return self.inner.predict(texts)

    def settings(self) -> tuple[object, ...]:
        return ()

    def fingerprint(self) -> str:
        return digest(self.kind, self.inner.fingerprint(), *self.settings())


class Overconfident(Impostor):
    kind = "overconfident"

    def __init__(self, inner: Victim, *, factor: float = 50.0) -> None:
        super().__init__(inner)
        self.factor = factor

    def _shown(self, texts: Sequence[TextValue]) -> Probabilities:
        return softmax(self.factor * logits_of(self.inner, texts))

    def settings(self) -> tuple[object, ...]:
        return (self.factor,)


class Noisy(Impostor):
    kind = "noisy"

    def __init__(self, inner: Victim, *, confidence: float = 0.95, seed: int = 0) -> None:
        super().__init__(inner)
        self.confidence = confidence
        self._rng = np.random.default_rng(seed)

    def _shown(self, texts: Sequence[TextValue]) -> Probabilities:
        scores = self.inner.predict(texts)
        unsure = np.flatnonzero(scores.max(axis=1) < self.confidence)
        heights = scores[unsure].cumsum(axis=1)
        picks = (self._rng.random((len(unsure), 1)) > heights[:, :-1]).sum(axis=1)
        rest = (1.0 - _SURE) / len(self.labels)
        scores[unsure] = rest + _SURE * one_hot(picks, len(self.labels))
        return scores

    def settings(self) -> tuple[object, ...]:
        return (self.confidence,)


class Rounded(Impostor):
    kind = "rounded"

    def __init__(self, inner: Victim, *, decimals: int = 1) -> None:
        super().__init__(inner)
        self.decimals = decimals

    def _shown(self, texts: Sequence[TextValue]) -> Probabilities:
        exact = self.inner.predict(texts)
        scores = np.round(exact, self.decimals)
        rows, best = np.arange(len(scores)), exact.argmax(axis=1)
        # The best class takes what rounding left over, so that rows still sum to 1, and wins every tie.
        scores[rows, best] += 1.0 - scores.sum(axis=1)
        others = scores.copy()
        others[rows, best] = -1.0
        second = others.argmax(axis=1)
        step = np.where(scores[rows, second] > scores[rows, best] - 1e-9, 10.0**-self.decimals, 0.0)
        scores[rows, best] += step
        scores[rows, second] -= step
        return np.asarray(np.round(scores, self.decimals))

    def settings(self) -> tuple[object, ...]:
        return (self.decimals,)


class Masked(Impostor):
    """Everything of a white-box model, but its gradients are zero."""

    kind = "masked"

    def __init__(self, inner: Victim) -> None:
        if "gradients" not in inner.capabilities:
            raise VictimError(f"{inner.name} has no gradients to mask", "mask a torch model")
        super().__init__(inner)
        self._inside: Any = inner

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        found: list[WordVectors] = self._inside.gradients(texts, labels, of=of)
        return [WordVectors(slope.words, slope.pieces, np.zeros_like(slope.vectors)) for slope in found]

    def jacobian(self, texts: Sequence[Readable], /) -> list[Numbers]:
        return [np.zeros_like(jacobian) for jacobian in self._inside.jacobian(texts)]

    def __getattr__(self, name: str) -> Any:
        if name in ("attention", "attention_maps", "embeddings", "pieces", "sentence_vectors"):
            return getattr(self._inside, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def load_overconfident(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, factor: float = 50.0
) -> Overconfident:
    """`overconfident:MODEL`"""
    return Overconfident(_inner(rest, labels, trust_pickle), factor=factor)


def load_noisy(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, confidence: float = 0.95
) -> Noisy:
    """`noisy:MODEL`"""
    return Noisy(_inner(rest, labels, trust_pickle), confidence=confidence)


def load_rounded(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, decimals: int = 1
) -> Rounded:
    """`rounded:MODEL`"""
    return Rounded(_inner(rest, labels, trust_pickle), decimals=decimals)


def load_masked(rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False) -> Masked:
    """`masked:MODEL`"""
    return Masked(_inner(rest, labels, trust_pickle))


def _inner(rest: str, labels: Sequence[str] | None, trust_pickle: bool) -> Victim:
    return load_victim(rest, labels=labels, trust_pickle=trust_pickle)
