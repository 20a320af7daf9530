"""A small plan of a reproduction, and someone who watches it being done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unfooled.core.result import Result
from unfooled.papers.runner import FILE, StageObserver, StageRunner
from unfooled.papers.stages import (
    AttackStage,
    FixtureStage,
    Model,
    Rows,
    Stage,
    TrainStage,
    WordsStage,
    settings,
)
from unfooled.runs.attack import Observer
from unfooled.runs.lock import Lock

REVIEWS = FixtureStage(name="reviews", what="reviews")
TRAIN, TEST = Rows(source="{reviews}", split="train"), Rows(source="{reviews}")


def plan(alpha: float = 1.0, limit: int = 8) -> tuple[Stage, ...]:
    return (
        REVIEWS,
        TrainStage(name="nb", family="naive-bayes", data=TRAIN, options=settings(alpha=alpha)),
        WordsStage(name="words", data=TRAIN),
        AttackStage(
            name="swapped",
            model=Model(stage="nb"),
            data=TEST,
            attack="strongest-words@3",
            changes=settings(**{"search.words": "{words}"}),
            limit=limit,
        ),
    )


class Seen(StageObserver):
    """Notes what was done and what was there; may stop in the middle of an attack."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.done: list[str] = []
        self.there: list[str] = []
        self.told: list[str] = []
        self.stop_after = stop_after

    def begins(self, stage: Stage, number: int, total: int, *, finished: bool) -> None:
        (self.there if finished else self.done).append(stage.name)

    def notes(self, line: str) -> None:
        self.told.append(line)

    @contextmanager
    def attacking(self, title: str) -> Iterator[Observer]:
        yield Stopping(self.stop_after)


class Stopping(Observer):
    def __init__(self, after: int | None) -> None:
        self.after = after
        self.count = 0

    def finished(self, result: Result) -> None:
        self.count += 1
        if self.after is not None and self.count > self.after:
            raise KeyboardInterrupt


def held(work: Path, stage: Stage) -> Lock:
    """As if another process were at a stage that needs the reviews alone."""
    first = StageRunner(work)
    first.carry_out([REVIEWS])
    folder = first.folder(stage, first.fingerprint(stage))
    folder.mkdir(parents=True)
    return Lock.take(folder / FILE)
