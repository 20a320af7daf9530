"""`unfooled reproduce`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import typer

from unfooled.cli.command import Exit, argument, interrupted, option
from unfooled.cli.options import EngineOptions

if TYPE_CHECKING:
    from rich.console import Console

    from unfooled.papers.reproduce import Reproduction
    from unfooled.papers.runner import StageObserver
    from unfooled.papers.stages import Stage
    from unfooled.runs.attack import Observer
    from unfooled.training.observer import TrainObserver

WORKERS = {"small": 2}  # the scale that is meant for two cores


@dataclass(frozen=True, kw_only=True)
class Reproduce(EngineOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled reproduce lstm-jsma --scale small
  unfooled reproduce all --scale smoke --out smoke --work smoke-work
  unfooled reproduce firebert --scale paper --work /big/disk/work
  unfooled reproduce all --data ../data
  unfooled reproduce self-attentive --workers 4
  unfooled reproduce firebert --so-far
  unfooled reproduce all --scale paper --dry-run
\b
Papers: lstm-jsma, self-attentive, firebert, bae, breaking-bert, or all of them.
Scales: smoke (tiny models, minutes, numbers without meaning), small (two cores and the data sets of
UNFOOLED_DATA, some hours for all papers), paper (the full protocol with models and data from the hub).
Everything is kept in WORK: repeat the command to go on after a stop.
"""

    paper: str = argument(..., "A paper from the list below, or `all`.", metavar="PAPER")
    scale: str = option("small", "smoke, small or paper.", "-s")
    data: Path | None = option(None, "Folder of data sets. [default: $UNFOOLED_DATA]", "-d")
    work: Path = option(Path("reproduction-work"), "Folder that keeps models, samples and runs.", "-w")
    out: Path = option(Path("reproduction"), "Folder of the pages.", "-o")
    so_far: bool = option(False, "Run nothing: judge what is finished, and write its page.")
    dry_run: bool = option(False, "Run nothing: list what would be downloaded, and about how many hours.")
    workers: int | None = option(
        None, "Processes that share the stages. [default: 2 at the scale small, else 1]", min=1
    )
    json: bool = option(False, "Print the claims as JSON and nothing else.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.papers.paper import require_scale
        from unfooled.papers.plans import NAMES, find_paper
        from unfooled.papers.reproduce import SUMMARY, check, reproduce, write_summary

        require_scale(self.scale)
        names = NAMES if self.paper == "all" else (self.paper,)
        papers = [find_paper(name) for name in names]  # a wrong name must not show up later
        given: dict[str, Any] = {"scale": self.scale, "work": self.work, "out": self.out}
        given |= {"data": self.data, "so_far": self.so_far}
        if self.dry_run:
            return self._forecast()
        check(papers, **given)
        console = Console(stderr=True, quiet=self.json)
        found: list[Reproduction] = []
        for paper in papers:
            try:
                done = reproduce(
                    paper,
                    **given,
                    workers=self.where(self.workers or WORKERS.get(self.scale, 1)),
                    watcher=cast("StageObserver", StageLines(console, paper.name)),
                )
            except KeyboardInterrupt:
                return interrupted(f"what is finished is saved in {self.work}")
            found.append(done)
            if not self.json:
                _show(done)
        write_summary(self.out)
        if self.json:
            typer.echo(
                json.dumps([reproduction.to_dict() for reproduction in found], indent=2, ensure_ascii=False)
            )
        else:
            typer.echo(f"\nsummary: {self.out / SUMMARY}")
        return Exit.SOME_ERRORS if any(reproduction.errors for reproduction in found) else Exit.DONE

    def _forecast(self) -> int:
        """One forecast for all papers: what they share is done once."""
        from unfooled.papers.forecast import forecast
        from unfooled.papers.paper import require_scale
        from unfooled.papers.plans import NAMES, find_paper
        from unfooled.papers.runner import StageRunner

        scale = require_scale(self.scale)
        runner = StageRunner(self.work, self.data)
        names = NAMES if self.paper == "all" else (self.paper,)
        counted: set[str] = set()
        told = {
            name: forecast(find_paper(name).plan(scale).stages, runner, gpu=scale == "paper", counted=counted)
            for name in names
        }
        if self.json:
            typer.echo(json.dumps({name: found.to_dict() for name, found in told.items()}, indent=2))
            return Exit.DONE
        where = "one GPU" if scale == "paper" else "one core"
        for name, found in told.items():
            kinds = ", ".join(f"{kind} {hours:.1f}" for kind, hours in found.by_kind().items())
            typer.echo(
                f"{name}: {found.left} of {found.stages} stages to do, about {found.hours:.1f} hours of "
                f"{where}" + (f" ({kinds})" if kinds else "")
            )
            for download in found.downloads:
                typer.echo(f"  needs {download}")
        if len(told) > 1:
            hours = sum(found.hours for found in told.values())
            typer.echo(f"together about {hours:.1f} hours of {where}")
        return Exit.DONE


class StageLines:
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
        from unfooled.report.tables import duration

        if seconds >= 2:
            self._say(f"  {duration(seconds)}")

    def notes(self, line: str) -> None:
        self._say(line)

    def attacking(self, title: str) -> AbstractContextManager[Observer]:
        from unfooled.report.live import QuietLiveObserver

        return QuietLiveObserver(self._console, title=title)

    @contextmanager
    def training(self, title: str) -> Iterator[TrainObserver]:
        from unfooled.report.progress import TrainProgress

        with TrainProgress(self._console, title) as observer:
            yield observer

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False)


def _show(done: Reproduction) -> None:
    from unfooled.papers.pages import tally

    typer.echo(f"\n{done.paper.title} ({done.scale}): {tally(list(done.judged))}")
    for claim, judged in done.judged:
        typer.echo(f"  {judged.status:>13}  {claim.sentence}\n{'':15}  {judged.short or judged.measured}")
    if done.errors:
        typer.echo(f"{done.errors} rows ended in an error; they are in no figure")
    typer.echo("written: " + ", ".join(str(path) for path in done.files[:3]))
