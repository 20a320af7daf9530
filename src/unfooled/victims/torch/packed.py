"""Texts of different lengths through BERT side by side, without padding.

Small passes are slow: a core computes 64 short texts three times as fast per text as one, and texts that
attacks ask about are of many lengths. Linear layers, norms and activations read one token at a time, so all
tokens go through them together; attention alone goes length by length. The head reads the first token
of each text, so the last layer computes nothing else behind its attention. The answers are those of the
ordinary pass, bit for bit: this rests on oneDNN, and is tried out on a model before it is trusted.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from unfooled.device import CPU, FULL
from unfooled.linear import has_fast_linear
from unfooled.passes import answering, device_of, precision_of
from unfooled.victims.torch.tokens import Tokens, tensors

_TRIED = (5, 9, 9, 12, 3, 27)  # lengths of the texts that a model is tried out with


def is_packable(model: Any) -> bool:
    """Whether this model's passes without gradients may be packed, as it is now."""
    from transformers import BertForSequenceClassification

    if type(model) is not BertForSequenceClassification or not has_fast_linear():
        return False
    config: Any = model.config
    return (
        device_of(model).type == CPU
        and precision_of(model) == FULL
        and not model.training
        and getattr(config, "_attn_implementation", "") == "sdpa"
        and not config.is_decoder
        and not config.chunk_size_feed_forward
        and not any(map(_is_watched, model.modules()))
    )


def _is_watched(module: Any) -> bool:
    """Whether somebody listens to it or replaced what it does, and expects its ordinary inputs."""
    import torch

    # Linear layers are ours: see `make_steady`.
    replaced = "forward" in vars(module) and type(module) is not torch.nn.Linear
    return bool(replaced or module._forward_hooks or module._forward_pre_hooks)


def packs_exactly(model: Any) -> bool:
    """Whether packed passes of made-up texts give the ordinary passes' bits."""
    if not is_packable(model):
        return False
    limit = model.config.max_position_embeddings
    lengths = [min(length, limit) for length in _TRIED]
    vocabulary = model.config.vocab_size
    texts: list[Tokens] = [
        (tuple((7 * place * length + place) % vocabulary for place in range(length)), ())
        for length in lengths
    ]
    with contextlib.suppress(Exception), answering(model):
        together = packed_logits(model, texts)
        apart = [model(**tensors([text], len(text[0]))).logits[0] for text in texts]
        return all(bool((a == b).all()) for a, b in zip(together, apart, strict=True))
    return False


def packed_logits(model: Any, texts: Sequence[Tokens]) -> Any:
    """The logits of token sequences of any lengths, in their order."""
    import torch

    order = sorted(range(len(texts)), key=lambda index: len(texts[index][0]))
    lengths = [len(texts[index][0]) for index in order]
    groups = [(length, len(list(same))) for length, same in itertools.groupby(lengths)]
    body: Any = model.bert
    hidden = body.embeddings(
        input_ids=torch.tensor([[token for index in order for token in texts[index][0]]]),
        token_type_ids=torch.tensor([[kind for index in order for kind in _kinds(texts[index])]]),
        position_ids=torch.tensor([[place for length in lengths for place in range(length)]]),
    )
    firsts = torch.tensor([0, *itertools.accumulate(lengths[:-1])])
    *layers, last = body.encoder.layer
    for layer in layers:
        mixed = _attended(layer.attention.self, hidden, groups)
        hidden = layer.feed_forward_chunk(layer.attention.output(mixed, hidden))
    mixed = _attended(last.attention.self, hidden, groups)[:, firsts]
    hidden = last.feed_forward_chunk(last.attention.output(mixed, hidden[:, firsts]))
    found = model.classifier(model.dropout(body.pooler(hidden.transpose(0, 1))))
    logits = torch.empty_like(found)
    logits[torch.tensor(order)] = found
    return logits


def _kinds(text: Tokens) -> Sequence[int]:
    ids, kinds = text
    return kinds or (0,) * len(ids)


def _attended(layer: Any, hidden: Any, groups: Sequence[tuple[int, int]]) -> Any:
    """Self-attention, in which tokens see those of their own text; texts of a length are computed at once."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    states = [part(hidden)[0] for part in (layer.query, layer.key, layer.value)]
    found, start = [], 0
    for length, count in groups:
        end = start + length * count
        shape = (count, length, layer.num_attention_heads, layer.attention_head_size)
        query, key, value = (part[start:end].view(shape).transpose(1, 2) for part in states)
        mixed = scaled_dot_product_attention(query, key, value, scale=layer.scaling)
        found.append(mixed.transpose(1, 2).reshape(length * count, -1))
        start = end
    return torch.cat(found)[None]
