"""`unfooled reproduce`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from unfooled.cli.app import Exit
from unfooled.cli.compare import duration
from unfooled.cli.live import LiveObserver
from unfooled.cli.train import TrainProgress
from unfooled.papers.pages import tally
from unfooled.papers.paper import require_scale
from unfooled.papers.plans import NAMES, find_paper
from unfooled.papers.reproduce import SUMMARY, Reproduction, check, reproduce, write_summary
from unfooled.papers.runner import Watcher
from unfooled.papers.stages import Stage
from unfooled.runs.attack import Observer
from unfooled.training.watching import TrainObserver
from unfooled.victims.preflight import Preflight

WORKERS = {"small": 2}  # the scale that is meant for two cores


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    paper: str
    scale: str
    data: Path | None
    work: Path
    out: Path
    so_far: bool
    workers: int | None
    json: bool


class _Attacking(LiveObserver):
    def checked(self, report: Preflight) -> None:
        """The models are our own: their checks would only push the bars away."""


class LiveWatcher(Watcher):
    """A line per stage and a bar for what takes long, on standard error."""

    def __init__(self, console: Console, paper: str) -> None:
        self._console = console
        self._paper = paper

    def begins(self, stage: Stage, number: int, total: int, *, finished: bool) -> None:
        state = " (done)" if finished else ""
        self._say(f"{self._paper} {number}/{total}: {stage.kind} {stage.name}{state}")

    def waits(self, stage: Stage) -> None:
        self._say(f"  waiting for {stage.kind} {stage.name}, which another process is at")

    def ended(self, stage: Stage, seconds: float) -> None:
        if seconds >= 2:
            self._say(f"  {duration(seconds)}")

    def notes(self, line: str) -> None:
        self._say(line)

    def attacking(self, title: str) -> AbstractContextManager[Observer]:
        return _Attacking(self._console, title=title)

    @contextmanager
    def training(self, title: str) -> Iterator[TrainObserver]:
        with TrainProgress(self._console, title) as observer:
            yield observer

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False)


def run_reproduce(options: ReproduceOptions) -> int:
    require_scale(options.scale)
    names = NAMES if options.paper == "all" else (options.paper,)
    papers = [find_paper(name) for name in names]  # a wrong name must not show up later
    check(
        papers,
        scale=options.scale,
        work=options.work,
        out=options.out,
        data=options.data,
        so_far=options.so_far,
    )
    console = Console(stderr=True, quiet=options.json)
    found: list[Reproduction] = []
    for paper in papers:
        try:
            one = reproduce(
                paper,
                scale=options.scale,
                work=options.work,
                out=options.out,
                data=options.data,
                so_far=options.so_far,
                workers=options.workers or WORKERS.get(options.scale, 1),
                watcher=LiveWatcher(console, paper.name),
            )
        except KeyboardInterrupt:
            typer.echo(
                f"interrupted: what is finished is saved in {options.work}\n  → repeat the command to go on",
                err=True,
            )
            return Exit.INTERRUPTED
        found.append(one)
        if not options.json:
            _show(one)
    write_summary(options.out)
    if options.json:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False))
    else:
        typer.echo(f"\nsummary: {options.out / SUMMARY}")
    return Exit.SOME_ERRORS if any(one.errors for one in found) else Exit.DONE


def _show(one: Reproduction) -> None:
    typer.echo(f"\n{one.paper.title} ({one.scale}): {tally(list(one.judged))}")
    for claim, judged in one.judged:
        typer.echo(f"  {judged.status:>13}  {claim.sentence}\n{'':15}  {judged.short or judged.measured}")
    if one.errors:
        typer.echo(f"{one.errors} rows ended in an error; they are in no figure")
    typer.echo("written: " + ", ".join(str(path) for path in one.files[:3]))
