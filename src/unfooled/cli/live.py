"""What a person sees while an attack runs: checks, then rate, success so far and time left."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from unfooled.core.result import Result
from unfooled.report.diffs import visible
from unfooled.runs.attack import Observer
from unfooled.victims.preflight import Preflight

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "fail": "[red]✗[/]"}


class LiveObserver(Observer):
    """Draws on standard error, so that standard output stays clean for machines."""

    def __init__(self, console: Console, *, title: str) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[broken]}"),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._task = self._progress.add_task(escape(title), total=None, rate="", broken="", visible=False)
        self._successes = self._attacked = self._errors = 0
        self.done = self.total = 0

    def __enter__(self) -> LiveObserver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def noticed(self, message: str) -> None:
        self._console.print(f"{_MARKS['warning']} {escape(visible(message))}", highlight=False)

    def checked(self, report: Preflight) -> None:
        for check in report.checks:
            line = f"{_MARKS[check.verdict]} {escape(visible(check.name))}: {escape(visible(check.message))}"
            if check.remedy and check.verdict != "fail":
                line += f"\n  → {escape(visible(check.remedy))}"
            self._console.print(line, highlight=False)

    def started(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        if done:
            self._console.print(f"going on: {done} of {total} examples are already finished", highlight=False)
        self._progress.update(self._task, total=total, completed=done, visible=True)
        self._progress.start()

    def finished(self, result: Result) -> None:
        self.done += 1
        self._errors += result.outcome == "error"
        self._successes += result.outcome == "success"
        self._attacked += result.outcome in ("success", "failure")
        broken = f"{self._successes}/{self._attacked} fooled"
        if self._errors:
            broken += f", {self._errors} err"
        speed = self._progress.tasks[0].speed
        rate = f"{speed:,.{0 if speed >= 10 else 1}f}/s" if speed else ""
        self._progress.update(self._task, completed=self.done, rate=rate, broken=broken)
