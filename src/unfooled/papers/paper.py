"""A paper as data: what to do at each scale, its claims, its tables beside ours, its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from unfooled.core.victim import digest
from unfooled.errors import UserError
from unfooled.papers.claims import Claim
from unfooled.papers.findings import Quantity
from unfooled.papers.stages import Stage, described

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Size = TypeVar("Size")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done at one scale. `settings` are sentences on how, `differs` on why numbers may differ.

    `substitutions` are names and sentences of what stands in for the paper's; claims refer to the names.
    """

    stages: tuple[Stage, ...]
    settings: tuple[str, ...]
    differs: str
    substitutions: tuple[tuple[str, str], ...] = ()

    def fingerprint(self) -> str:
        """Of its stages, and so of its sizes: a sample that grew after a look at it is another plan."""
        return digest(json.dumps([described(stage) for stage in self.stages], sort_keys=True))


def by_scale(
    stages: Callable[[Size], tuple[Stage, ...]],
    smoke: Size,
    small: tuple[Size, tuple[str, ...], str],
    paper: Size,
    *how_paper: str,
    why_paper: str = "Other seeds and library versions.",
    substitutions: tuple[tuple[str, str], ...] = (),
) -> Callable[[Scale], Plan]:
    """Plans of sizes, `settings` and `differs`; the smoke test only shows that every stage can be done.

    `substitutions` are those of the small scale.
    """
    tiny = (smoke, ("Tiny models and texts.",), "Nothing is meant.")
    plans = {
        scale: Plan(
            stages=stages(size),
            settings=how,
            differs=why,
            substitutions=substitutions if scale == "small" else (),
        )
        for scale, (size, how, why) in zip(SCALES, (tiny, small, (paper, how_paper, why_paper)), strict=True)
    }
    return plans.__getitem__


@dataclass(frozen=True)
class Cell:
    """What the paper prints in a place, and what was measured there."""

    paper: str = ""
    quantity: Quantity | None = None


@dataclass(frozen=True)
class Table:
    """A table in the paper's shape."""

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Groups of bars; each bar has a name that keeps its colour in all groups."""

    name: str
    title: str
    groups: tuple[tuple[str, tuple[tuple[str, Quantity], ...]], ...]
    axis: str = "accuracy"


@dataclass(frozen=True)
class Curves:
    """Lines over `xs`, a quantity at each."""

    name: str
    title: str
    xs: tuple[float, ...]
    lines: tuple[tuple[str, tuple[Quantity, ...]], ...]
    x_axis: str
    axis: str = "accuracy"


@dataclass(frozen=True)
class Counts:
    """How many successes of a run changed how many words."""

    name: str
    title: str
    run: str


@dataclass(frozen=True)
class Confused:
    """True and decided class after the attack."""

    name: str
    title: str
    run: str


@dataclass(frozen=True)
class Plane:
    """Texts in the plane of a `PlaneStage`, coloured by class."""

    name: str
    title: str
    stage: str


Picture = Bars | Curves | Counts | Confused | Plane


@dataclass(frozen=True, kw_only=True)
class Paper:
    name: str
    title: str
    citation: str
    plan: Callable[[Scale], Plan] = field(hash=False, compare=False)
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    artefacts: tuple[str, ...] = ()  # paragraphs on numbers of the paper that are none
    examples: tuple[str, ...] = ()  # runs that texts are shown of


def require_scale(name: str) -> Scale:
    for scale in SCALES:
        if scale == name:
            return scale
    raise UserError(f"there is no scale {name!r}", f"choose from {', '.join(SCALES)}")
