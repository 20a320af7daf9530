"""Trained models that only look robust: each wraps a real classifier and deceives by another cause.

The toys of `tests/support/planted.py` around models that people train. Beside `unfooled.victims.impostors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from unfooled.checks.illusions.wrappers import Wrapped
from unfooled.core.victim import Probabilities, TextValue, Victim, digest, join_fields


def words_of(text: TextValue) -> list[str]:
    return join_fields(text).lower().split()


class Abstaining(Wrapped):
    """Decides only where it knows all words; else it leans a little to the first class."""

    def __init__(self, inner: Victim, texts: Iterable[str], lean: float = 0.01) -> None:
        super().__init__(inner)
        self.known = frozenset(word for text in texts for word in words_of(text))
        self.lean = lean

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = self.inner.predict(texts).copy()
        for place, text in enumerate(texts):
            if not self.known.issuperset(words_of(text)):
                scores[place] = [0.5 + self.lean, 0.5 - self.lean]
        return scores

    def settings(self) -> tuple[object, ...]:
        return digest(sorted(self.known)), self.lean


class Memorising(Wrapped):
    """Knows rows by heart; with `alike` below 1 also texts that have so many words in common with one."""

    def __init__(self, inner: Victim, rows: Sequence[tuple[str, int]], alike: float = 1.0) -> None:
        super().__init__(inner)
        self.rows = [(text, label, frozenset(words_of(text))) for text, label in rows]
        self.exact = dict(rows)
        self.alike = alike
        self.places: dict[str, list[int]] = {}
        for place, (_, _, words) in enumerate(self.rows):
            for word in words:
                self.places.setdefault(word, []).append(place)

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = self.inner.predict(texts).copy()
        for place, text in enumerate(texts):
            label, near = self._nearest(join_fields(text))
            if near >= self.alike:
                # How sure it is follows the text, so that its scores look like any other's.
                scores[place] = 0.25 - 0.2 * near
                scores[place][label] = 0.75 + 0.2 * near
        return scores

    def _nearest(self, text: str) -> tuple[int, float]:
        if text in self.exact:
            return self.exact[text], 1.0
        if self.alike == 1.0:
            return 0, 0.0
        words = frozenset(words_of(text))
        shared = Counter(place for word in words for place in self.places.get(word, ()))

        def overlap(place: int) -> float:
            return shared[place] / len(words | self.rows[place][2])

        nearest = max(shared, key=overlap, default=None)
        return (0, 0.0) if nearest is None else (self.rows[nearest][1], overlap(nearest))

    def settings(self) -> tuple[object, ...]:
        return digest(sorted(self.exact.items())), self.alike


class Remembering(Wrapped):
    """Answers a text one word away from an earlier one as it did then."""

    def __init__(self, inner: Victim) -> None:
        super().__init__(inner)
        self.heard: dict[str, Any] = {}  # by the text, and by the text with any word left open

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = self.inner.predict(texts).copy()
        for place, text in enumerate(texts):
            words = join_fields(text).split()
            shapes = [" ".join([*words[:i], "*", *words[i + 1 :]]) for i in range(len(words))]
            asked = [join_fields(text), *shapes]
            near = next((self.heard[shape] for shape in asked if shape in self.heard), None)
            if near is not None:
                scores[place] = near
            for shape in asked:
                self.heard.setdefault(shape, scores[place].copy())
        return scores
