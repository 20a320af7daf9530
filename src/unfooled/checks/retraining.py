"""Retraining as a cure: the filter's own model learns what got through, beside the rows it was trained on.

Half of the rows that should be blocked, drawn by the seed, are for learning: what got through of these joins
the training rows. The other half measures; no row of it, and no honest row that is measured, is trained on.
A scikit-learn pipeline is fitted anew as it is; a torch model is trained on by `harden --method augment`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.core.result import Example
from unfooled.core.victim import TextValue, digest
from unfooled.data.dataset import Dataset
from unfooled.defenses.harden import harden
from unfooled.errors import DataError, UserError, VictimError
from unfooled.extras import libraries_of
from unfooled.files import write_json
from unfooled.victims.filtering import Filter
from unfooled.victims.loading import DEFENSE_FILE, SKLEARN_FILE, load_victim
from unfooled.victims.sklearn.pipeline import SklearnVictim
from unfooled.victims.thresholds import Thresholded

MARK = "retrained.json"  # beside the model: what it was made of
_ELSEWHERE = "name another folder with --fix"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text that got through, and the unedited one."""

    before: TextValue
    after: TextValue


def learning(keys: Iterable[int], *, seed: int = 0) -> frozenset[int]:
    """The half of the rows that may be learned from: the same for the same seed, whatever the others are."""
    return frozenset(
        key for key in keys if hashlib.sha256(f"retrain:{seed}:{key}".encode()).digest()[0] % 2 == 0
    )


def require_trainable(victim: Filter) -> None:
    """Refuse, before anything is attacked, a model that nothing can be learned with."""
    model: Any = _model_of(victim)
    torch = getattr(model, "folder", None) is not None and hasattr(model, "tokenizer")
    if not (isinstance(model, SklearnVictim) or torch):
        raise VictimError(
            f"{model.name} cannot be trained here",
            "leave --train-data out: it is for scikit-learn pipelines and for torch models in a folder",
        )


def retrained(
    victim: Filter,
    train: Dataset,
    lessons: Sequence[Lesson],
    folder: Path,
    *,
    measured: Collection[TextValue],
    label_map: Mapping[str, str] | None = None,
) -> Filter:
    """The same filter around a model that was also trained on the lessons; it lies in `folder`."""
    model = _model_of(victim)
    known: set[TextValue | None] = {None, *measured}
    rows = [
        (example.text().value, example.label)
        for example in train.aligned(model.labels, label_map)
        if _value(example) not in known
    ]
    found = [
        (lesson.after, label)
        for lesson, label in zip(lessons, _labels(victim, lessons), strict=True)
        if lesson.after not in known
    ]
    if not rows or not found:
        raise DataError("nothing is left to train on", "give the rows that the model was trained on")
    mark = digest("retrained", model.fingerprint(), *(f"{label}:{text}" for text, label in [*rows, *found]))
    if _mark_of(folder) != mark:
        vacate(folder, f"move {folder.name} away, or name another --out")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / MARK, {"mark": ""})  # ours from the start, should the training be stopped
        if isinstance(model, SklearnVictim):
            _save_pipeline(model.refitted([*rows, *found]), folder / SKLEARN_FILE)
        else:
            kept = train.only([example.key for example in train if _value(example) not in known])
            harden(model, kept.aligned(model.labels, label_map), method="augment", samples=found, out=folder)
        write_json(folder / MARK, {"mark": mark, "rows": len(rows), "found": len(found)})
    return filter_in(folder, victim)


def filter_in(folder: Path, like: Filter) -> Filter:
    """The model in a folder, deciding as another filter does."""
    options = {
        name: value for name, value in dict(like.options).items() if name not in ("flag", "thresholds")
    }
    model = load_victim(folder, **options)
    inner = like.inner
    return Filter(
        Thresholded(model, inner.thresholds) if isinstance(inner, Thresholded) else model, like.flag
    )


def copy_model(folder: Path, out: Path) -> None:
    """Put a retrained model where the user wants it."""
    vacate(out, _ELSEWHERE, or_defence=True)
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / MARK, out)
    shutil.copytree(folder, out, dirs_exist_ok=True)


def vacate(folder: Path, remedy: str = _ELSEWHERE, *, or_defence: bool = False) -> None:
    """Empty a folder of ours; any other is refused."""
    require_ours(folder, remedy, or_defence=or_defence)
    entries = list(folder.iterdir()) if folder.is_dir() else []
    for entry in sorted(entries, key=lambda entry: entry.name == MARK):  # the mark goes last
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def require_ours(folder: Path, remedy: str = _ELSEWHERE, *, or_defence: bool = False) -> None:
    """Refuse a folder with more than a retrained model, or, where that may be, a defence and nothing else."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"{place} is a file", remedy)
    held = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if held and MARK not in held and not (or_defence and held == [DEFENSE_FILE]):
        raise UserError(f"{folder} is not empty ({held[0]})", remedy)


def _model_of(victim: Filter) -> Any:
    return victim.inner.inner if isinstance(victim.inner, Thresholded) else victim.inner


def _labels(victim: Filter, lessons: Sequence[Lesson]) -> list[int]:
    """Of several blocked classes, the one that the unedited text was taken for."""
    columns = [victim.inner.labels.index(label) for label in victim.flag]
    if not lessons:
        return []
    scores = victim.inner.predict([lesson.before for lesson in lessons])[:, columns]
    return [columns[place] for place in scores.argmax(axis=1).tolist()]


def _value(example: Example) -> TextValue | None:
    """None where the row cannot be read."""
    return None if example.problem else example.text().value


def _save_pipeline(pipeline: Any, path: Path) -> None:
    with libraries_of("sklearn", "skops", needed_for="saving a scikit-learn model"):
        import skops.io
    path.parent.mkdir(parents=True, exist_ok=True)
    skops.io.dump(pipeline, path)


def _mark_of(folder: Path) -> str:
    try:
        return str(json.loads((folder / MARK).read_text(encoding="utf-8"))["mark"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
