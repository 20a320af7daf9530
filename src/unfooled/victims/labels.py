"""Matching a model's own class names with those that the user gave."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unfooled.errors import VictimError

_GENERIC = re.compile(r"(?:label_?|class_?)?(\d+)", re.IGNORECASE)


def settle_labels(
    own: Sequence[str], given: Sequence[str] | None
) -> tuple[tuple[str, ...], list[int] | None]:
    """The labels to show, and the order in which to take the model's columns (None: as they come).

    Numbered classes (`0`, `LABEL_0`) take the given names in turn. Named classes may be given in another
    order, which moves the columns; any other name is an error, because guessing would swap classes.
    """
    own = tuple(own)
    if given is None:
        return own, None
    names = tuple(given)
    if len(set(names)) != len(names):
        raise VictimError(f"a label is given twice: {', '.join(names)}", "give each label once")
    if len(names) != len(own):
        raise VictimError(
            f"{len(names)} labels given ({', '.join(names)}), but the model has {len(own)} classes "
            f"({', '.join(own)})",
            "give one label per class, in the model's order",
        )
    if names == own or is_numbered(own):
        return names, None
    place = {name.lower(): index for index, name in enumerate(own)}
    if len(place) == len(own) and {name.lower() for name in names} == set(place):
        return names, [place[name.lower()] for name in names]
    raise VictimError(
        f"the labels given ({', '.join(names)}) are not the model's ({', '.join(own)})",
        "use the model's names, or leave the labels out",
    )


def is_numbered(names: Sequence[str]) -> bool:
    """`0, 1, 2` or `LABEL_0, LABEL_1`, in that order: numbers rather than names."""
    matches = [_GENERIC.fullmatch(name) for name in names]
    return all(match and int(match.group(1)) == index for index, match in enumerate(matches))


def parse_labels(labels: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Labels as a sequence, or as one string with commas."""
    if labels is None:
        return None
    if isinstance(labels, str):
        labels = [part.strip() for part in labels.split(",")]
    names = tuple(str(label) for label in labels)
    if not names or not all(names):
        raise VictimError("a label is empty", "give every class a name, such as --labels negative,positive")
    return names
