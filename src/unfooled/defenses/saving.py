"""Defended models on disk and by name: `fuse:MODEL`, `five:MODEL`, or a folder with `defense.json`.

    {"format": 1, "method": "five", "model": "../fact", "options": {…}, "fingerprint": "…", "settings": {…}}

`model` is what `load_victim` takes; a path is kept relative to the folder, so both can be moved together.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unfooled.defenses.ensemble import Ensemble, own_settings
from unfooled.defenses.five import Five, FiveVictim
from unfooled.defenses.fuse import Fuse, FuseVictim
from unfooled.defenses.settings import build, defaults_of, settle
from unfooled.errors import UserError, VictimError
from unfooled.files import write_json
from unfooled.registry import unknown_name
from unfooled.victims.base import Victim
from unfooled.victims.loading import DEFENSE_FILE, load_victim

WRAPPERS: Mapping[str, tuple[type[Any], type[Ensemble]]] = {
    "five": (Five, FiveVictim),
    "fuse": (Fuse, FuseVictim),
}


def wrap(
    method: str, model: Victim, settings: Mapping[str, Any] | None = None, *, name: str = ""
) -> Ensemble:
    """`method` around `model`; settings as text or in their own types."""
    if method not in WRAPPERS:
        raise unknown_name("defence around a model", method, sorted(WRAPPERS))
    kind, victim = WRAPPERS[method]
    settled = settle(defaults_of(kind), settings or {}, method)
    return victim(model, build(kind, settled), name=name)


def save(victim: Ensemble, out: Path, *, model: str, options: Mapping[str, Any] | None = None) -> None:
    """Write `defense.json`; `model` and `options` are what the wrapped victim was loaded by."""
    settings = dataclasses.asdict(victim.settings)  # type: ignore[call-overload]
    if settings.get("switch_model"):
        settings["switch_model"] = relative_spec(settings["switch_model"], out)
    content = {
        "format": 1,
        "method": victim.method,
        "model": relative_spec(model, out),
        "options": dict(options or {}),
        "fingerprint": victim.inner.fingerprint(),
        "settings": settings,
        "described": victim.describe(),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / DEFENSE_FILE, content)


def relative_spec(model: str, out: Path) -> str:
    """The same spec with its path, if it is one, seen from `out`."""
    kinds, colon, rest = model.rpartition(":")
    path = Path(rest).expanduser()
    if not path.exists():
        return model
    return f"{kinds}{colon}{os.path.relpath(path.resolve(), out.resolve())}"


def absolute_spec(model: str, folder: Path) -> str:
    kinds, colon, rest = model.rpartition(":")
    path = folder / rest
    return f"{kinds}{colon}{path.resolve()}" if path.exists() else model


def load_five(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Ensemble:
    """`MODEL`"""
    return _around("five", rest, labels, trust_pickle, options)


def load_fuse(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Ensemble:
    """`MODEL`"""
    return _around("fuse", rest, labels, trust_pickle, options)


def load_defense(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Ensemble:
    """`FOLDER` with a defense.json; options change what it says"""
    folder = Path(rest).expanduser()
    saved = _read(folder)
    method = str(saved["method"])
    if method not in WRAPPERS:
        raise VictimError(f"{folder}: the defence {method!r} is not known", "upgrade unfooled")
    mine, inner = own_settings(defaults_of(WRAPPERS[method][0]), options)
    model = load_victim(
        absolute_spec(str(saved["model"]), folder),
        labels=labels,
        trust_pickle=trust_pickle,
        **{**saved["options"], **inner},
    )
    if model.fingerprint() != saved["fingerprint"] and not (labels or inner):
        raise VictimError(
            f"{folder}: the model in {saved['model']} is not the one that was hardened",
            "harden it again, or put the old model back",
        )
    settings = dict(saved["settings"])
    if settings.get("switch_model"):
        settings["switch_model"] = absolute_spec(settings["switch_model"], folder)
    return _wrapped(method, model, settings | mine, name=folder.resolve().name)


def _around(
    method: str, rest: str, labels: Sequence[str] | None, trust_pickle: bool, options: Mapping[str, Any]
) -> Ensemble:
    if not rest:
        raise VictimError(
            f"{method}: says which defence, but not around which model", f"write {method}:MODEL"
        )
    names = defaults_of(WRAPPERS[method][0])
    mine, inner = own_settings(names, options)
    try:
        model = load_victim(rest, labels=labels, trust_pickle=trust_pickle, **inner)
    except VictimError as error:
        if inner and "no option" in error.cause:
            raise VictimError(
                error.cause, f"{error.remedy}; options of {method}: {', '.join(names)}"
            ) from None
        raise
    return _wrapped(method, model, mine)


def _wrapped(method: str, model: Victim, settings: Mapping[str, Any], *, name: str = "") -> Ensemble:
    try:
        return wrap(method, model, settings, name=name)
    except UserError as error:
        if isinstance(error, VictimError) or type(error) is not UserError:
            raise
        raise VictimError(error.cause, error.remedy) from None


def _read(folder: Path) -> dict[str, Any]:
    path = folder / DEFENSE_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != 1:
            raise ValueError("it is of another format")
        for name, kind in (("method", str), ("model", str), ("fingerprint", str), ("settings", dict)):
            if not isinstance(content.get(name), kind):
                raise ValueError(f"{name} is missing")
        content.setdefault("options", {})
        return content
    except (OSError, ValueError) as error:
        raise VictimError(f"{path} cannot be read: {error}", "write it again with unfooled harden") from error
