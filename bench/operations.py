"""Operations per text of the models that attacks ask, counted by torch, and what they would mean on an A100.

    python bench/operations.py

The rates are computed on paper: no GPU was asked. A pass is bounded by arithmetic (half of the peak is taken,
what dense layers of this size reach in practice) or by memory traffic (weights once per pass, activations
three times in every layer), whichever is slower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

# NVIDIA's data sheet of the A100 80GB SXM: dense operations per second, bytes per second, bytes.
PEAK = {"fp32": 19.5e12, "fp16, bf16": 312e12}
BANDWIDTH, MEMORY = 2.0e12, 80e9
REACHED, SHARE = 0.5, 0.6


class Kind(NamedTuple):
    name: str
    config: Any
    head: str
    tokens: int


KINDS = (
    Kind("BERT-base victim, review sentence", transformers.BertConfig(), "SequenceClassification", 32),
    Kind("BERT-base victim, review", transformers.BertConfig(), "SequenceClassification", 256),
    Kind("BERT-base victim, longest text", transformers.BertConfig(), "SequenceClassification", 512),
    Kind("BERT-base as masked language model", transformers.BertConfig(), "MaskedLM", 128),
    Kind(
        "MiniLM (6 layers of 384)",
        transformers.BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
        ),
        "SequenceClassification",
        32,
    ),
    Kind(
        "SmolLM2-135M as judge",
        transformers.LlamaConfig(
            hidden_size=576,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            intermediate_size=1536,
            vocab_size=49152,
        ),
        "CausalLM",
        64,
    ),
)


def main() -> None:
    print("| model | tokens | GFLOP per text | tokens per pass | texts/s fp32 | texts/s fp16, bf16 |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        with torch.device("meta"):
            model = getattr(transformers, f"AutoModelFor{kind.head}").from_config(kind.config).eval()
            ids = torch.zeros(1, kind.tokens, dtype=torch.long)
        counter = FlopCounterMode(display=False)
        with counter, torch.inference_mode():
            if kind.head == "MaskedLM":  # only the gap goes through the head
                model.cls(model.base_model(input_ids=ids)[0][:, :1])
            else:
                model(input_ids=ids)
        operations = counter.get_total_flops()
        weights = 4 * sum(weight.numel() for weight in model.parameters())
        layer, scores = _activations(kind)
        per_token = layer + scores
        pass_size = min(131_072, 1 << (int(SHARE * (MEMORY - weights) / per_token).bit_length() - 1))
        texts = pass_size // kind.tokens
        rates = []
        for peak in PEAK.values():
            arithmetic = texts * operations / (peak * REACHED)
            moved = pass_size * (3 * kind.config.num_hidden_layers * layer + 2 * scores)
            traffic = (weights + moved) / BANDWIDTH
            rates.append(texts / max(arithmetic, traffic))
        shown = " | ".join(f"{rate:,.0f}" for rate in rates)
        print(f"| {kind.name} | {kind.tokens} | {operations / 1e9:.2f} | {pass_size:,} | {shown} |")


def _activations(kind: Kind) -> tuple[int, int]:
    """Bytes that live at once for a token: in one layer, and as scores of a vocabulary."""
    config = kind.config
    wide = config.intermediate_size + 6 * config.hidden_size
    return 4 * wide, 8 * config.vocab_size if kind.head == "CausalLM" else 0


if __name__ == "__main__":
    main()
