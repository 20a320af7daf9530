"""The options of adapters: how to name one to the user, their types and their limits."""

from __future__ import annotations

import json
import math
import shlex
from typing import Any

from unfooled.errors import VictimError
from unfooled.values import read_number, read_truth


def option(name: str, value: Any) -> str:
    """How to set an adapter's option, on the command line and in Python."""
    typed = value if isinstance(value, str) else json.dumps(value)
    return f"--victim-option {shlex.quote(f'{name}={typed}')} (in Python: {name}={value!r})"


def as_type(name: str, value: Any, default: Any) -> Any:
    """`value` in the type of the option's default. The command line gives text, or what JSON makes of it."""
    if isinstance(default, bool):
        return _as_bool(name, value)
    if isinstance(default, (int, float)):
        return _as_number(name, value, default)
    if isinstance(default, str) and not isinstance(value, str):
        return json.dumps(value, default=str)  # a name or a path such as 0, which reads like a number
    return value


def require_positive(**sizes: float) -> None:
    """Sizes of which 0 or less makes no sense."""
    for name, value in sizes.items():
        if not (math.isfinite(value) and value > 0):
            least = "at least 1" if isinstance(value, int) else "above 0"
            raise VictimError(
                f"{name}={value} makes no sense: it must be {least}",
                f"write {option(name, type(value)(1))} or another number, or leave it out",
            )


def require_not_negative(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (math.isfinite(value) and value >= 0):
            raise VictimError(
                f"{name}={value} makes no sense: it must be at least 0",
                f"write {option(name, type(value)(0))} or another number, or leave it out",
            )


def _as_bool(name: str, value: Any) -> bool:
    try:
        return read_truth(value)
    except ValueError:
        raise VictimError(
            f"{name}={value} is neither true nor false", f"write {option(name, True)}"
        ) from None


def _as_number(name: str, value: Any, default: float) -> float:
    try:
        return read_number(value, whole=isinstance(default, int))
    except (TypeError, ValueError, OverflowError):
        kind = "number" if isinstance(default, float) else "whole number"
        raise VictimError(f"{name}={value} is not a {kind}", f"write {option(name, default)}") from None
