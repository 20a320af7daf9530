"""Search for good options: Optuna draws them, every trial is an ordinary training, the best model stays."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unfooled.data.loading import Given, as_dataset
from unfooled.errors import UserError
from unfooled.files import put_in_place
from unfooled.training import record, study_file
from unfooled.training.families import Choice, Range, Value, settle
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, prepare
from unfooled.training.trainer import (
    ClassifierFamily,
    Trained,
    find_classifier,
    plan_of,
    train_prepared,
)

Sampler = Literal["tpe", "random"]
SAMPLERS = ("tpe", "random")
BEST = "best"


def sweep(
    family: str,
    data: Given,
    out: str | Path,
    *,
    trials: int,
    minutes: float | None = None,
    sampler: Sampler = "tpe",
    valid: Given | float = DEFAULT_SHARE,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
) -> Trained:
    """Train up to `trials` times within the family's ranges and keep the model that validates best.

    Given `options` are fixed and not searched. No trial begins after `minutes`. Each draw follows from the
    seed, its number and the trials before it, so a sweep that was stopped goes on as if it had not been.

    Example:

        >>> data = unfooled.load_data("reviews.csv")
        >>> fixed = {"min_count": 1}
        >>> best = unfooled.sweep("naive-bayes", data, "models/best", trials=2, valid=0.4, options=fixed)
        >>> best.path.name
        'best'
    """
    watcher = observer or TrainObserver()
    chosen = find_classifier(family)
    if sampler not in SAMPLERS:
        raise UserError(f"there is no sampler {sampler!r}", f"choose from {', '.join(SAMPLERS)}")
    fixed = {name: value for name, value in (options or {}).items() if value is not None}
    base = chosen.resolve(settle(chosen, fixed), watcher)
    ranges = {name: drawn for name, drawn in chosen.ranges.items() if name not in fixed}
    if not ranges:
        raise UserError(f"every range of {family} is fixed by an option", "leave one of them out")
    data = as_dataset(data)
    prepared = prepare(data, valid, seed=int(base["seed"]))
    if not len(prepared.valid):
        raise UserError(
            "a sweep needs validation rows to compare its trials", "give --valid a share or a file"
        )
    folder = Path(out).expanduser().resolve()
    plan = plan_of(chosen, base, data.name, prepared) | {
        "sweep": {"sampler": sampler, "ranges": {name: str(drawn) for name, drawn in ranges.items()}}
    }
    study_file.require_optuna("a sweep")
    held = record.claim(folder, plan, resume=resume, restart=restart)
    search = _Sweep(chosen, base, ranges, prepared, folder, data.name, watcher)
    with study_file.open_study(folder / record.STUDY, "sweep") as study:
        return search.run(study, held, trials=trials, minutes=minutes, sampler=sampler)


@dataclass
class _Sweep:
    family: ClassifierFamily
    base: dict[str, Value]
    ranges: Mapping[str, Range | Choice]
    data: Prepared
    out: Path
    name: str
    observer: TrainObserver

    def run(
        self, study: Any, held: dict[str, Any], *, trials: int, minutes: float | None, sampler: Sampler
    ) -> Trained:
        import optuna

        for number in study_file.trials_left(study, trials, minutes, self.observer):
            seed = int(self.base["seed"]) * 100_003 + number
            study.sampler = (
                optuna.samplers.TPESampler(seed=seed, n_startup_trials=5)
                if sampler == "tpe"
                else optuna.samplers.RandomSampler(seed=seed)
            )
            self._try(study, number, trials)
        return self._finish(study, held)

    def _try(self, study: Any, number: int, total: int) -> None:
        trial = study.ask()
        options = self.base | {
            name: study_file.draw(trial, name, drawn) for name, drawn in self.ranges.items()
        }
        self.observer.trial(number + 1, total, {name: options[name] for name in self.ranges})
        folder = self.out / record.TRIALS / f"{number + 1:04d}"
        record.clear(folder)
        held = record.claim(
            folder, plan_of(self.family, options, self.name, self.data), resume=False, restart=False
        )
        try:
            trained = train_prepared(self.family, options, self.data, folder, held, self.observer)
        except UserError as error:
            # Options that do not fit together cost one trial, not the sweep.
            study_file.give_up(study, trial, number, error, self.observer)
            return
        accuracy = float(trained.metrics["valid"]["accuracy"])
        best = self.out / record.TRIALS / BEST
        if accuracy > max((earlier.value for earlier in study_file.completed(study)), default=-1.0):
            put_in_place(folder, best)
        else:
            shutil.rmtree(folder)
        study_file.complete(
            study,
            trial,
            accuracy,
            options=dict(options),
            metrics=dict(trained.metrics),
            seconds=trained.seconds,
        )
        self.observer.tried(number + 1, accuracy)

    def _finish(self, study: Any, held: dict[str, Any]) -> Trained:
        tried = study_file.completed(study)
        if not tried:
            causes = study_file.why_broken(study)
            raise UserError(
                f"no trial of the sweep could be trained{f': {causes[-1]}' if causes else ''}",
                "add rows, or mend the option that does not fit; then begin again with --restart",
            )
        best = self.out / record.TRIALS / BEST
        found = record.read_record(best)
        if found is None or not {"options", "metrics", "seconds"} <= found.keys():
            raise UserError(
                f"the best model of the sweep is gone or damaged: {best}", "begin again with --restart"
            )
        for path in sorted(best.iterdir(), key=lambda file: file.name in ("config.json", "model.skops")):
            if path.name == record.LOGS:
                shutil.rmtree(self.out / record.LOGS, ignore_errors=True)
                shutil.copytree(path, self.out / record.LOGS)
            elif path.name != record.FILE:
                shutil.copy2(path, self.out / path.name)
        seconds = round(sum(trial.user_attrs["seconds"] for trial in tried), 3)
        rows = [
            {
                "options": trial.params,
                "valid": trial.user_attrs["metrics"]["valid"],
                "seconds": trial.user_attrs["seconds"],
            }
            for trial in tried
        ]
        facts = {
            "status": "finished",
            "chosen": found["options"],
            "metrics": found["metrics"],
            "seconds": found["seconds"],
            "sweep_seconds": seconds,
            "trials": rows,
            "machine": record.machine(),
            "versions": record.versions(),
        }
        record.write_record(self.out, held | facts)
        return Trained(self.out, self.family.name, found["metrics"], found["seconds"])
