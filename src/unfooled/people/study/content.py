"""What a study is made of: sources, items and who sees them in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from unfooled.people.study.protocols import Protocol, View

ORIGINAL = -1  # number of the source of texts that nobody attacked

Fields = tuple[tuple[str, str], ...]  # name and content of each field of a text
ItemKind = Literal["adversarial", "original", "pair", "check"]


@dataclass(frozen=True, slots=True)
class StudySource:
    """A run whose texts are judged."""

    name: str
    attack: str
    victim: str
    data: str
    path: str  # where it was when the study was made
    identity: str  # digest of the run's identity: finds it again wherever it lies


@dataclass(frozen=True, slots=True)
class Item:
    """Something to judge. `sources` says where each attacked text comes from, in the order of `texts`."""

    number: int
    view: View
    kind: ItemKind
    texts: tuple[Fields, ...]
    sources: tuple[int, ...]
    example: int  # key of the example in its data
    label: int  # its true class
    expected: Mapping[str, int] = field(default_factory=dict)  # right answers to an attention check
    facts: Mapping[str, float] = field(default_factory=dict)  # what the attack said about it


@dataclass(frozen=True, slots=True)
class Place:
    """One step of an annotator's way: the item, and whether a pair is shown right to left."""

    item: int
    flipped: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """All of a study but its codes and answers. The same seed gives the same content."""

    protocol: Protocol
    labels: tuple[str, ...]
    sources: tuple[StudySource, ...]
    items: tuple[Item, ...]
    primer: tuple[Fields, ...]
    orders: tuple[tuple[Place, ...], ...]  # one per annotator
    seed: int
    notices: tuple[str, ...] = ()
