"""Configurations of the models that are trained from nothing.

This file and `modeling` subclass classes of transformers, so importing them loads it; everything else in
the package imports them only where a model is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unfooled.errors import VictimError
from unfooled.extras import libraries_of

with libraries_of("torch", "transformers", needed_for="a word model"):
    from transformers import BertConfig, PretrainedConfig

KINDS = ("lstm", "bilstm-attention", "word-cnn")
POOLS = ("last", "mean")


class WordModelConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """`kind` chooses the architecture; the fields that another kind needs are kept but not used.

    - lstm: `layers` of `hidden_size` units, `bidirectional` or not, read out by `pool`: the last word's
      state, or the mean over the words.
    - bilstm-attention: the same layers in both directions, read out by additive attention of
      `attention_size` units.
    - word-cnn: `filters` windows of each of the `widths`, the strongest over the text.
    """

    model_type = "unfooled-words"
    attribute_map = {"num_hidden_layers": "layers"}  # noqa: RUF012 (the library's own spelling)

    def __init__(
        self,
        *,
        kind: str = "lstm",
        vocab_size: int = 20_003,
        embedding_size: int = 50,
        hidden_size: int = 64,
        layers: int = 1,
        bidirectional: bool = False,
        pool: str = "last",
        attention_size: int = 64,
        filters: int = 100,
        widths: Sequence[int] = (3, 4, 5),
        dropout: float = 0.25,
        frozen_embeddings: bool = False,
        pad_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        self.kind = _one_of("kind", kind, KINDS)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.layers = layers
        self.bidirectional = bidirectional
        self.pool = _one_of("pool", pool, POOLS)
        self.attention_size = attention_size
        self.filters = filters
        self.widths = list(widths)
        self.dropout = dropout
        self.frozen_embeddings = frozen_embeddings
        sizes = (vocab_size, embedding_size, hidden_size, layers, attention_size, filters, *self.widths)
        if min(sizes) < 1 or not self.widths or not 0 <= dropout < 1:
            raise VictimError(
                "a word model needs sizes of at least 1 and a dropout from 0 to below 1",
                "check hidden_size, layers, filters, widths and dropout",
            )
        self.pad_token_id = pad_token_id
        super().__init__(**(kwargs | {"pad_token_id": pad_token_id}))


def bert_scratch_config(
    *,
    vocab_size: int,
    num_labels: int = 2,
    hidden_size: int = 128,
    layers: int = 3,
    heads: int = 4,
    dropout: float = 0.1,
    max_length: int = 250,
    **kwargs: Any,
) -> BertConfig:
    """Self-attention without pretraining: a small BERT for `build_word_tokenizer(..., bert=True)`.

    `BertForSequenceClassification(bert_scratch_config(...))` is the BERT_NOPT of Hsieh et al. (2019): three
    layers of self-attention.
    """
    if hidden_size % heads:
        raise VictimError(
            f"{hidden_size} hidden units cannot be shared among {heads} heads",
            "choose a hidden size that the number of heads divides",
        )
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        max_position_embeddings=max_length,
        type_vocab_size=2,
        pad_token_id=0,
        **(kwargs | {"num_labels": num_labels}),
    )


def _one_of(name: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise VictimError(f"a word model has no {name} {given!r}", f"use one of {', '.join(known)}")
    return given
