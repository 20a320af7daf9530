"""The ways to harden a classifier: what each does, where it comes from, its settings and search ranges.

This table is what `unfooled harden --list` shows and what `unfooled search` draws from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from unfooled.defenses.five import Five
from unfooled.defenses.fuse import Fuse
from unfooled.defenses.settings import defaults_of
from unfooled.defenses.switch import Switch
from unfooled.errors import UserError
from unfooled.plugins import unknown_name
from unfooled.training.families import Choice, Range


@dataclass(frozen=True)
class Method:
    """`wrap` puts a defence around a model, `train` makes a new model out of it."""

    name: str
    kind: Literal["wrap", "train"]
    summary: str
    paper: str
    defaults: Mapping[str, Any] = field(hash=False)
    ranges: Mapping[str, Range | Choice] = field(hash=False, default_factory=dict)


# How the new model is trained, besides what the method says. Batch, rate and length come from the model's own
# `training.json` where it has one.
TRAINING: Mapping[str, Any] = MappingProxyType(
    {
        "epochs": 2,
        "batch": 32,
        "lr": 2e-5,
        "decay": 0.01,
        "warmup": 0.06,
        "patience": 100_000,
        "max_length": 128,
        "keep": "best",  # or `last`: which epoch, by accuracy on the validation rows
        "start": "model",  # or `body`: from the weights that the model itself began with
        "seed": 0,
    }
)

_FIREBERT = "Mein, Hartman, Morris 2020 (FireBERT)"
# The paper's filter at 0 takes no text away here (see `fuse.py`), so its time is saved.
_SWITCH = defaults_of(Switch) | {"words": 9, "similarity": "none"}
_SWITCH_RANGES: dict[str, Range | Choice] = {
    "words": Range(1, 25),
    "candidates": Range(5, 20),
    "pos": Choice((True, False)),
    "similarity": Choice(("none", "rank", "filter")),
    "multiplier": Range(1, 20),
}
_VOTES = Choice(("majority", "mean-logits", "mean-probs"))


def _method(
    name: str,
    kind: Literal["wrap", "train"],
    summary: str,
    paper: str,
    defaults: Mapping[str, Any],
    ranges: Mapping[str, Range | Choice] | None = None,
) -> tuple[str, Method]:
    frozen = MappingProxyType(dict(defaults)), MappingProxyType(dict(ranges or {}))
    return name, Method(name, kind, summary, paper, *frozen)


METHODS: Mapping[str, Method] = MappingProxyType(
    dict(
        (
            _method(
                "fact",
                "train",
                "SWITCH alternatives of each text join its batch, with the same label",
                _FIREBERT,
                _SWITCH | {"weight": 1.0, "fresh": False, "field": -1},
                {**_SWITCH_RANGES, "alternatives": Range(1, 4), "weight": Range(0.25, 1.0)},
            ),
            _method(
                "fuse",
                "wrap",
                "votes over the text and its SWITCH alternatives",
                _FIREBERT,
                defaults_of(Fuse),
                {**_SWITCH_RANGES, "words": Range(1, 10), "alternatives": Range(2, 14), "vote": _VOTES},
            ),
            _method(
                "five",
                "wrap",
                "votes over copies with noise on the embeddings of the most important words",
                _FIREBERT,
                defaults_of(Five),
                {
                    "words": Range(1, 10),
                    "sigma": Range(0.02, 10.0, log=True),
                    "copies": Range(2, 15),
                    "vote": _VOTES,
                },
            ),
            _method(
                "augment",
                "train",
                "SWITCH alternatives, or samples of a finished attack, are added to the training rows",
                "data augmentation; samples as in Jin et al. 2020, section 5",
                _SWITCH | {"field": -1},
            ),
            _method(
                "adversarial-training",
                "train",
                "each epoch attacks the model as it is then, and trains on the texts that fooled it",
                "Yoo, Qi 2021 (A2T)",
                {"attack": "textfooler", "share": 0.2, "budget": 200, "weight": 1.0, "field": -1},
            ),
            _method(
                "freelb",
                "train",
                "gradient steps on the input embeddings inside each batch",
                "Zhu et al. 2020 (FreeLB)",
                {"steps": 3, "step_size": 0.1, "magnitude": 0.1, "radius": 0.6},
            ),
            _method(
                "retune",
                "train",
                "more epochs on the plain data: the control for every other method",
                "Mein, Hartman, Morris 2020, section 3.5",
                {},
            ),
        )
    )
)


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise unknown_name("method", name, list(METHODS))
    return METHODS[name]


def check_training(options: Mapping[str, Any]) -> None:
    """Limits of what `TRAINING` names."""
    for name in ("epochs", "batch", "patience"):
        if options[name] < 1:
            raise UserError(f"{name}={options[name]} makes no sense", f"{name} is at least 1")
    for name, low, high in (("lr", 1e-9, 10.0), ("decay", 0.0, 10.0), ("warmup", 0.0, 0.9)):
        if not low <= options[name] <= high:
            raise UserError(f"{name}={options[name]} is out of range", f"use {low:g} to {high:g}")
    if options["max_length"] < 4:
        raise UserError(f"max_length={options['max_length']} is too short", "at least 4 tokens are read")
    if options["seed"] < 0:
        raise UserError(f"seed={options['seed']} makes no sense", "seed is at least 0")
    for name, choices in (("keep", ("best", "last")), ("start", ("model", "body"))):
        if options[name] not in choices:
            raise UserError(f"{name}={options[name]} is not known", f"use {' or '.join(choices)}")


def help_table() -> str:
    """The methods in one line each, for `--help`."""
    return "\n".join(f"  {one.name}: {one.summary}" for one in METHODS.values())
