"""Harden a classifier: train it on, or put a defence around it. The result is a model for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.core.recipe import load_recipe
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.defenses import saving
from unfooled.defenses.courses import AttackInLoop, Continue, Fact, alternatives_of_rows
from unfooled.defenses.freelb import FreeLB
from unfooled.defenses.methods import TRAINING, Method, check_training, find_method
from unfooled.defenses.settings import build, settle
from unfooled.defenses.switch import Switch
from unfooled.defenses.switching import Switcher
from unfooled.errors import DataError, UserError, VictimError
from unfooled.training import record
from unfooled.training.course import Course
from unfooled.training.families import FAMILIES, Family, find_family
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, Rows, prepare
from unfooled.training.trainer import Trained, plan_of, train_prepared
from unfooled.training.watching import TrainObserver
from unfooled.victims.base import TextValue, digest
from unfooled.victims.huggingface import HuggingFaceVictim
from unfooled.victims.loading import DEFENSE_FILE, load_victim
from unfooled.victims.translator import Translator

# Taken over from the model's own training, unless said otherwise. The rate only for models without a
# pretrained body: going on with one is done at the papers' 2e-5.
_INHERITED = ("batch", "decay", "warmup", "max_length", "seed")


@dataclass(frozen=True)
class Hardened:
    """Where the hardened model lies and how it was made; `trained` is None for a defence around a model."""

    path: Path
    method: str
    settings: Mapping[str, Any]
    trained: Trained | None = None


def harden(
    method: str,
    model: str,
    out: str | Path,
    *,
    data: Given | None = None,
    valid: Given | float = DEFAULT_SHARE,
    options: Mapping[str, Any] | None = None,
    samples: Sequence[tuple[TextValue, int]] | None = None,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
) -> Hardened:
    """Apply `method` to `model` and write the outcome to the folder `out`.

    `data` are the rows to train on; `fuse` and `five` need none. `options` changes what
    `unfooled harden --list` shows. `samples` are texts and classes, in the model's order, for `augment`.
    """
    chosen = find_method(method)
    watcher = observer or TrainObserver()
    folder = Path(out).expanduser().resolve()
    if chosen.kind == "wrap":
        return _wrap(chosen, model, folder, options or {}, restart=restart)
    if data is None:
        raise UserError(f"{method} trains, and there is nothing to train on", "give --data")
    base = trainable(model, method)
    settings, training, family = settings_for(chosen, base, options or {})
    data = as_dataset(data)
    rows = prepare(_aligned(data, base), valid, seed=_seed_of(base))
    if samples is not None:
        rows = _with_samples(chosen, rows, samples, watcher)
    plan = plan_of(family, training | {"method": method, **settings}, data.name, rows)
    plan |= {"hardened": {"method": method, "model": model, "base": base.fingerprint()}}
    plan["options"]["base"] = base.fingerprint()[:16]
    if folder == base.folder:
        raise UserError(f"{out} is the model to harden", "name another folder with --out")
    held = record.claim(folder, plan, resume=resume, restart=restart)
    if held["status"] != "finished" and method == "augment" and samples is None:
        rows = _with_alternatives(rows, base, settings, training, folder, watcher)
    course = _course(chosen, base, settings, training, rows, folder, watcher)
    trained = train_prepared(family, training, rows, folder, held, watcher, course)
    return Hardened(folder, method, settings | training, trained)


def _aligned(data: Dataset, base: HuggingFaceVictim) -> Dataset:
    try:
        return data.aligned(base.labels)
    except DataError as error:
        names = ", ".join(base.labels)
        raise DataError(
            error.cause, f"use data with the model's classes, or rename those of the data to {names}"
        ) from None


def trainable(model: str, method: str) -> HuggingFaceVictim:
    """The model as a frozen victim, if it is one that can be trained on."""
    victim = load_victim(model)
    if isinstance(victim, Translator):
        raise VictimError(
            f"{model} writes text, and {method} trains models that choose a class", "give a classifier"
        )
    if not isinstance(victim, HuggingFaceVictim) or victim.folder is None:
        raise VictimError(
            f"{method} trains torch models, and {model} is none",
            "give the folder of a model made by unfooled train (lstm, word-cnn, bert, …) or save_pretrained",
        )
    return victim


def settings_for(
    method: Method, base: HuggingFaceVictim, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], Family]:
    """The method's settings, those of the training, and the family that the model is of."""
    assert base.folder is not None
    earlier = record.read_record(base.folder) or {}
    family = find_family(earlier["family"]) if earlier.get("family") in FAMILIES else FAMILIES["bert"]
    before: Mapping[str, Any] = earlier.get("chosen") or earlier.get("options") or {}
    defaults = dict(TRAINING) | {name: before[name] for name in _INHERITED if name in before}
    if family.kind != "bert" and "lr" in before:
        defaults["lr"] = before["lr"]
    both = settle({**defaults, **method.defaults}, options, method.name)
    training = {name: both[name] for name in defaults}
    check_training(training)
    if training["start"] == "body":
        if not before:
            raise UserError(
                f"{base.name} has no training.json: the body it began with is not known", "use start=model"
            )
        training = {**before, **training}
    return {name: both[name] for name in method.defaults}, training, family


def _wrap(method: Method, model: str, folder: Path, options: Mapping[str, Any], *, restart: bool) -> Hardened:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file", "name a folder for the defence")
    holds = [one.name for one in folder.iterdir()] if folder.is_dir() else []
    if holds and not (restart and set(holds) == {DEFENSE_FILE}):
        if set(holds) == {DEFENSE_FILE}:
            raise UserError(f"{folder} already holds a defence", "--restart replaces it")
        raise UserError(f"{folder} is not empty ({holds[0]})", "name another folder with --out")
    settled = settle(method.defaults, options, method.name)
    victim = saving.wrap(method.name, load_victim(model), settled)
    saving.save(victim, folder, model=model)
    return Hardened(folder, method.name, victim.describe())


def _course(
    method: Method,
    base: HuggingFaceVictim,
    settings: Mapping[str, Any],
    training: Mapping[str, Any],
    rows: Prepared,
    out: Path,
    observer: TrainObserver,
) -> Course:
    assert base.folder is not None
    scratch, start, seed = out / record.CHECKPOINTS, str(training["start"]), int(training["seed"])
    if method.name == "fact":
        if not 0 < settings["weight"] <= 100:
            raise UserError(f"weight={settings['weight']} makes no sense", "weight is above 0")
        return Fact(
            base.folder,
            Switcher(build(Switch, settings), base),
            rows.train,
            scratch=scratch,
            observer=observer,
            start=start,
            weight=settings["weight"],
            fresh=settings["fresh"],
            field=settings["field"],
            seed=seed,
        )
    if method.name == "adversarial-training":
        if not 0 < settings["share"] <= 1:
            raise UserError(f"share={settings['share']} makes no sense", "share is above 0 and at most 1")
        return AttackInLoop(
            base.folder,
            load_recipe(settings["attack"]),
            rows.train,
            labels=rows.labels,
            scratch=scratch,
            observer=observer,
            start=start,
            share=settings["share"],
            budget=settings["budget"],
            weight=settings["weight"],
            field=settings["field"],
            seed=seed,
        )
    if method.name == "freelb":
        return FreeLB(base.folder, start=start, **settings)
    return Continue(base.folder, start=start)


def _with_alternatives(
    rows: Prepared,
    base: HuggingFaceVictim,
    settings: Mapping[str, Any],
    training: Mapping[str, Any],
    out: Path,
    observer: TrainObserver,
) -> Prepared:
    """The rows and, behind them, their SWITCH alternatives."""
    made = alternatives_of_rows(
        Switcher(build(Switch, settings), base),
        rows.train.texts,
        out / record.CHECKPOINTS,
        observer,
        field=settings["field"],
        seed=int(training["seed"]),
    )
    more = [(text, int(rows.train.labels[n])) for n, texts in made.items() for text in texts]
    return replace(rows, train=_joined(rows.train, more))


def _with_samples(
    method: Method, rows: Prepared, samples: Sequence[tuple[TextValue, int]], observer: TrainObserver
) -> Prepared:
    if method.name != "augment":
        raise UserError(f"{method.name} takes no samples of a run", "use --method augment")
    if not samples:
        raise DataError("the run holds no text that fooled its model", "attack more examples")
    fields = {1 if isinstance(text, str) else len(text) for text, _ in samples}
    if fields != {rows.fields}:
        raise DataError(
            f"the samples have {', '.join(map(str, sorted(fields)))} fields, the data {rows.fields}",
            "take a run on data of the same kind",
        )
    observer.note(f"{len(samples)} samples join {len(rows.train)} training rows")
    fingerprint = digest(rows.fingerprint, *(f"{label}:{text}" for text, label in samples))
    return replace(rows, train=_joined(rows.train, samples), fingerprint=fingerprint)


def _joined(rows: Rows, more: Sequence[tuple[TextValue, int]]) -> Rows:
    labels = np.array([label for _, label in more], dtype=np.int64)
    return Rows([*rows.texts, *(text for text, _ in more)], np.concatenate([rows.labels, labels]))


def _seed_of(base: HuggingFaceVictim) -> int:
    """The seed that chose the model's own validation rows, so that none of them was trained on before."""
    assert base.folder is not None
    earlier = record.read_record(base.folder) or {}
    return int((earlier.get("options") or {}).get("seed", 0))
