"""Label values of a file, their order, and how they meet the labels of a victim."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from unfooled.errors import DataError

MOST_LABELS = 1000  # a column with more distinct values is no label column
LONGEST_LABEL = 1000  # characters
_SHOWN = 20
_PLACES = 5
_ALIKE = 0.75  # of difflib: a slip of the pen, not another word

_WHOLE = re.compile(r"[+-]?\d{1,18}(?:\.0+)?")
_NUMBERED = re.compile(r"(?:label[ _-]?)?(\d{1,4})")
_SHORT = {"neg": "negative", "neu": "neutral", "pos": "positive"}
_POLARITY = {"0": "negative", "1": "positive"}


@dataclass(frozen=True, slots=True)
class Coding:
    """Class names in order, and the class of each value found in the data.

    `ordered` is true where the order means something: numbers in the file, or names the user listed.
    """

    labels: tuple[str, ...]
    codes: Mapping[str, int]
    ordered: bool


def label_value(value: Any) -> str:
    """One spelling per label: `1`, `1.0`, `"1"` and `True` are all `"1"`; a missing label is `""`."""
    if value is None:
        return ""
    if isinstance(value, str):
        value = value.strip()
        if _WHOLE.fullmatch(value):
            return str(int(value.partition(".")[0]))
        if len(value) > LONGEST_LABEL:
            raise ValueError(f"the label has {len(value):,} characters: this looks like a text")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise ValueError("the label holds half of a surrogate pair")
        return "" if value.casefold() == "nan" else value
    if isinstance(value, Integral):
        if abs(int(value)) >= 10**LONGEST_LABEL:
            raise ValueError("the label is a number with too many digits")
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() else str(number)
    raise ValueError(f"the label is a {type(value).__name__}, not a name or a number")


def code_labels(
    values: Collection[str],
    names: Sequence[str] | None = None,
    *,
    places: Mapping[str, str] | None = None,
) -> Coding:
    """Give every label value of the data its class. `names` lists the classes in the data's order.

    `places` says where each value first occurs, for errors.
    """
    numbers = _numbers(values)
    if names is None:
        if numbers is None:
            ordered = sorted(values, key=lambda value: (value.casefold(), value))
        elif 0 in numbers.values() and min(numbers.values()) >= 0 and max(numbers.values()) < MOST_LABELS:
            ordered = [str(i) for i in range(max(numbers.values()) + 1)]
        else:
            ordered = sorted(values, key=int)
        position = {label: i for i, label in enumerate(ordered)}
        return Coding(tuple(ordered), {value: position[value] for value in values}, numbers is not None)
    names = tuple(names)
    if len({name.casefold() for name in names}) < len(names):
        raise DataError(f"a class is named twice: {_shown(names)}", "give each class its own name")
    if numbers is not None and all(0 <= number < len(names) for number in numbers.values()):
        return Coding(names, numbers, True)
    if numbers is not None and len(numbers) == len(names):
        return Coding(names, {value: i for i, value in enumerate(sorted(values, key=int))}, True)
    matched = _match(sorted(values), names)
    if matched is None:
        raise DataError(
            "the data's labels do not match the named classes"
            f"\n    data:    {_shown(sorted(values))}\n    classes: {_shown(names)}"
            + _where(_strangers(sorted(values), names), places),
            "correct these rows, or the list of classes",
        )
    return Coding(names, matched, True)


def match_labels(
    data: Sequence[str],
    victim: Sequence[str],
    *,
    label_map: Mapping[str, str] | None = None,
    ordered: bool = False,
    places: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """For each label of the data the index of the victim's label it means.

    The map decides first, then equal names, then common short names and polarities, then numbers.
    `ordered` says that the data's labels stand in a declared order, which may then be paired with a
    victim whose labels are mere numbers. `places` says where each label first occurs, for errors.
    """
    if not victim:
        raise DataError(
            "this model has no classes: it writes text", "use a classifier here; `unfooled attack` takes both"
        )
    found = _by_map(data, victim, label_map or {})
    rest = [label for label in data if label not in found]
    matched = _match(rest, victim)
    if matched is not None:
        return {label: {**found, **matched}[label] for label in data}
    numbered = all(_NUMBERED.fullmatch(name.casefold()) for name in victim)
    if ordered and numbered and not found and len(data) == len(victim):
        return {label: i for i, label in enumerate(data)}
    raise _mismatch("the data's labels do not match the victim's", data, victim, rest, places)


def _match(data: Sequence[str], victim: Sequence[str]) -> dict[str, int] | None:
    for rule in (_by_name, _by_meaning, _by_number):
        matched = rule(data, victim)
        if matched is not None:
            return matched
    return None


def _strangers(data: Sequence[str], victim: Sequence[str]) -> list[str]:
    """Labels that mean nothing to the victim even when each is looked at alone."""
    return [label for label in data if _match([label], victim) is None]


def _where(labels: Sequence[str], places: Mapping[str, str] | None) -> str:
    known = [label for label in labels if label in (places or {})]
    lines = [f"\n    {label!r} first occurs in {(places or {})[label]}" for label in known[:_PLACES]]
    more = f"\n    and {len(known) - _PLACES} more unknown labels" if len(known) > _PLACES else ""
    return "".join(lines) + more


def _by_map(data: Sequence[str], victim: Sequence[str], label_map: Mapping[str, str]) -> dict[str, int]:
    ours = {label.casefold(): label for label in data}
    theirs = {label.casefold(): i for i, label in enumerate(victim)}
    found: dict[str, int] = {}
    for left, right in label_map.items():
        label = ours.get(label_value(left).casefold())
        index = theirs.get(right.strip().casefold())
        if index is None and right.strip().isdecimal() and int(right) < len(victim):
            index = int(right)
        if label is None:
            raise _mismatch(f"the label map names {left!r}, which is no label of the data", data, victim)
        if index is None:
            raise _mismatch(f"the label map names {right!r}, which is no label of the victim", data, victim)
        found[label] = index
    return found


def _by_name(data: Sequence[str], victim: Sequence[str]) -> dict[str, int] | None:
    for spelling in (str.casefold, _letters):
        matched = _lookup([spelling(label) for label in data], [spelling(name) for name in victim])
        if matched is not None:
            return dict(zip(data, matched, strict=True))
    return None


def _by_meaning(data: Sequence[str], victim: Sequence[str]) -> dict[str, int] | None:
    binary = len(victim) == 2 and len(data) <= 2

    def meaning(label: str) -> str:
        plain = label.casefold()
        number = _NUMBERED.fullmatch(plain)
        if binary and number:
            plain = _POLARITY.get(number[1], plain)
        return _SHORT.get(plain, plain)

    matched = _lookup([meaning(label) for label in data], [meaning(name) for name in victim])
    return None if matched is None else dict(zip(data, matched, strict=True))


def _by_number(data: Sequence[str], victim: Sequence[str]) -> dict[str, int] | None:
    numbers = _numbers(data)
    if numbers is None or not all(0 <= number < len(victim) for number in numbers.values()):
        return None
    # 1, 2, 3 without a 0 most likely counts from one: guessing would shift every label in silence.
    if len(numbers) > 1 and 0 not in numbers.values():
        return None
    return numbers


def _lookup(data: list[str], victim: list[str]) -> list[int] | None:
    position = {name: i for i, name in enumerate(victim)}
    if len(position) < len(victim) or any(label not in position for label in data):
        return None
    return [position[label] for label in data]


def _letters(label: str) -> str:
    """Without spaces and punctuation, so that `Sci/Tech` meets `sci_tech`; numbers keep their sign."""
    plain = label.casefold()
    return re.sub(r"[\W_]+", "", plain) if re.search(r"[^\W\d_]", plain) else plain


def _numbers(values: Collection[str]) -> dict[str, int] | None:
    """Every value as a whole number, or nothing where one is a name."""
    if not all(_WHOLE.fullmatch(value) for value in values):
        return None
    return {value: int(value) for value in values}


def _mismatch(
    cause: str,
    data: Sequence[str],
    victim: Sequence[str],
    rest: Sequence[str] = (),
    places: Mapping[str, str] | None = None,
) -> DataError:
    unknown = _strangers(rest, victim)
    typo = "correct these rows, or " if unknown and len(unknown) < len(data) else ""
    return DataError(
        f"{cause}\n    data:   {_shown(data)}\n    victim: {_shown(victim)}{_where(unknown, places)}",
        f"{typo}pair both sides with --label-map {_likely_map(data, unknown or data, victim)} "
        "or, where the victim's names are wrong, name its classes in its order with --labels",
    )


def _likely_map(data: Sequence[str], unknown: Sequence[str], victim: Sequence[str]) -> str:
    """A map that can be right: of names that are alike, or of numbers that count the classes from one.

    Any other pair would be believed, and be wrong as often as not: then only the form is shown.
    """
    if sorted(_numbers(data) or (), key=int) == [str(number + 1) for number in range(len(victim))]:
        pairs = {str(number): name for number, name in enumerate(victim, start=1)}
    else:
        pairs = _alike(unknown, victim)
    changed = [f"{label}={name}" for label, name in pairs.items() if label.casefold() != name.casefold()]
    if not changed:
        return "DATA_LABEL=VICTIM_LABEL,…"
    return ",".join(changed[:_SHOWN]) + (",…" if len(pairs) < len(unknown) or len(changed) > _SHOWN else "")


def _alike(data: Sequence[str], victim: Sequence[str]) -> dict[str, str]:
    """Labels with the class that they name, or name but for a slip of the pen."""
    pairs: dict[str, str] = {}
    spelled = {name.casefold(): name for name in reversed(victim)}
    for label in data:
        if _WHOLE.fullmatch(label):
            continue
        named = _by_name([label], victim) or _by_meaning([label], victim)
        near = difflib.get_close_matches(label.casefold(), spelled, n=1, cutoff=_ALIKE)
        if named is not None:
            pairs[label] = victim[named[label]]
        elif near:
            pairs[label] = spelled[near[0]]
    return pairs


def _shown(labels: Sequence[str]) -> str:
    more = f", … ({len(labels)} in all)" if len(labels) > _SHOWN else ""
    return ", ".join(labels[:_SHOWN]) + more
