"""The default sentence encoder read directly: the same numbers as sentence-transformers, without its imports.

That library loads transformers, datasets and scikit-learn, which takes longer than a small attack. The
network is six plain layers, so here are its steps, in the same order and with the same torch functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.packing import attended, stretches

_REMEDY = "delete its folder and run: unfooled resources get minilm"
_EXPECTED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}


class MiniLM:
    """What `encoders.Encoder` needs of a sentence-transformers model, and no more.

    All texts of a call have the same length: nothing is padded, and no position is masked. `packed` takes
    several lengths, and gives each text the same bits.
    """

    default_prompt_name = None
    prompts: Mapping[str, str] = {}

    def __init__(
        self, weights: Mapping[str, Any], config: Mapping[str, Any], tokenizer: Any, max_seq_length: int
    ) -> None:
        self._weights = dict(weights)
        self._heads = int(config["num_attention_heads"])
        self._layers = int(config["num_hidden_layers"])
        self._epsilon = float(config["layer_norm_eps"])
        self._tokenizer = tokenizer
        self.max_seq_length = max_seq_length

    @property
    def device(self) -> Any:
        return next(iter(self._weights.values())).device

    def to(self, device: Any) -> MiniLM:
        self._weights = {name: weight.to(device) for name, weight in self._weights.items()}
        return self

    def tokenizer(
        self, texts: Sequence[str], *, truncation: bool, max_length: int, padding: bool
    ) -> dict[str, list[list[int]]]:
        """Called as a tokenizer of transformers is; the tokens are cut where `load` said."""
        assert truncation
        assert not padding
        assert max_length == self.max_seq_length
        return {"input_ids": [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]}

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        ids = batch["input_ids"]
        table = self._weights["embeddings.position_embeddings.weight"]
        states = self._read(ids, table[: ids.shape[1]], self._attention)
        return {"sentence_embedding": self._mean(states)}

    def packed(self, texts: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Of texts that are sorted by their length."""
        import torch

        parts = stretches([len(text) for text in texts])
        table = self._weights["embeddings.position_embeddings.weight"]
        positions = torch.cat([torch.arange(length).repeat(many) for many, length in parts])
        ids = torch.tensor([[number for text in texts for number in text]])
        states = self._read(ids, table[positions], partial(attended, self._attention, parts=parts))
        found, first = [], 0
        for many, length in parts:
            own = states[0, first : first + many * length]
            found.append(self._mean(own.view(many, length, -1)))
            first += many * length
        return {"sentence_embedding": torch.cat(found)}

    def _read(self, ids: Any, positions: Any, attention: Callable[..., Any]) -> Any:
        """The last states of all tokens."""
        from torch.nn import functional

        weights = self._weights
        table = "embeddings.{}_embeddings.weight".format
        states = functional.embedding(ids, weights[table("word")]) + weights[table("token_type")][0]
        states = states + positions
        states = self._norm(states, "embeddings.LayerNorm")
        for layer in range(self._layers):
            prefix = f"encoder.layer.{layer}"
            mixed = self._linear(self._attend(states, prefix, attention), f"{prefix}.attention.output.dense")
            states = self._norm(mixed + states, f"{prefix}.attention.output.LayerNorm")
            inner = functional.gelu(self._linear(states, f"{prefix}.intermediate.dense"))
            outer = self._linear(inner, f"{prefix}.output.dense")
            states = self._norm(outer + states, f"{prefix}.output.LayerNorm")
        return states

    def _mean(self, states: Any) -> Any:
        import torch

        texts, length, _ = states.shape
        mean = states.sum(dim=1) / torch.full((texts, 1), float(length), device=states.device)
        return torch.nn.functional.normalize(mean, p=2, dim=1)

    def _attend(self, states: Any, prefix: str, attention: Callable[..., Any]) -> Any:
        texts, length, width = states.shape
        query, key, value = (
            self._linear(states, f"{prefix}.attention.self.{part}")
            .view(texts, length, self._heads, -1)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        )
        return attention(query, key, value).transpose(1, 2).reshape(texts, length, width)

    def _attention(self, query: Any, key: Any, value: Any) -> Any:
        from torch.nn.functional import scaled_dot_product_attention

        return scaled_dot_product_attention(query, key, value, scale=query.shape[-1] ** -0.5)

    def _linear(self, states: Any, name: str) -> Any:
        from torch.nn.functional import linear

        return linear(states, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, states: Any, name: str) -> Any:
        from torch.nn.functional import layer_norm

        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(states, (states.shape[-1],), weight, bias, self._epsilon)


def load(folder: Path) -> MiniLM:
    """The encoder in the folder of the resource `minilm`."""
    with libraries_of("torch", "safetensors", "tokenizers", needed_for="a sentence encoder"):
        from safetensors.torch import load_file
        from tokenizers import Tokenizer
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if strange := {
            name: config.get(name) for name, kind in _EXPECTED.items() if config.get(name) != kind
        }:
            raise ValueError(f"another kind of model, {strange}")
        settings = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        longest = int(settings["max_seq_length"])
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(longest)
        return MiniLM(load_file(folder / "model.safetensors"), config, tokenizer, longest)
    except Exception as error:  # the libraries raise their own kinds
        raise ResourceError(f"the sentence encoder in {folder} cannot be read: {error}", _REMEDY) from error
