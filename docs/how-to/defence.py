"""A defence of our own: several copies of a text, each with some words hidden, vote on its class.

Run it: `python defence.py`. It checks the defence against the rules for defences, and asks whether the gain
is real.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

import unfooled
from unfooled.defenses.checks import check_defense
from unfooled.plugins import registry


class HiddenWords:
    """A victim around a victim. The text itself votes too, so an unchanged text keeps most of its answer."""

    def __init__(
        self,
        model: unfooled.Victim,
        *,
        copies: int = 6,
        share: float = 0.2,
        seed: int = 0,
        fresh: bool = False,
    ) -> None:
        self.model = model
        self.settings: dict[str, Any] = {"copies": copies, "share": share, "seed": seed}
        self.stochastic = fresh  # says that the same text may get another answer
        self.name = f"hidden:{model.name}"
        self.labels = model.labels
        self.batch_size = model.batch_size
        self.capabilities = model.capabilities & {"probabilities"}

    def predict(self, texts: Sequence[str | tuple[str, ...]], /) -> np.ndarray:
        if not texts:
            return np.zeros((0, len(self.labels)))
        groups = [self._copies(text) for text in texts]
        answers = self.model.predict([copy for group in groups for copy in group])
        return np.stack([votes.mean(axis=0) for votes in np.split(answers, len(texts))])

    def _copies(self, value: str | tuple[str, ...]) -> list[str | tuple[str, ...]]:
        """The text, and copies of it. Their random numbers follow from the text: no other text matters."""
        fields = (value,) if isinstance(value, str) else value
        text = unfooled.Text({str(i): field for i, field in enumerate(fields)})
        given = f"{self.settings['seed']}\0{value!r}".encode()
        seed = None if self.stochastic else int.from_bytes(hashlib.sha256(given).digest()[:8])
        rng = np.random.default_rng(seed)
        found: list[str | tuple[str, ...]] = [value]
        for _ in range(self.settings["copies"]):
            copy = text
            for i in np.flatnonzero(rng.random(len(text.words)) < self.settings["share"]):
                copy = copy.replace(int(i), "something")
            found.append(copy.string if isinstance(value, str) else copy.value)
        return found

    def redrawn(self, draw: int, /) -> HiddenWords:
        """The same defence with other random numbers; `redrawn(0)` answers as this one does."""
        settings = self.settings | {"seed": self.settings["seed"] + draw}
        return HiddenWords(self.model, **settings, fresh=self.stochastic)

    def fingerprint(self) -> str:
        told = ("hidden", self.model.fingerprint(), sorted(self.settings.items()), self.stochastic)
        return hashlib.sha256(repr(told).encode()).hexdigest()


def load(rest: str, *, labels: Any = None, trust_pickle: bool = False, copies: int = 6) -> HiddenWords:
    """`hidden:MODEL`, where MODEL is anything that can be attacked."""
    return HiddenWords(unfooled.load_victim(rest, labels=labels, trust_pickle=trust_pickle), copies=copies)


def main() -> None:
    texts = ["a good film", "a superb and moving story", "dull, slow and pointless", "terrible acting"]
    check_defense(HiddenWords, unfooled.load_victim("fake"), texts)
    registry.register("victim", "hidden", load)
    rows = [(text, "positive" if i < 2 else "negative") for i, text in enumerate(texts)] * 5
    data = unfooled.Dataset.from_pairs(rows)
    with tempfile.TemporaryDirectory() as folder:
        evaluation = unfooled.evaluate(
            {"base": "fake", "hidden": "hidden:base"},
            data,
            "deepwordbug",
            out=folder,
            averages=(4,),
            draws=21,
        )
        print(evaluation.verdicts["hidden"].sentence)


if __name__ == "__main__":
    main()
