"""Fluency by a causal language model, and how SmolLM2 becomes one that `transformers` reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from unfooled.batching import Meter, like_length
from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.passes import OnDevice, Passes, answering, placed, to_device, to_host, tokens_that_fit
from unfooled.resources.encoders import quiet
from unfooled.resources.fluency import Score, Token
from unfooled.resources.pretrained import longest_input
from unfooled.resources.store import Progress, Store, silent

WINDOW = 512  # tokens of a text that are read
MAX_TOKENS = 1024  # per forward pass: the whole vocabulary is scored at each of them
MIN_ROWS = 32  # fewer take another path through a matrix product, with other last digits
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


class CausalLM(OnDevice):
    """Log-probability of texts, each token given those before it. Texts of equal length go together, so
    that nothing is padded and a score does not depend on the texts beside it."""

    batch_size = 1024

    def __init__(self, model: Any, tokenizer: Any, *, window: int = WINDOW, max_tokens: int = 0) -> None:
        self.model = model = placed(model, given=True)
        self.tokenizer = tokenizer
        self.window = min(window, longest_input(model.config, tokenizer))
        self.max_tokens = max_tokens or tokens_that_fit(
            model, MAX_TOKENS, self.window, lambda ids: model(input_ids=ids, use_cache=False).logits.float()
        )
        self.meter = Meter()
        self._start = _start_token(model, tokenizer)

    def __call__(self, items: Sequence[str], /) -> list[Score]:
        if not items:
            return []
        rows, _ = self._encode(items)
        scores = [Score(0.0, 0)] * len(items)
        for batch in Passes(self, like_length([len(row) for row in rows], self.max_tokens, most=0)):
            length = batch.width
            if length == 1:
                continue  # nothing to read
            with batch as group:
                began = time.perf_counter()
                members = list(group)
                while len(members) * length < MIN_ROWS:
                    members += group
                totals = self._totals([rows[i] for i in members])
                for index, total in zip(group, totals, strict=False):
                    scores[index] = Score(round(total, 5), length - 1)
                padding = (len(members) - len(group)) * length
                self.meter.add(len(group), len(group) * length, padding, time.perf_counter() - began)
        return scores

    def tokens(self, items: Sequence[str], /) -> list[list[Token]]:
        """Log-probability of each token, and which characters of the text it is; of the first `window`."""
        if not items:
            return []
        rows, places_of = self._encode(items, places=True)
        found: list[list[Token]] = [[] for _ in items]
        for batch in Passes(self, like_length([len(row) for row in rows], self.max_tokens, most=0)):
            if batch.width == 1:
                continue  # nothing to read
            with batch as group:
                values = self._log_probabilities([rows[i] for i in group]).tolist()
                for index, row in zip(group, values, strict=True):
                    places = places_of[index]
                    found[index] = [
                        Token(start, end, round(value, 5))
                        for (start, end), value in zip(places, row, strict=False)
                    ]
        return found

    def _encode(self, items: Sequence[str], *, places: bool = False) -> tuple[list[list[int]], Any]:
        """Tokens behind the one that begins a text, and which characters they are where that is asked."""
        encoded = self.tokenizer(
            list(items),
            add_special_tokens=False,
            split_special_tokens=True,
            return_attention_mask=False,
            return_offsets_mapping=places,
            verbose=False,
        )
        rows = [[self._start, *ids[: self.window - 1]] for ids in encoded["input_ids"]]
        return rows, encoded.get("offset_mapping")

    def _totals(self, rows: list[list[int]]) -> list[float]:
        totals: list[float] = self._log_probabilities(rows).sum(dim=1).tolist()
        return totals

    def _log_probabilities(self, rows: list[list[int]]) -> Any:
        import torch

        with answering(self.model):
            ids = to_device(torch.tensor(rows), self.model)
            logits = self.model(input_ids=ids, use_cache=False).logits[:, :-1].float()
            of_own = logits.gather(2, ids[:, 1:, None])[:, :, 0] - logits.logsumexp(dim=2)
            return to_host(of_own).double()


def _start_token(model: Any, tokenizer: Any) -> int:
    """What stands before the first word, so that it has a probability too."""
    for token in (tokenizer.bos_token_id, model.config.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    raise ResourceError(
        "the language model's tokenizer has neither a start nor an end token",
        "use a causal language model with its own tokenizer",
    )


def build(store: Store, folder: Path, progress: Progress = silent) -> dict[str, Any]:
    """Unpack the four-bit weights once (half a minute) and write them as safetensors of 16 bits."""
    with quiet():
        with libraries_of("language", "accelerate", "gguf", "torch", needed_for="unpacking SmolLM2"):
            import accelerate  # type: ignore[import-untyped]  # noqa: F401
            import gguf  # noqa: F401
            import torch
        transformers: Any = import_module("transformers")
        progress("smollm2: unpacking weights", None)
        source = str(store.path("smollm2-gguf"))
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source, gguf_file=_GGUF, trust_remote_code=False
        )
        with _no_bar():
            read: Any = transformers.AutoModelForCausalLM.from_pretrained(
                source, gguf_file=_GGUF, trust_remote_code=False
            )
        progress("smollm2: writing", None)
        # The library refuses to save what it read from such a file, so the weights move to a fresh model.
        config = type(read.config).from_dict(
            {key: value for key, value in read.config.to_dict().items() if key != "quantization_config"}
        )
        with torch.device("meta"):
            plain: Any = transformers.AutoModelForCausalLM.from_config(config)
        plain.load_state_dict(read.state_dict(), assign=True)
        plain.tie_weights()
        plain.to(torch.float16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return {"parameters": sum(parameter.numel() for parameter in plain.parameters())}


@contextmanager
def _no_bar() -> Iterator[None]:
    """The reader of such files draws a bar of its own, which no setting turns off."""
    reader: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    bar = reader.tqdm
    reader.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        reader.tqdm = bar
