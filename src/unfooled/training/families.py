"""The families of classifiers that can be trained here: defaults, sweep ranges, and where they come from.

This table is all that `unfooled train --list` and `--help` show, and all that a sweep draws from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from unfooled.errors import UserError
from unfooled.plugins import unknown_name
from unfooled.values import read_number, read_truth

Value: TypeAlias = int | float | str | bool

VECTORS = "glove-6b-50d"
BODY = "minilm"


@dataclass(frozen=True, slots=True)
class Option:
    """What a setting may be. `least` and `most` bound numbers, `choices` names; paths are free text."""

    kind: type
    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; `log` draws their logarithm evenly. Whole where both ends are."""

    low: float
    high: float
    log: bool = False

    def __str__(self) -> str:
        return f"{self.low:g}–{self.high:g}{' (log)' if self.log else ''}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values."""

    values: tuple[Value, ...]

    def __str__(self) -> str:
        return " | ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in self.values)


@dataclass(frozen=True)
class Family:
    """One kind of classifier. `defaults` also says which options it has."""

    name: str
    kind: Literal["sklearn", "words", "bert", "seq2seq"]
    summary: str
    paper: str
    defaults: Mapping[str, Value] = field(hash=False)
    ranges: Mapping[str, Range | Choice] = field(hash=False)


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "alpha": Option(float, "smoothing of naive Bayes, regularisation of the SVM", 1e-9, 1e3),
        "batch": Option(int, "texts per optimiser step", 1, 4096),
        "body": Option(str, "pretrained model to fine-tune: folder, hub name or `minilm`"),
        "decay": Option(float, "weight decay", 0, 10),
        "dropout": Option(float, "share of activations dropped while training", 0, 0.95),
        "embedding": Option(int, "size of word vectors that start at random", 1, 4096),
        "epochs": Option(int, "passes over the data, at most", 1, 100_000),
        "filters": Option(int, "convolution filters of each width", 1, 10_000),
        "frozen": Option(bool, "keep the word vectors as they come"),
        "heads": Option(int, "attention heads", 1, 64),
        "hidden": Option(int, "units per layer", 1, 8192),
        "inner": Option(int, "units inside a feed-forward layer", 1, 65_536),
        "layers": Option(int, "layers", 1, 48),
        "lr": Option(float, "learning rate", 1e-9, 10),
        "max_length": Option(int, "tokens that are read; the rest is cut", 4, 100_000),
        "minutes": Option(float, "minutes of training, at most; 0 for any number", 0, 100_000),
        "min_count": Option(int, "a rarer word is unknown", 1, 1_000_000),
        "ngrams": Option(int, "longest run of words counted as one feature", 1, 5),
        "patience": Option(int, "epochs without a better validation before it stops", 1, 100_000),
        "pool": Option(str, "what the classifier reads of the LSTM", choices=("last", "mean")),
        "seed": Option(int, "same seed, same model", 0, 2**31 - 1),
        "smoothing": Option(float, "share of the target spread over all tokens (label smoothing)", 0, 0.9),
        "vectors": Option(str, f"`{VECTORS}`, `none`, a file, or `auto`: {VECTORS} where it is here"),
        "vocabulary": Option(int, "most words known", 1, 10_000_000),
        "warmup": Option(float, "share of the steps in which the learning rate rises", 0, 0.9),
        "widths": Option(str, "widths of the convolutions in words, with + between"),
    }
)

_WORDS: dict[str, Value] = {
    "vectors": "auto",
    "embedding": 50,
    "frozen": False,
    "max_length": 250,
    "vocabulary": 20_000,
    "min_count": 2,
    "epochs": 20,
    "patience": 3,
    "lr": 1e-3,
    "decay": 0.0,
    "warmup": 0.0,
    "seed": 0,
}
_LSTM: dict[str, Value] = _WORDS | {"hidden": 64, "layers": 1, "dropout": 0.25, "batch": 24}
_SEQ2SEQ: dict[str, Value] = {
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


def _family(
    name: str,
    kind: Literal["sklearn", "words", "bert", "seq2seq"],
    summary: str,
    paper: str,
    defaults: dict[str, Value],
    ranges: dict[str, Range | Choice],
) -> tuple[str, Family]:
    frozen = MappingProxyType(defaults), MappingProxyType(ranges)
    return name, Family(name, kind, summary, paper, *frozen)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    dict(
        (
            _family(
                "naive-bayes",
                "sklearn",
                "multinomial naive Bayes on word counts, Laplace smoothing",
                "LSTM-JSMA 2017, section 2",
                {"alpha": 1.0, "ngrams": 1, "min_count": 1, "seed": 0},
                {"alpha": Range(0.01, 10, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
            ),
            _family(
                "svm",
                "sklearn",
                "linear SVM by stochastic gradient descent on the hinge loss, tf-idf",
                "LSTM-JSMA 2017, section 2",
                {"alpha": 1e-4, "ngrams": 1, "min_count": 1, "epochs": 1000, "seed": 0},
                {"alpha": Range(1e-6, 1e-2, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
            ),
            _family(
                "lstm",
                "words",
                "word vectors and an LSTM; the classifier reads its last state, or the mean of all",
                "LSTM-JSMA 2017, section 2; BAE 2020",
                _LSTM | {"pool": "last"},
                {
                    "hidden": Choice((32, 64, 128)),
                    "layers": Range(1, 2),
                    "pool": Choice(("last", "mean")),
                    "dropout": Range(0.0, 0.6),
                    "lr": Range(3e-4, 1e-2, log=True),
                    "batch": Choice((16, 24, 32, 64)),
                },
            ),
            _family(
                "bilstm-attention",
                "words",
                "LSTM in both directions, words weighted by attention",
                "Self-attentive robustness 2019, section 3",
                _LSTM,
                {
                    "hidden": Choice((32, 64, 128)),
                    "layers": Range(1, 2),
                    "dropout": Range(0.0, 0.6),
                    "lr": Range(3e-4, 1e-2, log=True),
                    "batch": Choice((16, 24, 32, 64)),
                },
            ),
            _family(
                "word-cnn",
                "words",
                "convolutions over runs of words, the strongest of each filter",
                "BAE 2020, section 4; Kim 2014",
                _WORDS | {"filters": 100, "widths": "3+4+5", "dropout": 0.5, "batch": 50},
                {
                    "filters": Choice((50, 100, 200)),
                    "widths": Choice(("2+3+4", "3+4+5", "1+2+3")),
                    "dropout": Range(0.1, 0.7),
                    "lr": Range(3e-4, 5e-3, log=True),
                    "batch": Choice((16, 32, 50, 64)),
                },
            ),
            _family(
                "bert",
                "bert",
                "a pretrained model of the BERT family, fine-tuned",
                "all five papers",
                {
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
                {
                    "lr": Range(1e-5, 2e-4, log=True),
                    "epochs": Range(2, 5),
                    "batch": Choice((16, 32)),
                    "dropout": Range(0.0, 0.3),
                },
            ),
            _family(
                "bert-scratch",
                "words",
                "three self-attention layers without pretraining (BERT_NOPT)",
                "Self-attentive robustness 2019, section 3",
                {
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
                {
                    "hidden": Choice((64, 128, 256)),
                    "layers": Range(1, 4),
                    "dropout": Range(0.0, 0.5),
                    "lr": Range(1e-4, 2e-3, log=True),
                    "batch": Choice((16, 32, 64)),
                },
            ),
            _family(
                "seq2seq-lstm",
                "seq2seq",
                "translates: LSTM in both directions, LSTM with attention that writes",
                "Self-attentive robustness 2019, section 6 (there 512 units)",
                _SEQ2SEQ | {"hidden": 256, "embedding": 256, "layers": 2, "lr": 2e-3, "warmup": 0.03},
                {},
            ),
            _family(
                "seq2seq-transformer",
                "seq2seq",
                "translates: a small Transformer in the style of Marian",
                "Self-attentive robustness 2019, section 6 (there 6 layers)",
                _SEQ2SEQ
                | {"hidden": 192, "layers": 3, "heads": 4, "inner": 512, "lr": 1.5e-3, "warmup": 0.08},
                {},
            ),
        )
    )
)


def find_family(name: str) -> Family:
    if name not in FAMILIES:
        raise unknown_name("model family", name, list(FAMILIES))
    return FAMILIES[name]


def settle(family: Family, given: Mapping[str, Any]) -> dict[str, Value]:
    """Defaults with the given options put in, each checked; None means the default."""
    settled = dict(family.defaults)
    for name, value in given.items():
        if value is None:
            continue
        if name not in family.defaults:
            near = unknown_name("option", name, sorted(family.defaults))
            raise UserError(f"{family.name} has no option {name!r}", near.remedy)
        settled[name] = _checked(name, value)
    return settled


def help_table() -> str:
    """The families and what a sweep may change, for `--help`."""
    lines = ["Families, and the ranges of --sweep:"]
    for family in FAMILIES.values():
        lines.append(f"  {family.name}: {family.summary}")
        lines += [f"      {name}: {ranges}" for name, ranges in family.ranges.items()]
    return "\n".join(lines)


def _checked(name: str, value: Any) -> Value:
    option = OPTIONS[name]
    settled: Value
    try:
        settled = _read(option.kind, value)
    except (TypeError, ValueError):
        wanted = {int: "a whole number", float: "a number", bool: "true or false"}[option.kind]
        raise UserError(f"{name} = {value} is not {wanted}", option.help) from None
    if option.choices and settled not in option.choices:
        raise UserError(f"{name} = {value} is not known", f"choose from {', '.join(option.choices)}")
    low, high = option.least, option.most
    if (
        low is not None
        and high is not None
        and not (isinstance(settled, int | float) and low <= settled <= high)
    ):
        raise UserError(f"{name} = {value} is out of range", f"give a number from {low:g} to {high:g}")
    if name == "widths":
        _check_widths(str(settled))
    return settled


def _read(kind: type, value: Any) -> Value:
    if kind is bool:
        return read_truth(value)
    return read_number(value, whole=kind is int) if kind in (int, float) else str(value)


def _check_widths(text: str) -> None:
    parts = text.split("+")
    if not all(part.isdecimal() and 1 <= int(part) <= 50 for part in parts):
        raise UserError(f"widths = {text} is not a list of widths", "write it like 3+4+5")
