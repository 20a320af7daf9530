"""The ways to harden a classifier: what a method declares, and what it is given to work with.

A method is one file with a `METHOD` in it and one line in the registry (kind `defense`), or an entry point
`unfooled.defense`. What it declares is what `unfooled harden --list` shows and `unfooled search` draws from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from unfooled.defenses.wrapper import Wrapper
from unfooled.errors import UserError
from unfooled.plugins import registry
from unfooled.training import record
from unfooled.training.course import Course
from unfooled.training.families import Choice, Range
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import Prepared
from unfooled.victims.torch.huggingface import HuggingFaceVictim


@dataclass(frozen=True)
class Hardening:
    """One training under way, as a method sees it."""

    model: HuggingFaceVictim  # frozen, as it was before
    settings: Mapping[str, Any]  # the method's own
    training: Mapping[str, Any]  # those of `TRAINING`
    rows: Prepared
    out: Path
    observer: TrainObserver

    @property
    def folder(self) -> Path:
        """Where the model lies that is trained on."""
        assert self.model.folder is not None
        return self.model.folder

    @property
    def scratch(self) -> Path:
        """For work that must survive a stop; gone when the training is finished."""
        return self.out / record.CHECKPOINTS

    @property
    def start(self) -> str:
        return str(self.training["start"])

    @property
    def seed(self) -> int:
        return int(self.training["seed"])


@dataclass(frozen=True, kw_only=True)
class Method:
    """`victim` puts a defence around a model; `course` makes a new model out of it. A method has one of them.

    `settings` builds what `victim` takes beside the model. `add_rows` changes the training rows first, where
    no finished samples were given in place of what it would make (`takes_samples`).
    """

    name: str
    summary: str
    paper: str
    defaults: Mapping[str, Any] = field(hash=False, default_factory=dict)
    ranges: Mapping[str, Range | Choice] = field(hash=False, default_factory=dict)
    victim: type[Wrapper] | None = None
    settings: type[Any] | None = None
    course: Callable[[Hardening], Course] | None = None
    add_rows: Callable[[Hardening], Prepared] | None = None
    takes_samples: bool = False

    @property
    def kind(self) -> Literal["wrap", "train"]:
        return "wrap" if self.victim is not None else "train"


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

VOTES = Choice(("majority", "mean-logits", "mean-probs"))


def find_method(name: str) -> Method:
    found: Method = registry.load("defense", name)
    return found


def all_methods() -> dict[str, Method]:
    return {name: find_method(name) for name in registry.names("defense")}


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
