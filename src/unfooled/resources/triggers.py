"""Triggers: a few words that, put before any text of a class, turn a victim's decision; in a readable file.

`unfooled trigger` learns them and writes the file; the attack `uat` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unfooled.errors import ResourceError
from unfooled.files import read_named, write_named
from unfooled.text import Text

KIND = "unfooled triggers"
COMMAND = "unfooled trigger --model MODEL --data TRAINING_DATA --out {}"


@dataclass(frozen=True)
class Trigger:
    """The words, and what they did to texts that they were not learned from."""

    words: tuple[str, ...]
    rows: int = 0  # held out, of the class, and right without the trigger
    flipped: int = 0  # of these


@dataclass(frozen=True)
class Triggers:
    """One trigger for each class that it was learned against; `target` is the class that they lead to."""

    labels: tuple[str, ...]
    against: Mapping[str, Trigger]
    target: str | None = None
    model: str = ""
    data: str = ""

    def write(self, path: Path) -> None:
        content = {
            "kind": KIND,
            "labels": list(self.labels),
            "target": self.target,
            "model": self.model,
            "data": self.data,
            "triggers": self.to_dict(),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_named(path, text, ResourceError, "choose another --out")

    def to_dict(self) -> dict[str, Any]:
        """By class: the words and what they did."""
        return {label: asdict(trigger) for label, trigger in self.against.items()}

    def told(self) -> list[str]:
        """A line for each class."""
        lines = []
        for label, trigger in self.against.items():
            share = f" ({trigger.flipped / trigger.rows:.0%})" if trigger.rows else ""
            flips = f"flips {trigger.flipped} of {trigger.rows} rows held out{share}"
            lines.append(f"{label}: {' '.join(trigger.words)!r} {flips}")
        return lines

    @classmethod
    def read(cls, path: str | Path) -> Triggers:
        remedy = f"make it: {COMMAND.format(path)}"
        text = read_named(Path(path).expanduser(), "the trigger file", ResourceError, remedy)
        try:
            content = json.loads(text)
        except ValueError as error:
            raise ResourceError(f"{path} is not JSON ({error})", remedy) from error
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ResourceError(f"{path} was not written by `unfooled trigger`", remedy)
        labels: Any = content.get("labels")
        target: Any = content.get("target")
        found: Any = content.get("triggers")
        if not (_are_strings(labels) and isinstance(found, dict) and found and set(found) <= set(labels)):
            raise ResourceError(f"{path} names no classes or no triggers", remedy)
        if not (target is None or target in labels):
            raise ResourceError(f"{path} leads to {target!r}, which is none of its classes", remedy)
        against = {label: _trigger(path, label, value, remedy) for label, value in found.items()}
        return cls(tuple(labels), against, target, str(content.get("model")), str(content.get("data")))


def _trigger(path: str | Path, label: str, value: Any, remedy: str) -> Trigger:
    words: Any = value.get("words") if isinstance(value, dict) else None
    if not (_are_strings(words) and all(word.strip() for word in words)):
        raise ResourceError(f"{path} has no words against {label!r}", remedy)
    counts = (value.get("rows", 0), value.get("flipped", 0))
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ResourceError(f"{path} has odd counts for {label!r}", remedy)
    return Trigger(tuple(words), *counts)


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def put_before(text: Text, words: tuple[str, ...]) -> Text:
    """The text with a trigger at its beginning."""
    for word in reversed(words):
        text = text.insert(0, word)
    return text
