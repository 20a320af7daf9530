"""The `Victim` protocol: what every classifier looks like to an attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

TextValue: TypeAlias = str | tuple[str, ...]  # one text, or one string per field of a pair
Probabilities: TypeAlias = NDArray[np.float64]  # [texts, classes], rows sum to 1


@runtime_checkable
class Victim(Protocol):
    """A classifier under attack.

    `capabilities` are found by looking, never promised: `probabilities` (a score per class; absent where
    only a decided label comes back), `gradients`, `attention`, `embeddings`.
    """

    @property
    def name(self) -> str:
        """Short, for tables."""
        ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    @property
    def batch_size(self) -> int:
        """The most texts that one `predict` should get."""
        ...

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities: ...

    def fingerprint(self) -> str:
        """Changes when the answers may change; written into every run."""
        ...
