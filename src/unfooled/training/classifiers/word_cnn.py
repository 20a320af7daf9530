"""Convolutions over runs of words."""

from __future__ import annotations

from unfooled.errors import UserError
from unfooled.training.families import Choice, Option, Range
from unfooled.training.networks import WORD_DEFAULTS, WORD_OPTIONS, word_model
from unfooled.training.torch_families import TorchFamily


def check_widths(text: str) -> None:
    if not all(part.isdecimal() and 1 <= int(part) <= 50 for part in text.split("+")):
        raise UserError(f"widths = {text} is not a list of widths", "write it like 3+4+5")


FAMILY = TorchFamily(
    name="word-cnn",
    summary="convolutions over runs of words, the strongest of each filter",
    paper="BAE 2020, section 4; Kim 2014",
    defaults={**WORD_DEFAULTS, "filters": 100, "widths": "3+4+5", "dropout": 0.5, "batch": 50},
    ranges={
        "filters": Choice((50, 100, 200)),
        "widths": Choice(("2+3+4", "3+4+5", "1+2+3")),
        "dropout": Range(0.1, 0.7),
        "lr": Range(3e-4, 5e-3, log=True),
        "batch": Choice((16, 32, 50, 64)),
    },
    options={
        **WORD_OPTIONS,
        "filters": Option(int, "convolution filters of each width", 1, 10_000),
        "widths": Option(str, "widths of the convolutions in words, with + between", check=check_widths),
    },
    make=word_model("word-cnn"),
)
