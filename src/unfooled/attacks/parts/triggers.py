"""Learned triggers as an oracle: which words to put before a text of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unfooled.core.victim import Victim
from unfooled.data.labels import match_labels
from unfooled.errors import DataError, ResourceError
from unfooled.resources.triggers import COMMAND, Triggers


class TriggerOracle:
    """(class, target or -1) → the words of its trigger; none where the file has no such trigger."""

    batch_size = 1024

    def __init__(self, triggers: Mapping[tuple[int, int], tuple[str, ...]]) -> None:
        self._triggers = triggers

    def __call__(self, items: Sequence[Any], /) -> list[tuple[str, ...]]:
        return [self._triggers.get(tuple(item), ()) for item in items]


def open_triggers(victim: Victim, path: str) -> TriggerOracle:
    """`trigger:trigger.json`; its classes must be among the victim's."""
    read = Triggers.read(path)
    try:
        number = match_labels(read.labels, victim.labels)
    except DataError:
        raise ResourceError(
            f"{path} has triggers for the classes {', '.join(read.labels)}, "
            f"but those of {victim.name} are {', '.join(victim.labels)}",
            f"learn them for this model: {COMMAND.format(path)}",
        ) from None
    target = -1 if read.target is None else number[read.target]
    return TriggerOracle({(number[label], target): trigger.words for label, trigger in read.against.items()})
