"""Train a family of classifiers on a data set; the result is a folder that `load_victim` opens."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.data.loading import Given, as_dataset
from unfooled.errors import UserError
from unfooled.resources import store
from unfooled.resources.vectors import NAMES
from unfooled.training import record, sklearn_families, torch_families
from unfooled.training.course import Course
from unfooled.training.families import VECTORS, Family, Value, find_family, settle
from unfooled.training.networks import find_body
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, prepare
from unfooled.training.watching import TrainObserver


@dataclass(frozen=True)
class Trained:
    """Where the model lies, how right it is on the validation rows, how long it took."""

    path: Path
    family: str
    metrics: Mapping[str, Any]
    seconds: float


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
) -> Trained:
    """Train `family` on `data` and write the model to the folder `out`.

    `valid` is a data set or the share of the rows, drawn per class, that decides which epoch is kept and
    when to stop; 0 trains on every row for all epochs. `options` changes what `unfooled train --list` shows.
    `resume` goes on after a stop, `restart` replaces what lies in `out`.

    Example:

        >>> trained = unfooled.train("svm", unfooled.load_data("reviews.csv"), "models/svm", valid=0)
        >>> unfooled.load_victim(str(trained.path)).name
        'svm'
    """
    watcher = observer or TrainObserver()
    chosen = find_family(family)
    settled = resolve(chosen, settle(chosen, options or {}), watcher)
    data = as_dataset(data)
    prepared = prepare(data, valid, seed=int(settled["seed"]))
    folder = Path(out).expanduser().resolve()
    plan = plan_of(chosen, settled, data.name, prepared)
    held = record.claim(folder, plan, resume=resume, restart=restart)
    return train_prepared(chosen, settled, prepared, folder, held, watcher)


def train_prepared(
    family: Family,
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
    (sklearn_families if family.kind == "sklearn" else torch_families).require(family.name)
    began = time.perf_counter()
    before = float(held["seconds"])

    def spent() -> float:
        return before + time.perf_counter() - began

    def remember() -> None:
        record.write_record(out, {**held, "seconds": round(spent(), 3)})

    if family.kind == "sklearn":
        metrics = sklearn_families.fit(family, options, data, out, observer)
    else:
        metrics = torch_families.fit(family, options, data, out, observer, remember, course)
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


def resolve(family: Family, options: dict[str, Value], observer: TrainObserver) -> dict[str, Value]:
    """Names that depend on this machine become what they mean here, so that the record is exact."""
    vectors = str(options.get("vectors", "none"))
    if vectors == "auto":
        here = store.has(VECTORS)
        if not here:
            observer.note(f"word vectors start at random; better: unfooled resources get {VECTORS}")
        options["vectors"] = VECTORS if here else "none"
    elif vectors in NAMES:
        store.path(vectors)
    elif vectors != "none" and not Path(vectors).expanduser().is_file():
        raise UserError(
            f"there are no word vectors {vectors}",
            f"give {', '.join(NAMES)}, none, or a text file of vectors",
        )
    if "body" in options:
        find_body(str(options["body"]))
    return options
