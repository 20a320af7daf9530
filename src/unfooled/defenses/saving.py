"""Defended models on disk and by name: `fuse:MODEL`, `five:MODEL`, `normalise:MODEL`, or a
folder with `defense.json`.

    {"format": 1, "method": "five", "model": "../fact", "fingerprint": "…", "settings": {…}}

`model` is kept relative to the folder, so both can be moved together. A folder may come from anybody, so it
may only name models and tables that lie below it or beside it (see `named.py`); any other model is named
again by the user, with the option `model`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unfooled.core.victim import Victim
from unfooled.defenses.ensemble import own_settings
from unfooled.defenses.methods import Method, all_methods, find_method
from unfooled.defenses.named import check_settings, named_model, opening, relative_settings, relative_spec
from unfooled.defenses.settings import build, settle
from unfooled.defenses.wrapper import Wrapper
from unfooled.errors import UserError, VictimError
from unfooled.files import write_json
from unfooled.model_folder import LARGEST_CONFIG
from unfooled.plugins import unknown_name
from unfooled.victims.loading import DEFENSE_FILE, load_victim


def wrap(method: str, model: Victim, settings: Mapping[str, Any] | None = None, *, name: str = "") -> Wrapper:
    """`method` around `model`; settings as text or in their own types."""
    chosen = _wrapper(method)
    assert chosen.victim is not None
    assert chosen.settings is not None
    settled = settle(chosen.defaults, settings or {}, method)
    return chosen.victim(model, build(chosen.settings, settled), name=name)


def wrappers() -> list[str]:
    """Names of the defences around a model."""
    return [name for name, method in all_methods().items() if method.kind == "wrap"]


def _wrapper(method: str) -> Method:
    if method not in wrappers():
        raise unknown_name("defence around a model", method, wrappers())
    return find_method(method)


def save(victim: Wrapper, out: Path, *, model: str) -> None:
    """Write `defense.json`; `model` is what the wrapped victim was loaded by."""
    content = {
        "format": 1,
        "method": victim.method,
        "model": relative_spec(model, out),
        "fingerprint": victim.inner.fingerprint(),
        "settings": relative_settings(dataclasses.asdict(victim.settings), out),
        "described": victim.describe(),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / DEFENSE_FILE, content)


def loads_alone(out: Path) -> bool:
    """Whether the folder names all that it needs, as far as a folder may."""
    saved = _read(out)
    try:
        named_model(saved["model"], out)
        check_settings(saved["settings"], out)
    except VictimError:
        return False
    return True


def load_five(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Wrapper:
    """`MODEL`"""
    return _around("five", rest, labels, trust_pickle, options)


def load_fuse(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Wrapper:
    """`MODEL`"""
    return _around("fuse", rest, labels, trust_pickle, options)


def load_normalise(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> Wrapper:
    """`MODEL`"""
    return _around("normalise", rest, labels, trust_pickle, options)


def load_defense(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    model: str = "",
    **options: Any,
) -> Wrapper:
    """`FOLDER` with a defense.json; options change what it says, `model=MODEL` names its model again"""
    folder = Path(rest).expanduser()
    saved = _read(folder)
    method = str(saved["method"])
    if method not in wrappers():
        raise VictimError(f"{folder}: the defence {method!r} is not known", "upgrade unfooled")
    mine, inner = own_settings(_wrapper(method).defaults, options)
    settings = check_settings({k: v for k, v in saved["settings"].items() if k not in mine}, folder)
    with opening(folder):
        named = model or named_model(saved["model"], folder)
        victim = load_victim(named, labels=labels, trust_pickle=trust_pickle, **inner)
    if victim.fingerprint() != saved["fingerprint"] and not (labels or inner):
        raise VictimError(
            f"{folder}: the model in {model or saved['model']} is not the one that was hardened",
            "harden it again, or put the old model back",
        )
    with opening(folder):  # it may load another model, for its gradients
        return _wrapped(method, victim, settings | mine, name=folder.resolve().name)


def _around(
    method: str, rest: str, labels: Sequence[str] | None, trust_pickle: bool, options: Mapping[str, Any]
) -> Wrapper:
    if not rest:
        raise VictimError(
            f"{method}: says which defence, but not around which model", f"write {method}:MODEL"
        )
    names = _wrapper(method).defaults
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


def _wrapped(method: str, model: Victim, settings: Mapping[str, Any], *, name: str = "") -> Wrapper:
    try:
        return wrap(method, model, settings, name=name)
    except UserError as error:
        if isinstance(error, VictimError) or type(error) is not UserError:
            raise
        raise VictimError(error.cause, error.remedy) from None


def _read(folder: Path) -> dict[str, Any]:
    path = folder / DEFENSE_FILE
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise ValueError("it is far too large")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != 1:
            raise ValueError("it is of another format")
        for name, kind in (("method", str), ("model", str), ("fingerprint", str), ("settings", dict)):
            if not isinstance(content.get(name), kind):
                raise ValueError(f"{name} is missing")
        return content
    except RecursionError:
        raise VictimError(f"{path} is nested too deeply", "write it again with unfooled harden") from None
    except (OSError, ValueError) as error:
        raise VictimError(f"{path} cannot be read: {error}", "write it again with unfooled harden") from error
