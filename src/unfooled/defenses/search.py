"""Random search over the settings of a defence, for a given time; a stopped one goes on.

Mein, Hartman, Morris 2020, section 3.2: settings of FIVE, FuSE and FACT are drawn at random until the time is
up. Here a trial's worth is the accuracy on clean rows and on pre-made adversarial texts, weighed.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.core.victim import Victim, digest
from unfooled.core.victim_oracle import decisions
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.defenses.ensemble import ask_in_batches
from unfooled.defenses.harden import harden
from unfooled.defenses.methods import TRAINING, Method, find_method
from unfooled.defenses.saving import wrap
from unfooled.defenses.settings import settle
from unfooled.errors import DataError, MissingExtraError, UserError
from unfooled.extras import libraries_of
from unfooled.files import put_in_place, write_json
from unfooled.training import study_file
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import LabelledTexts
from unfooled.victims.loading import load_victim
from unfooled.victims.thresholds import Thresholded

STUDY, RECORD, BEST, TRIALS = "search.sqlite", "search.json", "best", "trials"
PLOTS = ("history.png", "importance.png")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One draw and what came of it."""

    number: int
    settings: Mapping[str, Any]
    clean: float
    premade: float
    value: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Found:
    """The whole search; `path` holds the best as a model."""

    path: Path
    method: str
    best: Trial
    trials: Sequence[Trial]
    importance: Mapping[str, float]
    base: Mapping[str, float]  # accuracy of the model without the defence

    def to_dict(self) -> dict[str, Any]:
        facts = {"path": str(self.path), "method": self.method, "base": dict(self.base)}
        facts |= {"best": asdict(self.best), "importance": dict(self.importance)}
        return facts | {"trials": [asdict(trial) for trial in self.trials]}


def search(
    method: str,
    model: str,
    out: str | Path,
    *,
    clean: LabelledTexts,
    premade: LabelledTexts,
    trials: int = 50,
    minutes: float | None = None,
    balance: float = 0.5,
    fixed: Mapping[str, Any] | None = None,
    data: Given | None = None,
    thresholds: Mapping[str, float | str] | None = None,
    seed: int = 0,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
) -> Found:
    """Draw settings of `method` for `model`; the best one is written to `out/best`.

    `clean` and `premade` hold texts and classes in the model's order. `fixed` settings are not searched.
    `data` are the rows that `fact` trains on. `thresholds` are those of the deployed decision, by class: all
    models are judged by it, with the defence and without. Draws follow from the seed and the trial's number,
    so a search that was stopped goes on as if it had not been.
    """
    chosen = find_method(method)
    if not chosen.ranges:
        raise UserError(f"{method} has no ranges to search", "search five, fuse or fact")
    if not len(clean) or not len(premade):
        what = "clean rows" if not len(clean) else "pre-made samples"
        raise DataError(f"there are no {what} to judge by", "give more rows, or another run")
    if chosen.kind == "train" and data is None:
        raise UserError(f"{method} trains, and there is nothing to train on", "give --data")
    study_file.require_optuna("a search")
    data = None if data is None else as_dataset(data)
    given = dict(fixed or {})
    settle({**(TRAINING if chosen.kind == "train" else {}), **chosen.defaults}, given, method)
    folder = Path(out).expanduser().resolve()
    watcher = observer or TrainObserver()
    base = load_victim(model)
    plain_model = _deciding(base, thresholds)
    plan = {
        "format": 1,
        "method": method,
        "model": plain_model.fingerprint(),
        "rows": digest(*clean.texts, *clean.labels.tolist(), "|", *premade.texts, *premade.labels.tolist()),
        "data": data.fingerprint() if data is not None else "",
        "fixed": {name: str(value) for name, value in given.items()},
        "balance": balance,
        "seed": seed,
    }
    _claim(folder, plan, resume=resume, restart=restart)
    plain = {"clean": _accuracy(plain_model, clean), "premade": _accuracy(plain_model, premade)}
    searching = _DefenseSearch(
        chosen, model, base, folder, clean, premade, given, data, thresholds, balance, seed, watcher
    )
    with study_file.open_study(folder / STUDY, "search") as study:
        return searching.run(study, plan, plain, trials=trials, minutes=minutes)


@dataclass
class _DefenseSearch:
    method: Method
    model: str
    base: Victim
    out: Path
    clean: LabelledTexts
    premade: LabelledTexts
    fixed: Mapping[str, Any]
    data: Dataset | None
    thresholds: Mapping[str, float | str] | None
    balance: float
    seed: int
    observer: TrainObserver

    def run(
        self,
        study: Any,
        plan: Mapping[str, Any],
        plain: Mapping[str, float],
        *,
        trials: int,
        minutes: float | None,
    ) -> Found:
        import optuna

        for number in study_file.trials_left(study, trials, minutes, self.observer):
            study.sampler = optuna.samplers.RandomSampler(seed=self.seed * 100_003 + number)
            self._try(study, number, trials)
        found = [_trial(trial) for trial in study_file.completed(study)]
        if not found:
            raise UserError("no trial could be finished", "see the notes above; --restart begins again")
        if not (self.out / BEST).is_dir():
            raise UserError(
                f"the best model of the search is gone: {self.out / BEST}", "begin again with --restart"
            )
        best = max(found, key=lambda trial: trial.value)
        importance = _importance(study)
        self._write(plan, plain, best, found, importance)
        return Found(
            path=self.out / BEST,
            method=self.method.name,
            best=best,
            trials=found,
            importance=importance,
            base=plain,
        )

    def _try(self, study: Any, number: int, total: int) -> None:
        trial = study.ask()
        drawn = {
            name: study_file.draw(trial, name, ranges)
            for name, ranges in self.method.ranges.items()
            if name not in self.fixed
        }
        trial.set_user_attr("number", number)
        self.observer.trial(number + 1, total, drawn)
        began = time.perf_counter()
        scratch = self.out / TRIALS / f"{number + 1:04d}"
        try:
            victim = _deciding(self._hardened({**drawn, **self.fixed}, scratch), self.thresholds)
            clean, premade = _accuracy(victim, self.clean), _accuracy(victim, self.premade)
        except UserError as error:
            # Settings that do not fit together cost one trial, not the search.
            study_file.give_up(study, trial, number, error, self.observer)
            return
        value = self.balance * clean + (1 - self.balance) * premade
        better = value > max((trial.value for trial in study_file.completed(study)), default=-1.0)
        self._keep({**drawn, **self.fixed}, scratch, better=better)
        study_file.complete(
            study,
            trial,
            value,
            clean=clean,
            premade=premade,
            settings={**drawn, **self.fixed},
            seconds=round(time.perf_counter() - began, 3),
        )
        self.observer.note(f"trial {number + 1}: clean {clean:.3f}, pre-made {premade:.3f}")
        self.observer.tried(number + 1, value)

    def _hardened(self, settings: Mapping[str, Any], scratch: Path) -> Victim:
        if self.method.kind == "wrap":
            return wrap(self.method.name, self.base, settings)
        harden(
            self.model,
            self.data,
            method=self.method.name,
            out=scratch,
            options=settings,
            restart=True,
            observer=self.observer,
        )
        return load_victim(str(scratch))

    def _keep(self, settings: Mapping[str, Any], scratch: Path, *, better: bool) -> None:
        """The best so far lies in its place before the trial counts, so that a stop loses neither."""
        best = self.out / BEST
        if better and self.method.kind == "wrap":
            shutil.rmtree(best, ignore_errors=True)
            harden(self.model, method=self.method.name, out=best, options=settings)
        elif better:
            put_in_place(scratch, best)
        shutil.rmtree(scratch, ignore_errors=True)

    def _write(
        self,
        plan: Mapping[str, Any],
        plain: Mapping[str, float],
        best: Trial,
        trials: Sequence[Trial],
        importance: Mapping[str, float],
    ) -> None:
        content = {
            **plan,
            "base": dict(plain),
            "best": _plain(best),
            "importance": dict(importance),
            "ranges": {name: str(ranges) for name, ranges in self.method.ranges.items()},
            "trials": [_plain(trial) for trial in trials],
        }
        write_json(self.out / RECORD, content)
        try:
            draw_plots(self.out, trials, importance, plain, self.method)
        except MissingExtraError as error:
            self.observer.note(f"no plots: {error.cause}; {error.remedy}")


def draw_plots(
    out: Path,
    trials: Sequence[Trial],
    importance: Mapping[str, float],
    base: Mapping[str, float],
    method: Method,
) -> None:
    """`history.png`: each trial and the best so far; `importance.png`: how much each setting explains."""
    with libraries_of("plots", "matplotlib", needed_for="a plot"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    numbers = [trial.number + 1 for trial in trials]
    axes.plot(numbers, [trial.clean for trial in trials], "o", color="tab:blue", label="clean")
    axes.plot(numbers, [trial.premade for trial in trials], "s", color="tab:orange", label="pre-made")
    best = np.maximum.accumulate([trial.value for trial in trials])
    axes.step(numbers, best, where="post", color="black", label="best so far, weighed")
    for name, colour in (("clean", "tab:blue"), ("premade", "tab:orange")):
        axes.axhline(base[name], color=colour, linestyle=":", linewidth=1)
    axes.set(xlabel="trial", ylabel="accuracy", title=f"{method.name}: dotted lines are the model without it")
    axes.legend()
    figure.savefig(out / PLOTS[0], dpi=120)
    figure = Figure(figsize=(7, 1 + 0.35 * max(1, len(importance))), layout="constrained")
    axes = figure.add_subplot()
    names = sorted(importance, key=lambda name: importance[name])
    axes.barh(names, [importance[name] for name in names], color="tab:blue")
    why = "" if importance else " (too few trials to tell)"
    axes.set(xlabel="share of the differences that the setting explains" + why, title=method.name)
    figure.savefig(out / PLOTS[1], dpi=120)


def _claim(out: Path, plan: Mapping[str, Any], *, resume: bool, restart: bool) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", "name a folder for the search")
    if restart:
        for name in (STUDY, f"{STUDY}-journal", RECORD, *PLOTS):
            (out / name).unlink(missing_ok=True)
        for name in (BEST, TRIALS):
            shutil.rmtree(out / name, ignore_errors=True)
    record = out / RECORD
    if record.is_file() or (out / STUDY).is_file():
        try:
            earlier = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{record} cannot be read: {error}", "--restart begins again") from error
        if not isinstance(earlier, dict):
            raise UserError(f"{record} is no record of a search", "--restart begins again")
        differing = [name for name in plan if earlier.get(name) != plan[name]]
        if differing:
            raise UserError(
                f"{out} holds a search with other settings: {', '.join(differing)}",
                "name another folder, or pass --restart",
            )
        if not resume:
            raise UserError(f"{out} already holds a search", "--resume goes on, --restart begins again")
        return
    out.mkdir(parents=True, exist_ok=True)
    write_json(record, plan)


def _deciding(victim: Victim, thresholds: Mapping[str, float | str] | None) -> Victim:
    """The model as it is deployed. A defence is put around the model itself, the thresholds around both."""
    return Thresholded(victim, thresholds) if thresholds else victim


def _accuracy(victim: Victim, rows: LabelledTexts) -> float:
    return float(np.mean(decisions(ask_in_batches(victim, rows.texts)) == rows.labels))


def _trial(trial: Any) -> Trial:
    facts = trial.user_attrs
    return Trial(
        number=facts["number"],
        settings=facts["settings"],
        clean=facts["clean"],
        premade=facts["premade"],
        value=float(trial.value),
        seconds=facts["seconds"],
    )


def _plain(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "settings": dict(trial.settings),
        "clean": trial.clean,
        "premade": trial.premade,
        "value": trial.value,
        "seconds": trial.seconds,
    }


def _importance(study: Any) -> dict[str, float]:
    """By Optuna's estimate; empty where the trials do not differ or are too few."""
    import optuna

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # too few trials: it would call all settings equal
            found = optuna.importance.get_param_importances(study)
    except (ImportError, RuntimeError, UserWarning, ValueError):
        return {}
    return {name: round(float(value), 4) for name, value in found.items()}
