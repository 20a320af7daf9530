"""What an attack wants. A goal turns the victim's probabilities into a score to raise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Untargeted:
    """Any class but the true one."""

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        scores = np.round(1.0 - probs[:, label], 6)
        return scores.tolist(), (probs.argmax(axis=1) != label).tolist()


@dataclass(frozen=True)
class Targeted:
    """One given class, by its index."""

    target: int

    def judge(self, probs: NDArray[np.float64], label: int) -> tuple[list[float], list[bool]]:
        return probs[:, self.target].tolist(), (probs.argmax(axis=1) == self.target).tolist()
