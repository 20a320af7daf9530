"""Small masked and causal language models, made from nothing and saved as a user would have them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tiny_models import POSITIONS, bytelevel, wordpiece
from unfooled.resources.encoders import quiet

WIDE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
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
    config: Any
    if kind == "bert":
        config = transformers.BertConfig(**size, **WIDE, max_position_embeddings=positions)
    elif kind == "roberta":
        config = transformers.RobertaConfig(
            **size, **WIDE, max_position_embeddings=positions + 2, type_vocab_size=1
        )
    elif kind == "distilbert":
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        config = transformers.DistilBertConfig(
            **size, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=positions
        )
    elif kind == "electra":
        config = transformers.ElectraConfig(
            **size, **WIDE, embedding_size=16, max_position_embeddings=positions
        )
    elif kind == "albert":
        config = transformers.AlbertConfig(
            **size, **WIDE, embedding_size=16, max_position_embeddings=positions
        )
    else:
        config = transformers.ModernBertConfig(
            **size, **WIDE, max_position_embeddings=positions, cls_token_id=2, sep_token_id=3
        )
    torch.manual_seed(seed)
    model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0)
    return model, tokenizer


def causal(*, seed: int = 3) -> tuple[Any, Any]:
    import torch

    transformers: Any = import_module("transformers")
    tokenizer = bytelevel()
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=64,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0)
    return model, tokenizer


def save(pair: tuple[Any, Any], folder: Path) -> Path:
    with quiet():
        for part in pair:
            part.save_pretrained(folder)
    return folder
