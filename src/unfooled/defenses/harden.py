"""Harden a classifier: train it on, or put a defence around it. The result is a model for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unfooled.core.victim import CLASSIFICATION, TextValue, digest, task_of
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.defenses import saving
from unfooled.defenses.methods import TRAINING, Hardening, Method, check_training, find_method
from unfooled.defenses.settings import settle
from unfooled.errors import DataError, UserError, VictimError
from unfooled.plugins import registry
from unfooled.training import record
from unfooled.training.networks import BODY
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, joined, prepare
from unfooled.training.trainer import ClassifierFamily, Trained, find_classifier, plan_of, train_prepared
from unfooled.training.watching import TrainObserver
from unfooled.victims.loading import DEFENSE_FILE, load_victim
from unfooled.victims.torch.huggingface import HuggingFaceVictim

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
    alone: bool = True  # False where the folder may not name its model: the user does, at each load


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

    Example:

        >>> data = unfooled.load_data("reviews.csv")
        >>> model = unfooled.train("lstm", data, "models/lstm", valid=0, options={"epochs": 1, "hidden": 8})
        >>> hardened = unfooled.harden("five", str(model.path), "models/five", options={"copies": 4})
        >>> unfooled.load_victim("models/five").labels
        ('negative', 'positive')
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
    given = Hardening(base, settings, training, rows, folder, watcher)
    if held["status"] != "finished" and chosen.add_rows is not None and samples is None:
        given = replace(given, rows=chosen.add_rows(given))
    assert chosen.course is not None
    trained = train_prepared(family, training, given.rows, folder, held, watcher, chosen.course(given))
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
    if task_of(victim.capabilities) != CLASSIFICATION:
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
) -> tuple[dict[str, Any], dict[str, Any], ClassifierFamily]:
    """The method's settings, those of the training, and the family that the model is of."""
    assert base.folder is not None
    earlier = record.read_record(base.folder) or {}
    known = earlier.get("family") in registry.names("family")
    family = find_classifier(earlier["family"] if known else "bert")
    before: Mapping[str, Any] = earlier.get("chosen") or earlier.get("options") or {}
    defaults = dict(TRAINING) | {name: before[name] for name in _INHERITED if name in before}
    if "body" not in family.defaults and "lr" in before:
        defaults["lr"] = before["lr"]
    both = settle({**defaults, **method.defaults}, options, method.name)
    training = {name: both[name] for name in defaults}
    check_training(training)
    if training["start"] == "body":
        if not before:
            raise UserError(
                f"{base.name} has no training.json: the body it began with is not known", "use start=model"
            )
        _require_known_body(before, base)
        training = {**before, **training}
    return {name: both[name] for name in method.defaults}, training, family


def _require_known_body(before: Mapping[str, Any], base: HuggingFaceVictim) -> None:
    """A training.json may come from anybody: what it names is read from this machine, never fetched."""
    body = str(before.get("body", BODY))
    if body != BODY and not Path(body).expanduser().is_dir():
        raise UserError(
            f"{base.name} began with {body!r}, which is no folder here, and a record fetches nothing",
            "use start=model, or train a new model with --body",
        )


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
    return Hardened(folder, method.name, victim.describe(), alone=saving.loads_alone(folder))


def _with_samples(
    method: Method, rows: Prepared, samples: Sequence[tuple[TextValue, int]], observer: TrainObserver
) -> Prepared:
    if not method.takes_samples:
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
    return replace(rows, train=joined(rows.train, samples), fingerprint=fingerprint)


def _seed_of(base: HuggingFaceVictim) -> int:
    """The seed that chose the model's own validation rows, so that none of them was trained on before."""
    assert base.folder is not None
    earlier = record.read_record(base.folder) or {}
    return int((earlier.get("options") or {}).get("seed", 0))
