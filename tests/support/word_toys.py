"""A victim made of a few word vectors: scores, gradients, attention and embeddings are known by arithmetic.

The output for class 1 is the sum of the words' vectors times (1, 2); the other outputs are zero, or with
three classes that of class 2 is the sum times (-1, 1). Every gradient is therefore a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.core.questions import Marked, Numbers, Readable, mark
from unfooled.core.victim import Probabilities, TextValue, softmax
from unfooled.text import Text
from unfooled.victims.torch.words import Slope

#        word: vector            sum   output for class 1
VECTORS: dict[str, tuple[float, float]] = {
    "film": (0, 0),  # 0
    "good": (1, 1),  # 3
    "great": (2, 1),  # 4
    "bad": (-1, 0),  # -1
    "awful": (-1, -2),  # -5
    "grim": (0, -3),  # -6: the same projection on (-1, -1) as awful, but later in the dictionary
    "odd": (-3, 1),  # -1
}


class VectorVictim:
    """`reads` is how many words it looks at; `weights` multiply the words' vectors by their position."""

    name = "vectors"
    batch_size = 1000

    def __init__(
        self,
        *,
        classes: int = 2,
        reads: int = 1000,
        weights: Sequence[float] = (),
        attention: Mapping[str, float] | None = None,
        capabilities: Sequence[str] = ("probabilities", "gradients", "attention", "embeddings"),
    ) -> None:
        self.labels = ("no", "yes", "maybe")[:classes]
        self.outputs = np.array([(0, 0), (1, 2), (-1, 1)], dtype=np.float64)[:classes]
        self.capabilities = frozenset(capabilities)
        self.reads = reads
        self.weights = weights
        self.scores_of = dict(attention or {})
        self.asked: list[TextValue] = []

    def fingerprint(self) -> str:
        return f"vectors {len(self.labels)} {self.reads} {self.weights} {self.scores_of}"

    def vectors(self, text: Readable) -> np.ndarray:
        words = mark(text).words[: self.reads]
        rows = [np.array(VECTORS.get(word.lower(), (0, 0)), dtype=np.float64) for word in words]
        return np.array([self.weight(i) * row for i, row in enumerate(rows)]).reshape(-1, 2)

    def weight(self, index: int) -> float:
        return self.weights[index] if index < len(self.weights) else 1.0

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.asked += list(texts)
        return self._scores([self.vectors(text).sum(axis=0) for text in texts])

    def _scores(self, sums: list[np.ndarray]) -> Probabilities:
        return softmax(np.array(sums).reshape(-1, 2) @ self.outputs.T)

    # -- its inside --------------------------------------------------------------------------------

    def pieces(self, texts: Sequence[Readable], /) -> list[Any]:
        return [np.array([int(i < self.reads) for i in range(len(mark(text).words))]) for text in texts]

    def vocabulary(self) -> tuple[str, ...]:
        return tuple(VECTORS)

    def vocabulary_vectors(self) -> tuple[tuple[str, ...], Numbers]:
        return tuple(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32)

    def slopes(self, texts: Sequence[Marked], labels: Sequence[int], /) -> list[Slope]:
        found = []
        for text, label in zip(texts, labels, strict=True):
            every = Text(text.value if isinstance(text.value, str) else text.value[text.field]).starts
            places = [every.index(start) for start, _ in text.spans]
            rows = [self.weight(i) * self.outputs[label] * (i < self.reads) for i in places]
            (scores,) = self._scores([self.vectors(text.value).sum(axis=0)])
            found.append(Slope(scores, np.array(rows, dtype=np.float32).reshape(-1, 2)))
        return found

    def zeroed(self, items: Sequence[tuple[Readable, int]], /) -> Probabilities:
        sums = []
        for text, index in items:
            rows = self.vectors(text)
            rows[index : index + 1] = 0
            sums.append(rows.sum(axis=0))
        return self._scores(sums)

    def attention(self, texts: Sequence[Readable], *, layer: int = 0, reduce: str = "") -> list[Numbers]:
        sign = 1 if layer == 0 else -1
        rows = [[sign * self.scores_of.get(word, 0.5) for word in mark(text).words] for text in texts]
        return [np.array(row, dtype=np.float32) for row in rows]

    def sentence_vectors(self, texts: Sequence[Readable], *, pool: str = "head") -> Numbers:
        sums = [self.vectors(text).sum(axis=0) * (1 if pool == "head" else 0.5) for text in texts]
        return np.array(sums, dtype=np.float32).reshape(-1, 2)

    def gradients(self, *_: Any, **__: Any) -> list[Any]:
        raise NotImplementedError

    jacobian = attention_maps = embeddings = gradients


def scored_by(victim: VectorVictim, text: str) -> float:
    """The output for class 1."""
    return float(victim.vectors(text).sum(axis=0) @ np.array([1.0, 2.0]))
