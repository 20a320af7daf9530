"""What is typed after options, as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unfooled.errors import UserError


def listed(value: str | None) -> list[str] | None:
    """`a,b` as a list."""
    return [part.strip() for part in value.split(",")] if value else None


def columns(value: str | None) -> str | list[str] | None:
    """One text column by its name, two as a list."""
    names = listed(value)
    return names[0] if names and len(names) == 1 else names


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """`name=value`, each."""
    found: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"{option} {pair!r} has no '='", f"write {option} name=value")
        found[name.strip()] = value.strip()
    return found


def several(given: Iterable[str]) -> list[str]:
    """Each of `a,b` and `c`: what may be repeated, separated by commas, or both."""
    return [part for value in given for part in value.split(",")]


def settings(given: Iterable[str]) -> dict[str, str]:
    """`name=value`, each, of a family or method; `max-length` is `max_length`."""
    return {name.replace("-", "_"): value for name, value in pairs(given, "--set").items()}


def shares(given: Iterable[str], option: str) -> dict[str, float]:
    """`offensive=0.8,hate=0.5`, each, as numbers."""
    found = pairs(several(given), option)
    try:
        return {name: float(value) for name, value in found.items()}
    except ValueError:
        raise UserError(f"{option} {', '.join(given)}: no number", f"write {option} CLASS=0.8") from None


def literal(value: str) -> Any:
    """Numbers, booleans and JSON as such; anything else is a string."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def slug(*names: str) -> str:
    """A folder's name, from the names of what is in it."""
    return "-".join(re.sub(r"[^\w.@]+", "_", Path(name).name or name).strip("_") for name in names)
