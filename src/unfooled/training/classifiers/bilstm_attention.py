"""An LSTM in both directions with attention over the words."""

from __future__ import annotations

from unfooled.training.families import Choice, Range
from unfooled.training.networks import WORD_DEFAULTS, WORD_OPTIONS, word_model
from unfooled.training.torch_families import TorchFamily

FAMILY = TorchFamily(
    name="bilstm-attention",
    summary="LSTM in both directions, words weighted by attention",
    paper="Self-attentive robustness 2019, section 3",
    defaults={**WORD_DEFAULTS, "hidden": 64, "layers": 1, "dropout": 0.25, "batch": 24},
    ranges={
        "hidden": Choice((32, 64, 128)),
        "layers": Range(1, 2),
        "dropout": Range(0.0, 0.6),
        "lr": Range(3e-4, 1e-2, log=True),
        "batch": Choice((16, 24, 32, 64)),
    },
    options=WORD_OPTIONS,
    make=word_model("bilstm-attention"),
)
