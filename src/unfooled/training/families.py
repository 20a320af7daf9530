"""Model families: what each declares, and how one is found by its name.

A family is one file with a `FAMILY` in it and one line in the registry (kind `family`), or an entry point
`unfooled.family`. What it declares is what `unfooled train --list` and `--help` show and what a sweep draws
from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from unfooled.errors import UserError
from unfooled.plugins import registry, unknown_name
from unfooled.values import read_number, read_truth

if TYPE_CHECKING:
    from unfooled.training.observer import TrainObserver
    from unfooled.training.trainer import Trained

Value: TypeAlias = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Option:
    """What a setting may be. `least` and `most` bound numbers, `choices` names; paths are free text.

    `check` raises a `UserError` for what neither can say.
    """

    kind: type
    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], None] | None = None


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


# Options that mean the same in several families. A family that needs another declares it in `options`.
SHARED: Mapping[str, Option] = MappingProxyType(
    {
        "batch": Option(int, "texts per optimiser step", 1, 4096),
        "decay": Option(float, "weight decay", 0, 10),
        "dropout": Option(float, "share of activations dropped while training", 0, 0.95),
        "embedding": Option(int, "size of word vectors that start at random", 1, 4096),
        "epochs": Option(int, "passes over the data, at most", 1, 100_000),
        "heads": Option(int, "attention heads", 1, 64),
        "hidden": Option(int, "units per layer", 1, 8192),
        "layers": Option(int, "layers", 1, 48),
        "lr": Option(float, "learning rate", 1e-9, 10),
        "max_length": Option(int, "tokens that are read; the rest is cut", 4, 100_000),
        "min_count": Option(int, "a rarer word is unknown", 1, 1_000_000),
        "patience": Option(int, "epochs without a better validation before it stops", 1, 100_000),
        "seed": Option(int, "same seed, same model", 0, 2**31 - 1),
        "vocabulary": Option(int, "most words known", 1, 10_000_000),
        "warmup": Option(float, "share of the steps in which the learning rate rises", 0, 0.9),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedData:
    """Data to learn from, as the command line names it; see `data.loading.load_data`."""

    source: str
    text: tuple[str, ...] | None
    label: str | None
    split: str
    encoding: str
    clean: str | None


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """One kind of model. `defaults` also says which options it has; `options` describes those of its own."""

    name: str
    summary: str
    paper: str
    defaults: Mapping[str, Value] = field(hash=False)
    ranges: Mapping[str, Range | Choice] = field(hash=False, default_factory=dict)
    options: Mapping[str, Option] = field(hash=False, default_factory=dict)

    def option(self, name: str) -> Option:
        """What an option of this family may be."""
        return self.options[name] if name in self.options else SHARED[name]

    @abstractmethod
    def load_data(self, named: NamedData) -> Any:
        """Rows that this family learns from, as the command line names them."""

    @abstractmethod
    def train(
        self,
        data: Any,
        out: str | Path,
        *,
        valid: Any,
        options: Mapping[str, Any],
        resume: bool,
        restart: bool,
        observer: TrainObserver,
    ) -> Trained:
        """Train on `data` and write the model to the folder `out`; see `trainer.train`."""


def find_family(name: str) -> Family:
    if name not in registry.names("family"):
        raise unknown_name("model family", name, registry.names("family"))
    found: Family = registry.load("family", name)
    return found


def all_families() -> list[Family]:
    return [find_family(name) for name in registry.names("family")]


def settle(family: Family, given: Mapping[str, Any]) -> dict[str, Value]:
    """Defaults with the given options put in, each checked; None means the default."""
    settled = dict(family.defaults)
    for name, value in given.items():
        if value is None:
            continue
        if name not in family.defaults:
            near = unknown_name("option", name, sorted(family.defaults))
            raise UserError(f"{family.name} has no option {name!r}", near.remedy)
        settled[name] = _checked(name, value, family.option(name))
    return settled


def _checked(name: str, value: Any, option: Option) -> Value:
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
    if option.check is not None:
        option.check(settled)
    return settled


def _read(kind: type, value: Any) -> Value:
    if kind is bool:
        return read_truth(value)
    return read_number(value, whole=kind is int) if kind in (int, float) else str(value)
