"""Sentence encoders: a text becomes a vector of length one."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unfooled.batching import MIXED, Meter, mixed_length
from unfooled.device import FULL, Compute, resolved, said
from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.model_folder import check_model_folder
from unfooled.passes import (
    OnDevice,
    Passes,
    answering,
    placed,
    precision_of,
    to_device,
    to_host,
    tokens_that_fit,
)
from unfooled.resources import minilm, static, store, use
from unfooled.trust import granted

Vector = npt.NDArray[np.float32]

DEFAULT = "minilm"
MAX_TOKENS = 1536  # per forward pass, measured fastest on one core
# Below a handful of rows a matrix product takes another path and other last digits: repeat short texts.
MIN_ROWS = 32


class Encoder(OnDevice):
    """MiniLM, or any sentence-transformers model, run on groups of texts of equal length: nothing is padded,
    and a text's vector does not depend on the texts beside it."""

    batch_size = 4096

    def __init__(self, model: Any, *, max_tokens: int = 0) -> None:
        self.model = model = placed(model, given=True)
        self.max_tokens = max_tokens or MAX_TOKENS
        if not max_tokens and callable(model.tokenizer):
            longest = int(model.max_seq_length or 512)
            self.max_tokens = tokens_that_fit(
                model, MAX_TOKENS, longest, lambda ids: model({"input_ids": ids})
            )
        self.meter = Meter()
        # Several lengths in one pass: see `packing.py`.
        self._packs = isinstance(model, minilm.MiniLM) and not self.apart and precision_of(model) == FULL
        # Some models want every text introduced by the same words.
        self._prompt = (
            str(model.prompts.get(model.default_prompt_name) or "") if model.default_prompt_name else ""
        )

    def __call__(self, items: Sequence[str], /) -> list[Vector]:
        import torch

        if not items:
            return []
        if not callable(self.model.tokenizer):  # static embeddings have no sequences to group
            return self._encode_static(list(items))
        rows: list[Vector] = [np.empty(0, dtype=np.float32)] * len(items)
        features = self._tokenize(list(items))
        lengths = [len(ids) for ids in features["input_ids"]]
        least = self.max_tokens // 2 if self._packs else 0
        for batch in Passes(self, mixed_length(lengths, self.max_tokens, most=0, least=least), lengths):
            with batch as group, answering(self.model):
                began = time.perf_counter()
                tokens = sum(lengths[i] for i in group)
                times = -(-MIN_ROWS // max(1, tokens))
                asked = {
                    key: [values[i] for i in group for _ in range(times)] for key, values in features.items()
                }
                if batch.width != MIXED:
                    inputs = {key: torch.tensor(values) for key, values in asked.items()}
                    found = self.model(to_device(inputs, self.model))
                else:
                    found = self.model.packed(asked["input_ids"])
                vectors = found["sentence_embedding"][::times]
                unit = to_host(torch.nn.functional.normalize(vectors.float(), dim=1)).numpy()
                for index, row in zip(group, unit, strict=True):
                    rows[index] = row
                self.meter.add(len(group), tokens, (times - 1) * tokens, time.perf_counter() - began)
        return rows

    def _tokenize(self, texts: list[str]) -> dict[str, list[list[int]]]:
        content = self.model.tokenizer(
            [self._prompt + text for text in texts],
            truncation=True,
            max_length=self.model.max_seq_length,
            padding=False,
        )
        return {key: content[key] for key in content}

    def _encode_static(self, texts: list[str]) -> list[Vector]:
        began = time.perf_counter()
        rows = self.model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        self.meter.add(len(texts), 0, 0, time.perf_counter() - began)
        return list(np.asarray(rows, dtype=np.float32))


class SentenceEncoder(Protocol):
    """What every variant of the oracle is: a text → its vector of length one."""

    @property
    def batch_size(self) -> int: ...

    @property
    def meter(self) -> Meter: ...

    def __call__(self, items: Sequence[str], /) -> list[Vector]: ...


def open_encoder(variant: str = "") -> SentenceEncoder:
    """Variant "" or "minilm" is the default, "use" and "potion" are other resources; else a folder or hub
    name of a sentence-transformers model."""
    if variant == use.NAME:
        return use.open_use()
    if variant == static.NAME:
        return static.open_static()
    if variant in ("", DEFAULT):
        return Encoder(_load_default(store.path(DEFAULT), _computing()))
    return Encoder(_load(variant, _computing()))


def _computing() -> Compute:
    """A model is kept for the device and the precision that it was placed for."""
    return Compute(resolved(), said().precision)


@lru_cache(maxsize=1)
def _load_default(folder: Path, _computing: Compute) -> minilm.MiniLM:
    return placed(minilm.load(folder))


@lru_cache(maxsize=2)
def _load(name: str, _computing: Compute | None = None) -> Any:
    local = Path(name).is_dir()
    if local:
        check_model_folder(Path(name), name, ResourceError)
        _refuse_pickles(Path(name), name)
    with quiet():
        with libraries_of("torch", "sentence_transformers", needed_for="a sentence encoder"):
            from sentence_transformers import SentenceTransformer
        try:
            model = SentenceTransformer(
                name,
                device="cpu",
                local_files_only=local,
                trust_remote_code=granted().remote_code,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # the library raises nearly anything
            if "trust_remote_code" in str(error):
                raise ResourceError(
                    f"the sentence encoder {name!r} brings Python code of its own, which would run when it "
                    "is loaded",
                    "pass --trust-remote-code (in Python: unfooled.trusting(remote_code=True)) if you trust "
                    "its author",
                ) from error
            raise ResourceError(
                f"cannot load the sentence encoder {name!r}: {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}",
                f'use "{DEFAULT}", "use", "potion", the folder of a sentence-transformers model, '
                "or a reachable hub name",
            ) from error
    model.eval()
    return placed(model)


def _refuse_pickles(folder: Path, name: str) -> None:
    """Layers behind the transformer are read from a pickle where there is nothing else."""
    for pickled in sorted(folder.rglob("*/pytorch_model.bin")):
        if not pickled.with_name("model.safetensors").is_file() and not granted().pickle:
            raise ResourceError(
                f"{name} holds a pickle, {pickled.relative_to(folder)}, which can run code when it is opened",
                "save the encoder with safetensors, or pass --trust-pickle if you trust its author",
            )


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines, bars or warnings from the model libraries while a model is loaded."""
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        bars = _transformers_bars()
        try:
            if bars:
                bars.disable_progress_bar()
            yield
        finally:
            if bars:
                bars.enable_progress_bar()
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _transformers_bars() -> Any:
    """The switch of the loading bar, or None if there is none to switch or it is off already."""
    try:
        from transformers.utils import logging as bars
    except ImportError:
        return None
    return bars if bars.is_progress_bar_enabled() else None
