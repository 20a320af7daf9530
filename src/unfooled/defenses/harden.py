"""Harden a classifier: train it on, or put a defence around it. The result is a model for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unfooled.core.victim import CLASSIFICATION, Reloadable, TextValue, Victim, digest, task_of
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.defenses import saving
from unfooled.defenses.methods import TRAINING, Hardening, Method, check_training, find_method
from unfooled.defenses.settings import settle
from unfooled.device import computes
from unfooled.errors import DataError, UserError, VictimError
from unfooled.plugins import registry
from unfooled.training import record
from unfooled.training.networks import BODY
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import DEFAULT_SHARE, Prepared, joined, prepare
from unfooled.training.trainer import ClassifierFamily, Trained, find_classifier, plan_of, train_prepared
from unfooled.victims.loading import DEFENSE_FILE, GivenVictim, as_victim, load_victim
from unfooled.victims.torch.huggingface import HuggingFaceVictim

# Taken over from the model's own training, unless said otherwise. The rate only for models without a
# pretrained body: going on with one is done at the papers' 2e-5.
_INHERITED = ("batch", "decay", "warmup", "max_length", "seed")


@dataclass(frozen=True)
class Hardened:
    """The hardened model and how it was made; `trained` is None for a defence around a model."""

    path: Path | None  # None where it is held in memory
    method: str
    settings: Mapping[str, Any]
    trained: Trained | None = None
    alone: bool = True  # False where loading takes more than the folder: the model, or its options, again
    held: Victim | None = field(default=None, repr=False, compare=False)

    def victim(self) -> Victim:
        """The hardened model, ready to be attacked."""
        if self.held is not None:
            return self.held
        assert self.path is not None
        return load_victim(self.path)


@computes
def harden(
    victim: GivenVictim,
    data: Given | None = None,
    *,
    method: str,
    out: str | Path | None = None,
    valid: Given | float = DEFAULT_SHARE,
    options: Mapping[str, Any] | None = None,
    samples: Sequence[tuple[TextValue, int]] | None = None,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
    device: str | None = None,
) -> Hardened:
    """Apply `method` to `victim` and write the outcome to the folder `out`.

    `victim` and `data` are what `attack` takes. `data` are the rows to train on; `fuse` and `five` need none,
    and without `out` they are held in memory, around any victim. `options` changes what
    `unfooled harden --list` shows. `samples` are texts and classes, in the model's order, for `augment`.
    `device` is where it is trained.

    Example:

        >>> data = unfooled.load_data("reviews.csv")
        >>> model = unfooled.train("lstm", data, "models/lstm", valid=0, options={"epochs": 1, "hidden": 8})
        >>> hardened = unfooled.harden(model.path, method="five", out="models/five", options={"copies": 4})
        >>> unfooled.load_victim("models/five").labels
        ('negative', 'positive')
        >>> lstm = unfooled.load_victim(model.path)
        >>> unfooled.harden(lstm, method="five").victim().predict(["a superb film"]).shape
        (1, 2)
    """
    chosen = find_method(method)
    watcher = observer or TrainObserver()
    folder = None if out is None else Path(out).expanduser().resolve()
    if chosen.kind == "wrap":
        return _wrap(chosen, victim, folder, options or {}, restart=restart)
    if data is None:
        raise UserError(f"{method} trains, and there is nothing to train on", "give --data")
    if folder is None:
        raise UserError(f"{method} trains, and the new model needs a folder", "name one with --out")
    base = trainable(as_victim(victim), method)
    settings, training, family = settings_for(chosen, base, options or {})
    data = as_dataset(data, labels=base.labels)
    rows = prepare(_aligned(data, base), valid, seed=_seed_of(base))
    if samples is not None:
        rows = _with_samples(chosen, rows, samples, watcher)
    plan = plan_of(family, training | {"method": method, **settings}, data.name, rows)
    plan |= {"hardened": {"method": method, "model": _spec_of(victim, base), "base": base.fingerprint()}}
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


def _spec_of(given: GivenVictim, victim: Victim) -> str:
    """What loads a victim again; empty for one that was made in this process."""
    if isinstance(given, str | Path):
        return str(given)
    return getattr(victim, "spec", "") or str(getattr(victim, "folder", None) or "")


def _aligned(data: Dataset, base: HuggingFaceVictim) -> Dataset:
    try:
        return data.aligned(base.labels)
    except DataError as error:
        names = ", ".join(base.labels)
        raise DataError(
            error.cause, f"use data with the model's classes, or rename those of the data to {names}"
        ) from None


def trainable(victim: Victim, method: str) -> HuggingFaceVictim:
    """The model as a frozen victim, if it is one that can be trained on."""
    if task_of(victim.capabilities) != CLASSIFICATION:
        raise VictimError(
            f"{victim.name} writes text, and {method} trains models that choose a class", "give a classifier"
        )
    if not isinstance(victim, HuggingFaceVictim) or victim.folder is None:
        raise VictimError(
            f"{method} trains torch models, and {victim.name} is none",
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


def _wrap(
    method: Method, given: GivenVictim, folder: Path | None, options: Mapping[str, Any], *, restart: bool
) -> Hardened:
    if folder is not None:
        _require_room(folder, restart=restart)
    model = as_victim(given)
    spec = _spec_of(given, model)
    if folder is not None and not spec:
        raise UserError(
            f"{model.name} was made in this process, and a folder cannot name it",
            "leave `out` away and use what victim() gives, or load the model with load_victim",
        )
    defended = saving.wrap(method.name, model, settle(method.defaults, options, method.name))
    if folder is None:
        return Hardened(None, method.name, defended.describe(), alone=False, held=defended)
    saving.save(defended, folder, model=spec)
    alone = saving.loads_alone(folder) and (isinstance(given, str | Path) or not _has_options(model))
    return Hardened(folder, method.name, defended.describe(), alone=alone, held=None if alone else defended)


def _has_options(model: Victim) -> bool:
    """Whether it was loaded with more than its name, which a folder does not keep."""
    options = model.options if isinstance(model, Reloadable) else {}
    return any(value for name, value in options.items() if name != "name")


def _require_room(folder: Path, *, restart: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file", "name a folder for the defence")
    holds = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    if holds and not (restart and set(holds) == {DEFENSE_FILE}):
        if set(holds) == {DEFENSE_FILE}:
            raise UserError(f"{folder} already holds a defence", "--restart replaces it")
        raise UserError(f"{folder} is not empty ({holds[0]})", "name another folder with --out")


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
