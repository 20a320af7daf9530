"""Models trained again with other seeds, and everything that stands on them done again with each.

The stage `lstm` stands for the first seed, `lstm~1` and `lstm~2` for the next two. `Findings` looks for them
by these names, so that a claim is written once and its intervals cover rows and seeds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from unfooled.papers.stages import ChosenStage, HardenStage, Stage, TrainStage, in_order, is_file, needs_of

MARK = "~"
_NAMES = ("stage", "model", "run", "rows", "samples")  # fields that hold the name of a stage


def again(name: str, number: int) -> str:
    """What the stage is called that was done with the seed of that number; 0 is the first."""
    return f"{name}{MARK}{number}" if number else name


def with_seeds(
    stages: tuple[Stage, ...], seeds: Mapping[str, int], once: Collection[str] = ()
) -> tuple[Stage, ...]:
    """`seeds` says how many seeds a model is trained with; stages in `once` are done for the first alone.

    Rows that several models get right are those that they get right with every seed.
    """
    made = list(in_order(stages))
    for number in range(1, max(seeds.values(), default=1)):
        anew: set[str] = {name for name, most in seeds.items() if number < most}
        copies: list[Stage] = []
        for at, stage in enumerate(made):
            if MARK in stage.name or stage.name in once:
                continue
            if isinstance(stage, ChosenStage):
                more = tuple(_renamed(model, anew, number) for model in stage.models if model.stage in anew)
                made[at] = dataclasses.replace(stage, models=(*stage.models, *more))
            elif stage.name in anew or anew.intersection(needs_of(stage)):
                anew.add(stage.name)
                copies.append(_copy(stage, anew, number))
        made += copies
    return tuple(in_order(tuple(made)))


def _copy(stage: Stage, anew: Collection[str], number: int) -> Stage:
    copied: Stage = dataclasses.replace(_renamed(stage, anew, number), name=again(stage.name, number))
    if isinstance(copied, TrainStage | HardenStage):
        options = dict(copied.options)
        options["seed"] = int(options.get("seed", 0)) + number
        return dataclasses.replace(copied, options=tuple(options.items()))
    return copied


def _renamed(value: Any, anew: Collection[str], number: int, field: str = "") -> Any:
    """The same with the names of stages that are done again, and of their files, turned to those."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            each.name: _renamed(getattr(value, each.name), anew, number, each.name)
            for each in dataclasses.fields(value)
            if each.name != "name"
        }
        return dataclasses.replace(value, **parts)
    if isinstance(value, tuple):
        return tuple(_renamed(part, anew, number) for part in value)
    if is_file(value) and value[1:-1] in anew:
        return f"{{{again(value[1:-1], number)}}}"
    return again(value, number) if field in _NAMES and value in anew else value
