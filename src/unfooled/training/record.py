"""`training.json`, the memory of a trained folder, and what else may lie beside it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unfooled.errors import UserError, VictimError
from unfooled.files import move_files, read_object, remove_parts, write_json

FILE = "training.json"
CHECKPOINTS = "checkpoints"
LOGS = "logs"
TRIALS = "trials"
STUDY = "sweep.sqlite"

# Everything a training writes; --restart removes these and nothing else.
_OURS = (
    FILE, CHECKPOINTS, LOGS, TRIALS, STUDY, f"{STUDY}-journal",
    "model.skops", "config.json", "model.safetensors",
    "generation_config.json", "words.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "vocab.txt", "vocab.json",
    "merges.txt", "added_tokens.json", "sentencepiece.bpe.model", "spiece.model",
)  # fmt: skip
_LIBRARIES = ("unfooled", "scikit-learn", "skops", "torch", "transformers", "optuna")


def read_record(folder: Path) -> dict[str, Any] | None:
    """What `training.json` says, or None where there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    return read_object(path, VictimError, "is no record of a training", "train again with --restart")


def write_record(folder: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    write_json(folder / FILE, content)


def claim(out: Path, plan: Mapping[str, Any], *, resume: bool, restart: bool) -> dict[str, Any]:
    """Make `out` ready for this plan; returns the record of the training to go on with, or of a new one."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", "name a folder for the model")
    if restart:
        clear(out)
    held = [name for name in _OURS if (out / name).exists()]
    earlier = read_record(out) if held else None
    new = {**plan, "status": "running", "seconds": 0.0}
    if held and not earlier:
        raise UserError(
            f"{out} already holds a model that was not trained here ({held[0]})",
            "name another folder, or pass --restart to replace it",
        )
    if earlier and not _begun(out, earlier):
        clear(out)  # it failed before there was anything to go on with
        earlier = None
    if earlier:
        _check_same(out, earlier, plan, resume=resume)
        if earlier.get("status") != "finished" or has_weights(out):
            return earlier
        clear(out)  # somebody took the weights away
    out.mkdir(parents=True, exist_ok=True)
    write_record(out, new)
    return new


def has_weights(folder: Path) -> bool:
    """Whether the model itself lies beside its record."""
    return any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.skops", "*.bin"))


def clear(folder: Path) -> None:
    for name in _OURS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    remove_parts(folder)


def move_in(source: Path, out: Path) -> None:
    """Files of a finished model into `out`; what makes the folder a model comes last."""
    move_files(source, out, last=("config.json", "model.skops"))


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _begun(out: Path, earlier: Mapping[str, Any]) -> bool:
    return earlier.get("status") == "finished" or (out / STUDY).exists() or any((out / CHECKPOINTS).glob("*"))


def _check_same(out: Path, earlier: Mapping[str, Any], plan: Mapping[str, Any], *, resume: bool) -> None:
    finished = earlier.get("status") == "finished"
    what = "a trained model" if finished else "an unfinished training"
    differing = _differences(earlier, plan)
    if differing:
        raise UserError(
            f"{out} holds {what} with other settings: {'; '.join(differing[:4])}",
            "name another folder, or pass --restart to replace it",
        )
    if not resume:
        remedy = "--restart trains it again" if finished else "--resume goes on, --restart begins again"
        raise UserError(f"{out} already holds {what}", remedy)


def _differences(earlier: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    # A plan that lived in JSON has lists where a new one has tuples.
    new = json.loads(json.dumps(plan))
    before = {key: earlier.get(key) for key in ("family", "sweep")} | (earlier.get("options") or {})
    after = {key: new.get(key) for key in ("family", "sweep")} | new["options"]
    found = [
        f"{name} {_shown(before.get(name))} instead of {_shown(after.get(name))}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    if (earlier.get("data") or {}).get("fingerprint") != new["data"]["fingerprint"]:
        found.append("other data")
    return found


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    return "none" if value is None else str(value)
