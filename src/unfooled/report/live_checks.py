"""What is shown while models are evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.markup import escape

from unfooled.checks.illusions.attacking import EvaluationObserver
from unfooled.report.live import LiveObserver
from unfooled.runs.attack import Observer
from unfooled.victims.preflight import Preflight


class LiveWatcher(EvaluationObserver):
    """A bar per stage, on standard error; a model's checks are shown once, at its first attack."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._met: set[str] = set()

    def stage(self, title: str) -> AbstractContextManager[Observer]:
        return self._stage(title)

    @contextmanager
    def _stage(self, title: str) -> Iterator[Observer]:
        model = title.partition(":")[0]
        observer = _StageObserver(self._console, title=title)
        observer.quiet = model in self._met
        with observer:
            yield observer
        if observer.total:
            self._met.add(model)

    @contextmanager
    def wait(self, title: str) -> Iterator[None]:
        with self._console.status(escape(title)):
            yield


class _StageObserver(LiveObserver):
    quiet = False

    def checked(self, report: Preflight) -> None:
        if not self.quiet:
            super().checked(report)
