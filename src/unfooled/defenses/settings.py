"""Settings that users type: names and types follow the defaults they replace."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from unfooled.errors import UserError
from unfooled.plugins import unknown_name
from unfooled.values import named_truth, read_number

S = TypeVar("S")


def settle(defaults: Mapping[str, Any], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Defaults with what was given put in, each in the type of its default; None means the default."""
    settled = dict(defaults)
    for name, value in given.items():
        if value is None:
            continue
        if name not in defaults:
            near = unknown_name("setting", name, sorted(defaults))
            raise UserError(f"{what} has no setting {name!r}", near.remedy)
        settled[name] = as_type(name, value, defaults[name])
    return settled


def defaults_of(kind: type[Any]) -> dict[str, Any]:
    """Names and defaults of a dataclass of settings."""
    return {field.name: field.default for field in dataclasses.fields(kind)}


def build(kind: type[S], settings: Mapping[str, Any]) -> S:
    """The dataclass from those of the settings that it has."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in settings.items() if name in names})


def as_type(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        return named_truth(name, value, UserError, f"write {name}=true or {name}=false")
    if isinstance(default, int | float):
        return _number(name, value, whole=isinstance(default, int))
    return str(value)


def _number(name: str, value: Any, *, whole: bool) -> int | float:
    try:
        number = read_number(value, whole=whole)
        if not math.isfinite(number):
            raise ValueError
    except (TypeError, ValueError):
        kind = "whole number" if whole else "number"
        raise UserError(f"{name}={value} is not a {kind}", f"write {name}=NUMBER") from None
    return number
