"""Word vectors and an LSTM."""

from __future__ import annotations

from unfooled.training.families import Choice, Option, Range
from unfooled.training.networks import WORD_DEFAULTS, WORD_OPTIONS, word_model
from unfooled.training.torch_families import TorchFamily

FAMILY = TorchFamily(
    name="lstm",
    summary="word vectors and an LSTM; the classifier reads its last state, or the mean of all",
    paper="LSTM-JSMA 2017, section 2; BAE 2020",
    defaults={**WORD_DEFAULTS, "hidden": 64, "layers": 1, "dropout": 0.25, "batch": 24, "pool": "last"},
    ranges={
        "hidden": Choice((32, 64, 128)),
        "layers": Range(1, 2),
        "pool": Choice(("last", "mean")),
        "dropout": Range(0.0, 0.6),
        "lr": Range(3e-4, 1e-2, log=True),
        "batch": Choice((16, 24, 32, 64)),
    },
    options={
        **WORD_OPTIONS,
        "pool": Option(str, "what the classifier reads of the LSTM", choices=("last", "mean")),
    },
    make=word_model("lstm"),
)
