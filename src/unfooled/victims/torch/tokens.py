"""From texts to the tokens that a model reads, cut where its reach ends, and on to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

# Token ids, and segment ids for models that tell the texts of a pair apart.
Tokens: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def tokenise(
    tokenizer: Any, first: list[str], second: list[str] | None, max_length: int
) -> tuple[list[Tokens], int]:
    """The tokens of every text (or pair), and how many were longer than `max_length` and were cut."""
    if _is_ordinary(tokenizer):
        return _without_positions(tokenizer, first, second, max_length)
    settings = {"return_attention_mask": False, "verbose": False}
    encoded = tokenizer(first, second, truncation=True, max_length=max_length, **settings)
    ids, kinds = encoded["input_ids"], encoded.get("token_type_ids")
    cut = 0
    for row, sequence in enumerate(ids):
        if len(sequence) >= max_length:  # such a tokenizer does not say whether it left anything out
            (whole,) = tokenizer([first[row]], [second[row]] if second else None, **settings)["input_ids"]
            cut += len(whole) > max_length
    return [(tuple(sequence), tuple(kinds[row]) if kinds else ()) for row, sequence in enumerate(ids)], cut


def tensors(tokenised: Sequence[Tokens], width: int, padding: int = 0) -> dict[str, Any]:
    """The model's inputs: rows of `width` tokens, with a mask where there is any padding."""
    import torch

    rows = [_filled(ids, width, padding) for ids, _ in tokenised]
    inputs = {"input_ids": torch.tensor(rows, dtype=torch.long)}
    if tokenised[0][1]:
        inputs["token_type_ids"] = torch.tensor([_filled(kinds, width, 0) for _, kinds in tokenised])
    lengths = [len(ids) for ids, _ in tokenised]
    if min(lengths) < width:
        inputs["attention_mask"] = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    return inputs


def _filled(row: tuple[int, ...], width: int, value: int) -> tuple[int, ...]:
    return row + (value,) * (width - len(row))


def _is_ordinary(tokenizer: Any) -> bool:
    """Whether the library would hand the texts to its compiled tokenizer just as they are."""
    from transformers import PreTrainedTokenizerFast as Ordinary

    return isinstance(tokenizer, Ordinary) and all(
        getattr(type(tokenizer), name, None) is getattr(Ordinary, name, None)
        for name in ("__call__", "_encode_plus", "set_truncation_and_padding")
    )


def _without_positions(
    tokenizer: Any, first: list[str], second: list[str] | None, max_length: int
) -> tuple[list[Tokens], int]:
    """Where in the text the tokens are takes a third of the time to find out, and is not needed here."""
    backend = tokenizer.backend_tokenizer
    # What every call through the library sets, too.
    backend.enable_truncation(max_length, direction=tokenizer.truncation_side)
    backend.no_padding()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    encodings = backend.encode_batch_fast(first if second is None else list(zip(first, second, strict=True)))
    cut = sum(len(encoding) >= max_length and bool(encoding.overflowing) for encoding in encodings)
    if "token_type_ids" in tokenizer.model_input_names:
        return [(tuple(encoding.ids), tuple(encoding.type_ids)) for encoding in encodings], cut
    return [(tuple(encoding.ids), ()) for encoding in encodings], cut
