"""Hugging Face classifiers asked about texts of several lengths in one pass; see `unfooled.packing`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from threading import get_ident
from typing import Any

from unfooled.device import CPU, FULL
from unfooled.packing import Stretch, attended, stretches
from unfooled.passes import answering, device_of, precision_of
from unfooled.victims.torch.tokens import Tokens, tensors

# Where the encoder lies in the body of a model, by its family.
_ENCODERS = ("encoder", "transformer")
# These count positions from behind the padding token's.
SHIFTED = frozenset({"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "data2vec-text"})
_LONGEST = 512  # tokens that a model reads, where it does not say


@lru_cache(maxsize=1)
def _attention_mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    ordinary = torch.nn.functional.scaled_dot_product_attention

    class AttentionByLength(TorchFunctionMode):
        """Attention of each text to itself, where the model asks for that of all tokens to all."""

        def __init__(self, parts: Sequence[Stretch]) -> None:
            super().__init__()
            self.parts = parts
            self.used = 0

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is not ordinary:
                return function(*args, **(kwargs or {}))
            how = dict(kwargs or {})
            states = [*args, *(how.pop(name) for name in ("query", "key", "value")[len(args) :])]
            if len(states) > 3 or how.get("attn_mask") is not None or how.get("is_causal"):
                raise NotImplementedError("attention that does not look at all tokens")
            self.used += 1
            return attended(ordinary, *states, parts=self.parts, **how)

    return AttentionByLength


class PackedPasses:
    """The passes of one classifier over texts of several lengths."""

    def __init__(self, model: Any) -> None:
        self._model = model
        body = model.base_model
        self._encoder = next(part for name in _ENCODERS if (part := getattr(body, name, None)) is not None)
        config = model.config
        self._padding = (config.pad_token_id or 0) if config.model_type in SHIFTED else None

    @classmethod
    def of(cls, model: Any, specimen: Tokens) -> PackedPasses | None:
        """None for a model whose answers would change by so much as a bit, or that cannot be asked so."""
        body = getattr(model, "base_model", None)
        if (
            device_of(model).type != CPU
            or precision_of(model) != FULL
            or getattr(model.config, "_attn_implementation", "") != "sdpa"
            or not any(hasattr(body, name) for name in _ENCODERS)
            or is_watched(model)
            or "position_ids" not in inspect.signature(model.forward).parameters
        ):
            return None
        try:
            return cls(model) if cls(model)._agrees(specimen) else None
        except Exception:  # whatever such a model does with inputs of this kind
            return None

    def _agrees(self, specimen: Tokens) -> bool:
        import torch

        ids, kinds = specimen
        lengths = [len(ids), len(ids) - 1, len(ids) - 2]
        texts = [(ids[:length], kinds[:length]) for length in lengths]
        # More tokens than a text may have: some models cannot count so far.
        longest = getattr(self._model.config, "max_position_embeddings", None) or _LONGEST
        times = [2 * each + longest // sum(lengths) for each in (1, 2, 3)]
        together = self.logits([text for text, many in zip(texts, times, strict=True) for _ in range(many)])
        with answering(self._model):
            alone = [self._model(**tensors([text], len(text[0]))).logits for text in texts]
        expected = [row for row, many in zip(alone, times, strict=True) for _ in range(many)]
        return bool(torch.equal(together, torch.cat(expected)))

    def logits(self, tokenised: Sequence[Tokens]) -> Any:
        """Of texts that are sorted by their length."""
        import torch

        lengths = [len(ids) for ids, _ in tokenised]
        parts = stretches(lengths)
        firsts = torch.tensor([0, *accumulate(lengths)][:-1])
        inputs = {
            "input_ids": torch.tensor([[number for ids, _ in tokenised for number in ids]]),
            "position_ids": torch.tensor([[place for ids, _ in tokenised for place in self._places(ids)]]),
        }
        if tokenised[0][1]:
            inputs["token_type_ids"] = torch.tensor([[number for _, kinds in tokenised for number in kinds]])

        asking = get_ident()

        def first_tokens(_module: Any, _args: Any, output: Any) -> Any:
            if get_ident() != asking:  # an ordinary pass, or another's
                return output
            output.last_hidden_state = output.last_hidden_state[0, firsts][:, None]
            return output

        handle = self._encoder.register_forward_hook(first_tokens)
        attention = _attention_mode()(parts)
        try:
            with answering(self._model), attention:
                found = self._model(**inputs).logits
        finally:
            handle.remove()
        if not attention.used or len(found) != len(tokenised):
            raise NotImplementedError("a model without attention of the usual kind")
        return found

    def _places(self, ids: Sequence[int]) -> Iterable[int]:
        """The positions of a text's tokens. Models that count from behind the padding token's pass over it,
        and a text may hold its name."""
        if self._padding is None:
            return range(len(ids))
        counted = accumulate(number != self._padding for number in ids)
        return (
            self._padding + (place if number != self._padding else 0)
            for number, place in zip(ids, counted, strict=True)
        )


def is_watched(model: Any) -> bool:
    """Whether somebody listens to its modules or replaced what one does, and expects ordinary inputs."""
    import torch

    return any(
        module._forward_hooks
        or module._forward_pre_hooks
        # Linear layers are ours: see `make_steady`.
        or ("forward" in vars(module) and type(module) is not torch.nn.Linear)
        for module in model.modules()
    )
