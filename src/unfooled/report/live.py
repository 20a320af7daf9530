"""What a person sees while an attack runs: checks, then rate, success so far and time left."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

from unfooled.core.result import ATTACKED, Result
from unfooled.core.session import Life
from unfooled.progress import StopsAtTheEnd
from unfooled.report.diffs import visible
from unfooled.runs.attack import Observer
from unfooled.victims.preflight import Preflight

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "fail": "[red]✗[/]"}


class _Told(ProgressColumn):
    """What a function says, asked anew at most twice a second by the thread that draws."""

    max_refresh = 0.5

    def __init__(self, tell: Callable[[], str]) -> None:
        super().__init__()
        self._tell = tell

    def render(self, task: Task) -> Text:
        return Text(self._tell())


class TimeLeft:
    """How much longer, from what finished examples took and how far the others are.

    Counting examples alone says "one second" for as long as the last of them take: those that the victim
    gets wrong end at once, and hundreds are under way side by side. So the unit is the question. An example
    that has asked more than finished ones did is taken to need half as much again as it has had.
    """

    def __init__(self) -> None:
        self._finished = self._attacked = self._queries = 0

    def finished(self, queries: int, *, attacked: bool) -> None:
        self._finished += 1
        self._attacked += attacked
        self._queries += queries if attacked else 0

    def seconds(self, life: Life, left: int, elapsed: float) -> float | None:
        """For `left` examples, `elapsed` seconds after the start; None while there is nothing to go by."""
        if not left:
            return 0.0
        if not life.answered or elapsed <= 0:
            return None
        live = min(life.examples, left)
        spent = max(0, life.answered - self._queries)  # by those that are still under way
        if self._attacked:
            usual = self._queries / self._attacked
            waiting = (left - live) * self._attacked / self._finished
            rest = max(usual * live - spent, spent / 2) + usual * waiting
        elif left > live:
            return None  # nothing has ended, so how long the next ones take is not known
        else:
            rest = spent / 2
        return max(rest, life.open) * elapsed / life.answered


class LiveObserver(StopsAtTheEnd, Observer):
    """Draws on standard error, so that standard output stays clean for machines."""

    def __init__(self, console: Console, *, title: str) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[broken]}"),
            _Told(self.life),
            _Told(self.left),
            console=console,
        )
        self._task = self._progress.add_task(escape(title), total=None, rate="", broken="", visible=False)
        self._successes = self._attacked = self._errors = 0
        self._estimate = TimeLeft()
        self._life: Callable[[], Life] = Life
        self._began = time.monotonic()
        self.done = self.total = 0

    def stop(self) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def note(self, message: str) -> None:
        self._console.print(f"{_MARKS['warning']} {escape(visible(message))}", highlight=False)

    def checked(self, report: Preflight) -> None:
        for check in report.checks:
            line = f"{_MARKS[check.verdict]} {escape(visible(check.name))}: {escape(visible(check.message))}"
            if check.remedy and check.verdict != "fail":
                line += f"\n  → {escape(visible(check.remedy))}"
            self._console.print(line, highlight=False)

    def started(self, total: int, done: int = 0, *, what: str = "") -> None:
        self.total, self.done = total, done
        if done:
            self._console.print(f"going on: {done} of {total} examples are already finished", highlight=False)
        self._progress.update(self._task, total=total, completed=done, visible=True)
        self._progress.start()

    def working(self, life: Callable[[], Life]) -> None:
        self._life = life
        self._began = time.monotonic()

    def life(self) -> str:
        """Moves also while no example ends: one can take minutes."""
        now = self._life()
        if not now.examples:
            return ""
        shown = f"{now.examples} under way, {now.answered + now.others:,} questions"
        if now.oldest is not None:
            shown += f" (row {now.oldest}: {now.oldest_answered:,} of {now.oldest_asked:,})"
        return shown

    def left(self) -> str:
        elapsed = time.monotonic() - self._began
        seconds = self._estimate.seconds(self._life(), self.total - self.done, elapsed)
        return "left ?" if seconds is None else f"left {about(seconds)}"

    def finished(self, result: Result) -> None:
        self.done += 1
        self._estimate.finished(result.queries, attacked=result.outcome in ATTACKED)
        self._errors += result.outcome == "error"
        self._successes += result.outcome == "success"
        self._attacked += result.outcome in ATTACKED
        broken = f"{self._successes}/{self._attacked} fooled"
        if self._errors:
            broken += f", {self._errors} err"
        speed = self._progress.tasks[0].speed
        rate = f"{speed:,.{0 if speed >= 10 else 1}f}/s" if speed else ""
        self._progress.update(self._task, completed=self.done, rate=rate, broken=broken)


def about(seconds: float) -> str:
    """As exact as a guess may look."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class QuietLiveObserver(LiveObserver):
    def checked(self, report: Preflight) -> None:
        """The models are our own: their checks would only push the bars away."""
