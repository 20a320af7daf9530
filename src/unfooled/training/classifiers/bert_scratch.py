"""Self-attention layers without pretraining."""

from __future__ import annotations

from unfooled.training.families import Choice, Range
from unfooled.training.networks import scratch
from unfooled.training.torch_families import TorchFamily

FAMILY = TorchFamily(
    name="bert-scratch",
    summary="three self-attention layers without pretraining (BERT_NOPT)",
    paper="Self-attentive robustness 2019, section 3",
    defaults={
        "hidden": 128,
        "layers": 3,
        "heads": 4,
        "dropout": 0.1,
        "max_length": 128,
        "vocabulary": 20_000,
        "min_count": 2,
        "epochs": 20,
        "patience": 3,
        "batch": 32,
        "lr": 5e-4,
        "decay": 0.01,
        "warmup": 0.06,
        "seed": 0,
    },
    ranges={
        "hidden": Choice((64, 128, 256)),
        "layers": Range(1, 4),
        "dropout": Range(0.0, 0.5),
        "lr": Range(1e-4, 2e-3, log=True),
        "batch": Choice((16, 32, 64)),
    },
    make=scratch,
)
