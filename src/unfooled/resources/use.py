"""The Universal Sentence Encoder, multilingual (version 3, small), run with NumPy.

Yang et al.: *Multilingual Universal Sentence Encoder for Semantic Retrieval*, 2019, arXiv:1907.04307. The
attacks' papers used the English encoder (Cer et al. 2018), which no package registry carries; this is the
nearest to it. Embeddings of pieces go through three stacks of two convolutions (2, 3 and 5 pieces wide), are
normalised and summed, divided by the root of the length, and pass four dense layers. Weights of the embedding
table are eight-bit numbers with a scale for each of 17 groups of pieces.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.batching import Meter, same_length
from unfooled.errors import ResourceError
from unfooled.resources import store
from unfooled.resources.sentencepiece import read_unigram

Array = npt.NDArray[np.float32]

NAME = "use"
GROUPS = 17
WIDTHS = {2: 0, 3: 1, 5: 2}  # pieces under a convolution, and how many of them lie before the present one
BEGIN, END = 1, 2  # pieces around every text
MAX_TOKENS = 768  # per pass


class UniversalEncoder:
    """Texts of equal length go together; a text's vector does not depend on the texts beside it."""

    batch_size = 4096

    def __init__(self, weights: dict[str, npt.NDArray[Any]], tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._w = weights
        self._table = np.empty((GROUPS * len(weights["q1"]), weights["q1"].shape[1]), dtype=np.uint8)
        for group in range(GROUPS):
            self._table[group::GROUPS] = weights[f"q{group + 1}"]
        self._small = float(weights["eps"])
        self.meter = Meter()

    def __call__(self, items: Sequence[str], /) -> list[Array]:
        read = [encoding.ids for encoding in self._tokenizer.encode_batch(list(items))]
        ids = [[BEGIN, *tokens, END] for tokens in read]
        rows: list[Array] = [np.empty(0, dtype=np.float32)] * len(items)
        lengths = [len(sequence) for sequence in ids]
        for group in same_length(lengths, MAX_TOKENS):
            began = time.perf_counter()
            vectors = self._encode(np.array([ids[i] for i in group]))
            for index, row in zip(group, vectors, strict=True):
                rows[index] = row
            self.meter.add(len(group), len(group) * lengths[group[0]], 0, time.perf_counter() - began)
        return rows

    def _encode(self, ids: npt.NDArray[np.int64]) -> Array:
        """Vectors of texts [texts, pieces] of one length. NumPy multiplies text by text in here."""
        w = self._w
        pieces = self._table[ids].astype(np.float32)
        pieces = pieces * w["scale"][ids % GROUPS][..., None] + w["lo"][ids % GROUPS][..., None]
        # The three narrow views of a piece are normalised together, then go their own ways.
        narrow = pieces @ self._joined("proj") + self._joined("proj_b")
        narrow = _normalised(narrow, self._joined("ln_g"), self._joined("ln_b"), self._small)
        views = np.split(narrow, len(WIDTHS), axis=-1)
        features = [pieces, *(self._stack(view, width) for view, width in zip(views, WIDTHS, strict=True))]
        normal = _normalised(np.concatenate(features, axis=-1), w["ln_g"], w["ln_b"], self._small)
        # One row per product from here on: a row's last digits depend on its place among others.
        length = ids.shape[1]
        text = normal.sum(axis=1, keepdims=True)
        text = (text @ w["cnn_W"] + length * w["cnn_b"]) / np.float32(np.sqrt(length))
        first = _positive(_positive(text @ w["d0"]) @ w["d1"] + text @ w["p1"])
        second = np.tanh(_positive(first @ w["d2"]) @ w["d3"] + first @ w["p3"])[:, 0]
        found: Array = second / np.linalg.norm(second, axis=1, keepdims=True)
        return found.astype(np.float32)

    def _joined(self, name: str) -> Array:
        return np.concatenate([self._w[f"{name}{width}"] for width in WIDTHS], axis=-1)

    def _stack(self, x: Array, width: int) -> Array:
        w = self._w
        for layer in ("1", "2"):
            x = x + _positive(_windows(x, width) @ w[f"w{layer}_{width}"] + w[f"b{layer}_{width}"])
        return x


def _windows(x: Array, width: int) -> Array:
    """[texts, pieces, dim] → [texts, pieces, width · dim]: each piece with its neighbours, zeros outside."""
    before = WIDTHS[width]
    padded = np.pad(x, ((0, 0), (before, width - 1 - before), (0, 0)))
    length = x.shape[1]
    return np.concatenate([padded[:, at : at + length] for at in range(width)], axis=-1)


def _normalised(x: Array, scale: Array, shift: Array, small: float) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(small))
    found: Array = centred / spread * scale + shift
    return found


def _positive(x: Array) -> Array:
    return np.maximum(x, np.float32(0.0))


def open_use() -> UniversalEncoder:
    return _load(str(store.path(NAME)))


@lru_cache(maxsize=1)
def _load(folder: str) -> UniversalEncoder:
    try:
        with np.load(Path(folder) / "weights.npz", allow_pickle=False) as archive:
            weights = {name: archive[name] for name in archive.files}
        return UniversalEncoder(weights, read_unigram(Path(folder) / "sp.model"))
    except (KeyError, OSError, ValueError) as error:
        raise ResourceError(
            f"the encoder in {folder} cannot be read: {error}", f"run: unfooled resources get {NAME}"
        ) from error
