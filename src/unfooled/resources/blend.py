"""Two fill-mask models as one: a word must please both.

The score of a word is the mean of the two models' log-probabilities. Each names its best `DEPTH` words; a
word that only one of them names gets the other's last score. A model that sees few words of context and one
that knows the kind of text make up for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.batching import Meter
from unfooled.resources.fillmask import FillIn, FillMaskOracle, MaskItem, WordItem

DEPTH = 500  # words that each model names, or ten times as many as are asked for


class Blend:
    """Answers fill-mask questions; company does not matter where it does not to either model."""

    def __init__(self, first: FillMaskOracle, second: FillMaskOracle) -> None:
        self._models = (first, second)
        self.batch_size = min(first.batch_size, second.batch_size)
        self.apart = any(getattr(model, "apart", False) for model in self._models)
        self.meter: Meter | None = getattr(first, "meter", None) or getattr(second, "meter", None)

    def __call__(self, items: Sequence[MaskItem | WordItem], /) -> list[tuple[FillIn, ...]]:
        # Too small a number goes on as it is, for the models to refuse.
        deep = [item._replace(k=max(DEPTH, 10 * item.k) if item.k > 0 else item.k) for item in items]
        first, second = (model(deep) for model in self._models)
        return [_mean(*both)[: item.k] for item, *both in zip(items, first, second, strict=True)]


def _mean(first: tuple[FillIn, ...], second: tuple[FillIn, ...]) -> tuple[FillIn, ...]:
    scores, others = dict(first), dict(second)
    least, least_other = first[-1].score, second[-1].score
    words = dict.fromkeys([*scores, *others])
    found = [
        FillIn(word, round((scores.get(word, least) + others.get(word, least_other)) / 2, 6))
        for word in words
    ]
    # Equals stay in the first model's order.
    return tuple(sorted(found, key=lambda fill: -fill.score))
