"""What a person sees while a model is trained, or while something is counted towards a total."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from unfooled.progress import ProgressObserver, StopsAtTheEnd
from unfooled.report.diffs import visible
from unfooled.training.observer import TrainObserver


@contextmanager
def counting(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is gone afterwards, and the function that moves it: so many done, of so many."""
    with Progress(console=console, transient=True) as bars:
        task = bars.add_task(escape(what))
        yield lambda done, total: bars.update(task, completed=done, total=total)


class ProgressBars(StopsAtTheEnd, ProgressObserver):
    """A bar for each piece of work, one after the other."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._task: Any = None

    def started(self, total: int, done: int = 0, *, what: str = "") -> None:
        self._task = self._bars.add_task(escape(visible(what)), total=total, completed=done)
        self._bars.start()

    def advanced(self, count: int = 1) -> None:
        self._bars.advance(self._task, count)

    def stop(self) -> None:
        self._bars.stop()


class TrainProgress(StopsAtTheEnd, TrainObserver):
    """A bar of steps on standard error, and a line after each epoch."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = self._shown = title
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]} {task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._task: Any = None
        self._loss = ""

    def note(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False)

    def started(self, total: int, done: int = 0, *, what: str = "") -> None:
        self.stop()
        if done:
            self.note(f"going on after {done} of at most {total} steps")
        self._loss = ""
        self._task = self._progress.add_task(
            escape(self._shown), total=total, completed=done, state="", unit="steps"
        )
        self._progress.start()

    def step(self, done: int, loss: float | None) -> None:
        if loss is not None:
            self._loss = f"loss {loss:.3f}"
        if self._task is not None:
            self._progress.update(self._task, completed=done, state=self._loss)

    def evaluated(self, epoch: int, metrics: Mapping[str, float]) -> None:
        parts = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in metrics.items()]
        self.note(f"epoch {epoch}: validation {', '.join(parts)}")

    def trial(self, number: int, total: int, options: Mapping[str, object]) -> None:
        self._shown = f"{self._title} {number}/{total}"
        settings = ", ".join(f"{name} {value}" for name, value in options.items())
        self.note(f"trial {number} of {total}: {settings}")

    def tried(self, number: int, accuracy: float | None) -> None:
        self.stop()
        if accuracy is not None:
            self.note(f"trial {number}: validation accuracy {accuracy:.3f}")

    def stop(self) -> None:
        if self._task is not None:
            self._progress.stop()
            self._progress.remove_task(self._task)
            self._task = None


class HardenProgress(TrainProgress):
    """Also shows what is made before and between the steps."""

    def __init__(self, console: Console, title: str) -> None:
        super().__init__(console, title)
        self._work: dict[str, Any] = {}

    def working(self, what: str, done: int, total: int) -> None:
        if what not in self._work:
            self._work[what] = self._progress.add_task(escape(what), total=total, state="", unit="texts")
            self._progress.start()
        self._progress.update(self._work[what], completed=done)
        if done >= total:
            self._progress.update(self._work[what], visible=self._task is None)


class SearchProgress(HardenProgress):
    """A line per trial says it all."""

    def tried(self, number: int, accuracy: float | None) -> None:
        self.stop()
