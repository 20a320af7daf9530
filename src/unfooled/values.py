"""How what was typed is read: `on`, `1e-3`, `a,b` and `name=value` mean the same wherever they are given."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from unfooled.errors import UserError

_TRUTH = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)


def read_truth(value: Any) -> bool:
    """True or false, by any of their words; ValueError for other ones."""
    word = str(value).strip().lower()
    if word not in _TRUTH:
        raise ValueError("write true or false")
    return _TRUTH[word]


def named_truth(name: str, value: Any, error: type[UserError], remedy: str) -> bool:
    """Of the setting `name`; `error` for other words."""
    try:
        return read_truth(value)
    except ValueError:
        raise error(f"{name}={value} is neither true nor false", remedy) from None


def read_number(value: Any, *, whole: bool) -> int | float:
    """A number; where it must be `whole`, 1e3 is 1000 and 2.5 is a ValueError."""
    if isinstance(value, bool) or value is None:
        raise ValueError("this is not a number")
    if whole and isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        return int(value)  # of any size
    number = float(value)
    if not whole:
        return number
    if not number.is_integer():
        raise ValueError("this is not a whole number")
    return int(number)


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


def numbers(given: str, option: str) -> list[int]:
    """`4,16` as whole numbers."""
    try:
        return [int(number) for number in given.split(",") if number.strip()]
    except ValueError:
        raise UserError(f"{option} {given!r} is no list of numbers", f"write {option} 4,16") from None


def literal(value: str) -> Any:
    """Numbers, booleans and JSON as such; anything else is a string."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value
