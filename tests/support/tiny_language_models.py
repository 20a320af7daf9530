"""Small masked and causal language models, made from nothing and saved as a user would have them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tiny_models import GPT2_WIDTHS, POSITIONS, bytelevel, enlarge, reading_config, wordpiece
from unfooled.resources.encoders import quiet

MASKED = ("bert", "roberta", "distilbert", "electra", "albert", "modernbert")


def masked_tokenizer() -> Any:
    tokenizer = wordpiece()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    return tokenizer


def masked(kind: str = "bert", *, seed: int = 3, positions: int = POSITIONS) -> tuple[Any, Any]:
    """A random masked language model and its tokenizer; its weights are large enough for texts to differ."""
    import torch

    transformers: Any = import_module("transformers")
    tokenizer = bytelevel() if kind == "roberta" else masked_tokenizer()
    size = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = reading_config(kind, tokenizer, positions, **size)
    torch.manual_seed(seed)
    model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    enlarge(model, 4.0)
    return model, tokenizer


def causal(*, seed: int = 3) -> tuple[Any, Any]:
    import torch

    transformers: Any = import_module("transformers")
    tokenizer = bytelevel()
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **GPT2_WIDTHS, n_positions=64, **ends)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    enlarge(model, 4.0)
    return model, tokenizer


def save(pair: tuple[Any, Any], folder: Path) -> Path:
    with quiet():
        for part in pair:
            part.save_pretrained(folder)
    return folder
