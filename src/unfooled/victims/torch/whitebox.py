"""What a white-box victim says about the words of a text: gradients, attention, embeddings.

Texts are `Text` values (their words are those of the editable field), plain strings, tuples (the words of
their last field) or `Marked` values. Every array has one row per word. A word behind the cut of a long text,
or one that the tokenizer drops, has no token: its `pieces` are 0 and its numbers are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unfooled.core.questions import Counts, Numbers, Of, Pool, Query, Readable, Reduce, WordVectors
from unfooled.core.victim import Victim, gives


@dataclass(frozen=True, slots=True, eq=False)
class WordEmbeddings:
    """Embeddings per word, averaged over its pieces.

    `input` is what the embedding table says. `layers[0]` is what the first layer reads (with positions and
    normalisation where the model has them), `layers[n]` what layer n says, `layers[-1]` the last one.
    """

    words: tuple[str, ...]
    pieces: Counts  # [words]
    input: Numbers  # [words, dim]
    layers: tuple[Numbers, ...]  # one [words, dim] each; recurrent models change dim between layers


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMaps:
    """Every layer and head of one text, over tokens. Rows of the last axis sum to 1."""

    tokens: tuple[str, ...]
    words: tuple[str, ...]
    pieces: Counts  # [words]
    word_of: NDArray[np.intp]  # [tokens]; -1 for special tokens, gaps and the other field
    maps: tuple[
        Numbers, ...
    ]  # per layer [heads, queries, tokens]; one query where a model pools by attention


class WhiteBoxVictim(Victim, Protocol):
    """A victim with `gradients`, `attention` and `embeddings`; each may be missing from `capabilities`."""

    def pieces(self, texts: Sequence[Readable], /) -> list[Counts]:
        """How many tokens stand for each word."""
        ...

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        """Gradient for the input embeddings. `labels`: a class per text; None means the predicted one."""
        ...

    def jacobian(self, texts: Sequence[Readable], /) -> list[Numbers]:
        """Gradient of every pre-softmax output: [classes, words, dim] per text, averaged over pieces."""
        ...

    def attention(
        self,
        texts: Sequence[Readable],
        *,
        layer: int = 0,
        reduce: Reduce = "mean-heads",
        query: Query = "mean",
        special: bool = False,
    ) -> list[Numbers]:
        """Attention that each word receives, [words] per text.

        The mean over queries, or that of [CLS] alone, summed over a word's pieces: with `mean-heads` all
        tokens together get 1. With `special`, behind the words' come those of the special tokens, in order.
        """
        ...

    def attention_maps(self, texts: Sequence[Readable], /) -> list[AttentionMaps]: ...

    def embeddings(self, texts: Sequence[Readable], /) -> list[WordEmbeddings]: ...

    def sentence_vectors(self, texts: Sequence[Readable], *, pool: Pool = "head") -> Numbers:
        """One vector per text, [texts, dim]."""
        ...


def is_white_box(victim: Victim) -> TypeGuard[WhiteBoxVictim]:
    """Whether it has the methods; `capabilities` says which of them work."""
    inside = (
        "attention",
        "attention_maps",
        "embeddings",
        "gradients",
        "jacobian",
        "pieces",
        "sentence_vectors",
    )
    return gives(victim, *inside)
