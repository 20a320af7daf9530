"""How a long piece of work tells how far it is, whoever draws it."""

from __future__ import annotations

from typing import Self


class ProgressObserver:
    """Override what you need; the base watches in silence. What an attack or a training tells besides is in
    the classes that add to this one, `runs.attack.Observer` and `training.observer.TrainObserver`."""

    def note(self, message: str) -> None:
        """Something worth a line: a fallback, say, that shapes the results."""

    def started(self, total: int, done: int = 0, *, what: str = "") -> None:
        """There are `total` pieces, of which an earlier call has finished `done`."""

    def advanced(self, count: int = 1) -> None:
        """So many more are finished."""


class StopsAtTheEnd:
    """For those that draw it, in a `with`: what is shown live stops, however the end comes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        raise NotImplementedError
