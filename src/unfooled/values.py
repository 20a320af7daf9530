"""How a typed value is read: `on`, `true` and `1e-3` mean the same wherever a setting is given."""

from __future__ import annotations

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
