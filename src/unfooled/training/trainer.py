"""Train a family of classifiers on a data set; the result is a folder that `load_victim` opens."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset, load_data
from unfooled.device import computes
from unfooled.errors import UserError
from unfooled.training import record
from unfooled.training.course import Course
from unfooled.training.families import Family, NamedData, Value, find_family, settle
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, prepare


@dataclass(frozen=True)
class Trained:
    """Where the model lies, how right it is on the validation rows, how long it took."""

    path: Path
    family: str
    metrics: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class Fitting:
    """One training under way, as a family of classifiers sees it."""

    options: Mapping[str, Value]
    data: Prepared
    out: Path
    observer: TrainObserver
    remember: Callable[[], None]  # to be called when there is something to go on with after a stop
    course: Course


@dataclass(frozen=True, kw_only=True)
class ClassifierFamily(Family):
    """A family that learns classes of texts. A family says which libraries it needs and how it is fitted."""

    @abstractmethod
    def require(self) -> None:
        """Load the libraries, so that their loading is no part of the training time."""

    @abstractmethod
    def fit(self, given: Fitting) -> dict[str, Any]:
        """Fit on the training rows and write the model to `given.out`; returns the metrics."""

    def resolve(self, options: dict[str, Value], observer: TrainObserver) -> dict[str, Value]:
        """Names that depend on this machine become what they mean here, so that the record is exact."""
        return options

    def load_data(self, named: NamedData) -> Dataset:
        return load_data(
            named.source,
            text=named.text[0] if named.text and len(named.text) == 1 else named.text,
            label=named.label,
            split=named.split,
            encoding=named.encoding,
            clean=named.clean,
        )

    def train(
        self,
        data: Given,
        out: str | Path,
        *,
        valid: Given | float,
        options: Mapping[str, Any],
        resume: bool,
        restart: bool,
        observer: TrainObserver,
    ) -> Trained:
        settled = self.resolve(settle(self, options), observer)
        data = as_dataset(data)
        prepared = prepare(data, valid, seed=int(settled["seed"]))
        folder = Path(out).expanduser().resolve()
        plan = plan_of(self, settled, data.name, prepared)
        held = record.claim(folder, plan, resume=resume, restart=restart)
        return train_prepared(self, settled, prepared, folder, held, observer)


def find_classifier(name: str) -> ClassifierFamily:
    """A family that learns classes, or an error that says it does not."""
    family = find_family(name)
    if not isinstance(family, ClassifierFamily):
        raise UserError(f"{name} is no classifier", "choose another family: unfooled train --list")
    return family


@computes
def train(
    family: str,
    data: Given,
    out: str | Path,
    *,
    valid: Given | float = DEFAULT_SHARE,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
    device: str | None = None,
) -> Trained:
    """Train `family` on `data` and write the model to the folder `out`.

    `valid` is a data set or the share of the rows, drawn per class, that decides which epoch is kept and
    when to stop; 0 trains on every row for all epochs. `options` changes what `unfooled train --list` shows.
    `resume` goes on after a stop, `restart` replaces what lies in `out`. `device` is where a torch model is
    trained: auto, cpu, cuda, cuda:1, mps.

    Example:

        >>> trained = unfooled.train("svm", unfooled.load_data("reviews.csv"), "models/svm", valid=0)
        >>> unfooled.load_victim(str(trained.path)).name
        'svm'
    """
    return find_family(family).train(
        data,
        out,
        valid=valid,
        options=options or {},
        resume=resume,
        restart=restart,
        observer=observer or TrainObserver(),
    )


def train_prepared(
    family: ClassifierFamily,
    options: Mapping[str, Value],
    data: Prepared,
    out: Path,
    held: Mapping[str, Any],
    observer: TrainObserver,
    course: Course | None = None,
) -> Trained:
    """The part of `train` behind the checks. `held` is the record that `out` holds already."""
    if held["status"] == "finished":
        observer.note(f"{out} is finished: nothing is left to train")
        return Trained(out, family.name, held["metrics"], held["seconds"])
    if data.skipped:
        observer.note(f"{data.skipped} rows cannot be used and are left out")
    if not len(data.valid):
        observer.note("no validation rows: every epoch is trained and the last one is kept")
    elif unseen := [data.labels[i] for i in np.setdiff1d(data.train.labels, data.valid.labels)]:
        observer.note(f"no validation row is labelled {', '.join(unseen)}")
    family.require()
    began = time.perf_counter()
    before = float(held["seconds"])

    def spent() -> float:
        return before + time.perf_counter() - began

    def remember() -> None:
        record.write_record(out, {**held, "seconds": round(spent(), 3)})

    metrics = family.fit(Fitting(options, data, out, observer, remember, course or Course()))
    seconds = round(spent(), 3)
    facts = {"metrics": metrics, "seconds": seconds, "machine": record.machine()}
    record.write_record(out, {**held, "status": "finished", "versions": record.versions(), **facts})
    return Trained(out, family.name, metrics, seconds)


def plan_of(family: Family, options: Mapping[str, Value], name: str, data: Prepared) -> dict[str, Any]:
    """What must be the same for a training to be gone on with."""
    return {
        "format": 1,
        "family": family.name,
        "options": dict(options),
        "data": {
            "name": name,
            "fingerprint": data.fingerprint,
            "labels": list(data.labels),
            "train": len(data.train),
            "valid": len(data.valid),
            "skipped": data.skipped,
        },
    }
