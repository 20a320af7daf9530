"""A victim of our own: a list of forbidden words, each with a weight, as many a comment filter is built.

Run it: `python victim.py`. It checks the victim against the rules for victims, attacks it, and prints what
got past.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import unfooled
from unfooled.plugins import registry
from unfooled.victims.checks import check_victim


class WordFilter:
    """Everything that an attack may ask of a classifier; nothing need be inherited."""

    labels = ("fine", "abusive")
    capabilities = frozenset({"probabilities"})  # a victim that only decides has none: frozenset()
    batch_size = 1000  # the most texts that one call of `predict` should get
    concurrency = 1  # calls at once; more for a victim that waits for a network

    def __init__(self, weights: dict[str, float], *, threshold: float = 1.0, name: str = "filter") -> None:
        self.weights = weights
        self.threshold = threshold
        self.name = name

    def predict(self, texts: Sequence[str | tuple[str, ...]], /) -> np.ndarray:
        """One row per text, one column per label, float64, rows that sum to 1. No texts: no rows."""
        strings = [text if isinstance(text, str) else "\n".join(text) for text in texts]
        found = [sum(self.weights.get(word, 0.0) for word in text.lower().split()) for text in strings]
        abusive = 1 / (1 + np.exp(self.threshold - np.array(found, dtype=np.float64)))
        return np.stack([1 - abusive, abusive], axis=1)

    def fingerprint(self) -> str:
        """Changes when the answers may change. A run that was stopped goes on only with the same victim."""
        content = json.dumps([self.weights, self.threshold], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def load(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, threshold: float = 1.0
) -> WordFilter:
    """What `--model filter:words.json` calls; `rest` is what stands after the colon."""
    path = Path(rest)
    if not path.is_file():
        raise unfooled.UserError(f"there is no word list {path}", "write filter:FILE.json")
    return WordFilter(json.loads(path.read_text(encoding="utf-8")), threshold=threshold, name=path.stem)


def main() -> None:
    registry.register("victim", "filter", load)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.json"
        path.write_text(json.dumps({"idiot": 3.0, "stupid": 2.0, "trash": 2.0}), encoding="utf-8")
        victim = unfooled.load_victim(f"filter:{path}", threshold=1.5)
        check_victim(victim, ["you idiot", "a fine day", "trash"])
        comments = [("you idiot", "abusive"), ("this is stupid trash", "abusive"), ("a fine day", "fine")]
        run = unfooled.attack(victim, comments, "deepwordbug", out=Path(folder) / "run")
        for result in run.results():
            print(result.outcome, repr(result.original), "→", repr(result.perturbed))


if __name__ == "__main__":
    main()
