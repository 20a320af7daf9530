"""The families of models that translate; each is trained on parallel text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unfooled.errors import UserError
from unfooled.training.families import Family, NamedData, Option, Value
from unfooled.training.trainer import Trained


@dataclass(frozen=True, kw_only=True)
class TranslatorFamily(Family):
    """`network` gives the model before its first step, from the options and the size of the vocabulary."""

    network: Callable[[Mapping[str, Value], int], Any]

    def load_data(self, named: NamedData) -> Any:
        from unfooled.translation.parallel import load_parallel

        if named.clean:
            raise UserError(
                "--clean is for classifiers, not for translation models", "leave it out for parallel text"
            )
        return load_parallel(
            named.source,
            columns=named.text,
            split=named.split,
            encoding=named.encoding,
            limit=named.limit,
        )

    def train(self, data: Any, out: str | Path, **how: Any) -> Trained:
        from unfooled.translation.training import train_translator

        return train_translator(self.name, data, out, **how)


def _lstm(options: Mapping[str, Value], vocabulary: int) -> Any:
    from unfooled.translation import networks

    return networks.TranslationLstm(
        networks.TranslationLstmConfig(
            vocab_size=vocabulary,
            embedding_size=int(options["embedding"]),
            hidden_size=int(options["hidden"]),
            layers=int(options["layers"]),
            dropout=float(options["dropout"]),
            max_position_embeddings=int(options["max_length"]),
        )
    )


def _transformer(options: Mapping[str, Value], vocabulary: int) -> Any:
    from transformers import MarianMTModel

    from unfooled.translation.networks import small_marian_config

    return MarianMTModel(
        small_marian_config(
            vocab_size=vocabulary,
            hidden_size=int(options["hidden"]),
            layers=int(options["layers"]),
            heads=int(options["heads"]),
            inner=int(options["inner"]),
            dropout=float(options["dropout"]),
            max_length=int(options["max_length"]),
        )
    )


_DEFAULTS: Mapping[str, Value] = MappingProxyType(
    {
        "vocabulary": 4000,
        "max_length": 128,
        "dropout": 0.1,
        "smoothing": 0.1,
        "epochs": 10,
        "patience": 4,
        "minutes": 0.0,
        "batch": 64,
        "decay": 0.0,
        "seed": 0,
    }
)
_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "inner": Option(int, "units inside a feed-forward layer", 1, 65_536),
        "minutes": Option(float, "minutes of training, at most; 0 for any number", 0, 100_000),
        "smoothing": Option(float, "share of the target spread over all tokens (label smoothing)", 0, 0.9),
    }
)

LSTM = TranslatorFamily(
    name="seq2seq-lstm",
    summary="translates: LSTM in both directions, LSTM with attention that writes",
    paper="Self-attentive robustness 2019, section 6 (there 512 units)",
    defaults={**_DEFAULTS, "hidden": 256, "embedding": 256, "layers": 2, "lr": 2e-3, "warmup": 0.03},
    options=_OPTIONS,
    network=_lstm,
)
TRANSFORMER = TranslatorFamily(
    name="seq2seq-transformer",
    summary="translates: a small Transformer in the style of Marian",
    paper="Self-attentive robustness 2019, section 6 (there 6 layers)",
    defaults={
        **_DEFAULTS,
        "hidden": 192,
        "layers": 3,
        "heads": 4,
        "inner": 512,
        "lr": 1.5e-3,
        "warmup": 0.08,
    },
    options=_OPTIONS,
    network=_transformer,
)
