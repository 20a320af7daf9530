"""A static sentence encoder: the mean of a text's piece vectors, so fast that nothing need be batched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.batching import Meter
from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.resources import store

Array = npt.NDArray[np.float32]

NAME = "potion"


class StaticEncoder:
    """Pieces that the table does not know are left out; a text of none but these is the zero vector."""

    batch_size = 4096

    def __init__(self, table: Array, tokenizer: Any, unknown: int | None = None) -> None:
        self._table = table
        self._tokenizer = tokenizer
        self._unknown = unknown
        self.meter = Meter()

    def __call__(self, items: Sequence[str], /) -> list[Array]:
        began = time.perf_counter()
        rows = []
        tokens = 0
        for encoding in self._tokenizer.encode_batch(list(items), add_special_tokens=False):
            ids = [token for token in encoding.ids if token != self._unknown]
            tokens += len(ids)
            rows.append(self._vector(ids))
        self.meter.add(len(rows), tokens, 0, time.perf_counter() - began)
        return rows

    def _vector(self, ids: list[int]) -> Array:
        if not ids:
            return np.zeros(self._table.shape[1], dtype=np.float32)
        mean = self._table[ids].mean(axis=0, dtype=np.float64)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)


def open_static() -> StaticEncoder:
    return _load(str(store.path(NAME)))


@lru_cache(maxsize=1)
def _load(folder: str) -> StaticEncoder:
    with libraries_of("torch", "safetensors", "tokenizers", needed_for="this sentence encoder"):
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        table = load_file(Path(folder) / "model.safetensors")["embeddings"]
    except Exception as error:  # the libraries raise their own kinds
        raise ResourceError(
            f"the encoder in {folder} cannot be read: {error}", f"run: unfooled resources get {NAME}"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return StaticEncoder(table.astype(np.float32), tokenizer, tokenizer.token_to_id("[UNK]"))
