"""A pretrained model of the BERT family, fine-tuned."""

from __future__ import annotations

from unfooled.training.families import Choice, Option, Range
from unfooled.training.networks import BODY, pretrained
from unfooled.training.torch_families import TorchFamily

FAMILY = TorchFamily(
    name="bert",
    summary="a pretrained model of the BERT family, fine-tuned",
    paper="all five papers",
    defaults={
        "body": BODY,
        "max_length": 128,
        "epochs": 3,
        "patience": 2,
        "batch": 32,
        "lr": 5e-5,
        "decay": 0.01,
        "warmup": 0.06,
        "dropout": 0.1,
        "seed": 0,
    },
    ranges={
        "lr": Range(1e-5, 2e-4, log=True),
        "epochs": Range(2, 5),
        "batch": Choice((16, 32)),
        "dropout": Range(0.0, 0.3),
    },
    options={"body": Option(str, f"pretrained model to fine-tune: folder, hub name or `{BODY}`")},
    make=pretrained,
    schedule="linear",
)
