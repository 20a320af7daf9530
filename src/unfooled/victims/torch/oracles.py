"""The inside of a victim as oracles: programs ask, and the questions of many share a pass.

Items are hashable and say everything: `GradientItem(mark(text), label)`, `mark(text)`, or a text's value.
What programs see is rounded to a grid well above the noise of float32, as the victim's scores are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from unfooled.core.questions import GradientItem, Numbers, Of, Pool, Query, Reduce, WordVectors
from unfooled.core.victim import Victim, require_choice
from unfooled.core.victim_oracle import DECIMALS
from unfooled.errors import CapabilityError
from unfooled.victims.torch.whitebox import WhiteBoxVictim, is_white_box

BITS = 16  # kept of the largest number of an answer; gradients have no natural scale
BATCH = 256  # answers are matrices: fewer of them at a time than scores


class _Inside:
    batch_size = BATCH
    needs = ""

    def __init__(self, victim: Victim) -> None:
        if self.needs not in victim.capabilities or not is_white_box(victim):
            raise CapabilityError(
                f"{victim.name} gives no {self.needs}", "use a torch model, or an attack that needs none"
            )
        self.victim: WhiteBoxVictim = victim


class GradientOracle(_Inside):
    """`GradientItem` → `WordVectors`."""

    needs = "gradients"
    cacheable = False  # a matrix per text: a search asks once and keeps what it needs

    def __init__(self, victim: Victim, *, of: Of = "loss") -> None:
        super().__init__(victim)
        self.of = of

    def __call__(self, items: Sequence[Any], /) -> list[WordVectors]:
        asked = [GradientItem(*item) for item in items]
        answers = self.victim.gradients(
            [item.text for item in asked], [item.label for item in asked], of=self.of
        )
        return [replace(answer, vectors=steady(answer.vectors)) for answer in answers]


class AttentionOracle(_Inside):
    """`Marked` → attention received per word; with `special`, then that of each special token."""

    needs = "attention"

    def __init__(
        self,
        victim: Victim,
        *,
        layer: int = 0,
        reduce: Reduce = "mean-heads",
        query: Query = "mean",
        special: bool = False,
    ) -> None:
        super().__init__(victim)
        require_choice(query, Query, "the query")
        self.layer = layer
        self.reduce = reduce
        # A plug-in's victim may know the layer and the heads alone: it is not told of defaults.
        self.more: dict[str, Any] = {"query": query} if query != "mean" else {}
        if special:
            self.more["special"] = True

    def __call__(self, items: Sequence[Any], /) -> list[Numbers]:
        answers = self.victim.attention(list(items), layer=self.layer, reduce=self.reduce, **self.more)
        return [np.round(answer, DECIMALS) for answer in answers]


class EmbeddingOracle(_Inside):
    """`Marked` → `WordVectors` of one layer (0: what the first layer reads, -1: the last one's output)."""

    needs = "embeddings"
    cacheable = False

    def __init__(self, victim: Victim, *, layer: int = -1) -> None:
        super().__init__(victim)
        self.layer = layer

    def __call__(self, items: Sequence[Any], /) -> list[WordVectors]:
        answers = self.victim.embeddings(list(items))
        return [
            WordVectors(answer.words, answer.pieces, steady(answer.layers[self.layer])) for answer in answers
        ]


class SentenceOracle(_Inside):
    """A text's value (string, or one string per field) → its vector."""

    needs = "embeddings"

    def __init__(self, victim: Victim, *, pool: Pool = "head") -> None:
        super().__init__(victim)
        self.pool = pool

    def __call__(self, items: Sequence[Any], /) -> list[Numbers]:
        return [steady(row) for row in self.victim.sentence_vectors(list(items), pool=self.pool)]


class HeadOracle(_Inside):
    """Any item → the weights of the last layer, which reads the vectors of `sentence:head`."""

    needs = "embeddings"

    def __init__(self, victim: Victim) -> None:
        super().__init__(victim)
        weights = getattr(victim, "head_weights", None)
        if weights is None:
            raise CapabilityError(
                f"{victim.name} does not show the layer that decides", "use a single torch model"
            )
        self._weights: Numbers = weights()

    def __call__(self, items: Sequence[Any], /) -> list[Numbers]:
        return [self._weights] * len(items)


def open_gradients(victim: Victim, of: str) -> GradientOracle:
    """`gradients:loss`, `gradients:logit` or `gradients:squared-logits`."""
    require_choice(of or "loss", Of, "the gradient's object")
    return GradientOracle(victim, of=cast(Of, of or "loss"))


def open_attention(victim: Victim, variant: str) -> AttentionOracle:
    """`attention:0` is the first layer, `attention:-1` the last.

    `attention:0:cls` is what [CLS] attends to; `attention:0:mean:special` has the special tokens as well.
    """
    layer, query, special = (*variant.split(":"), "", "")[:3]
    if special not in ("", "special"):
        raise ValueError(f"attention of {special!r}: behind the query comes `special`, or nothing")
    return AttentionOracle(
        victim, layer=int(layer or "0"), query=cast(Query, query or "mean"), special=bool(special)
    )


def open_embeddings(victim: Victim, layer: str) -> EmbeddingOracle:
    """`embeddings:0` is what the first layer reads, `embeddings:-1` what the last one says."""
    return EmbeddingOracle(victim, layer=int(layer or "-1"))


def open_sentence_vectors(victim: Victim, pool: str) -> SentenceOracle:
    """`sentence:head` or `sentence:mean`."""
    require_choice(pool or "head", Pool, "the pool")
    return SentenceOracle(victim, pool=cast(Pool, pool or "head"))


def open_head(victim: Victim, _: str) -> HeadOracle:
    return HeadOracle(victim)


def steady(values: Numbers) -> Numbers:
    """Rounded to a grid of 2^-16 of the largest number, or a little finer."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest or not np.isfinite(largest):
        return values
    _, exponent = np.frexp(largest)
    scaled = np.ldexp(values.astype(np.float64), BITS - int(exponent))
    return np.ldexp(np.round(scaled), int(exponent) - BITS).astype(np.float32)
