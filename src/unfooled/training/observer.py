"""What one may see of a training while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from unfooled.progress import ProgressObserver


class TrainObserver(ProgressObserver):
    """`started` tells the optimiser's steps in all, and those of an earlier run that is gone on with."""

    def step(self, done: int, loss: float | None) -> None: ...

    def evaluated(self, epoch: int, metrics: Mapping[str, float]) -> None: ...

    def working(self, what: str, done: int, total: int) -> None:
        """Something is being made that the training needs, such as texts to add; `done` of `total`."""

    def trial(self, number: int, total: int, options: Mapping[str, object]) -> None:
        """A sweep begins its next trial, counted from 1."""

    def tried(self, number: int, accuracy: float | None) -> None:
        """The trial is over; None where it failed."""
