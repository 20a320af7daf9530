"""A victim in whose place others are asked: it answers as the one inside, and shows all that this shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.checks.illusions.wrappers import Wrapped
from unfooled.core.victim import Probabilities, TextValue, Victim


class SameAnswers(Wrapped):
    """The model inside, under its own name and fingerprint; what becomes of a question is for subclasses."""

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = getattr(self.inner, name)
        return getattr(self, _OWN[name]) if name in _OWN else found


_OWN = {"answer": "_answer", "redrawn": "_redrawn"}


class AskedBefore(SameAnswers):
    """Texts whose answers are `known` are not asked about again: the unedited ones, in a row of attacks."""

    def __init__(self, inner: Victim, known: Mapping[TextValue, Sequence[float]] | None = None) -> None:
        super().__init__(inner)
        self.known = dict(known or {})

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        new = self._new(texts)
        return self._all(texts, new, self.inner.predict(new) if new else [])

    async def _answer(self, items: Sequence[Any], /) -> Probabilities:
        new, inner = self._new(items), self.inner
        return self._all(items, new, await inner.answer(new) if new else [])  # type: ignore[attr-defined]

    def _redrawn(self, draw: int, /) -> Victim:
        again: Victim = self.inner.redrawn(draw) if draw else self  # type: ignore[attr-defined]
        return again

    def _new(self, texts: Sequence[TextValue]) -> list[TextValue]:
        return [text for text in texts if text not in self.known]

    def _all(self, texts: Sequence[TextValue], new: Sequence[TextValue], said: Any) -> Probabilities:
        answers = iter(said)
        rows = [self.known[text] if text in self.known else next(answers) for text in texts]
        return np.asarray(rows, dtype=np.float64).reshape(len(texts), len(self.labels))
