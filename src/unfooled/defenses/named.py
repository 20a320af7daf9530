"""What a model folder may name: models and tables below it or beside it, and nothing that runs or calls.

A folder may come from anybody. Handed to the loader as it stands, its `"model": "payload.py:f"` would import
Python, and an address would send texts and secrets away, before any fingerprint is compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from unfooled.core.victim import option
from unfooled.errors import VictimError
from unfooled.resources.manifest import built_in
from unfooled.victims.loading import split_spec

_AROUND = (
    "five",
    "fuse",
    "normalise",
    "overconfident",
    "noisy",
    "rounded",
    "masked",
)  # kinds that wrap another model
_FILES = ("defense", "hf", "seq2seq", "sklearn")  # kinds that are read from files
_MODELS = ("switch_model",)  # settings that name a model
_TABLES = ("table", "tagger", "encoder")  # settings that name a resource, or a file of the user's own
_DEEPEST = 8  # defences around defences
_LARGEST = 10_000  # of a setting: copies and alternatives beyond it fill any memory

_open: ContextVar[tuple[Path, ...]] = ContextVar("_open", default=())


@contextmanager
def opening(folder: Path) -> Iterator[None]:
    """Folders that name each other would be opened for ever."""
    above = _open.get()
    here = folder.resolve()
    if here in above or len(above) >= _DEEPEST:
        raise VictimError(
            f"{folder}: this defence is around itself" if here in above else f"{folder}: too many defences",
            "harden the model again",
        )
    token = _open.set((*above, here))
    try:
        yield
    finally:
        _open.reset(token)


def named_model(spec: str, folder: Path) -> str:
    """The model that a folder names, for the loader; an error if a folder may not name it."""
    kinds, rest = _split(spec)
    if len(kinds) > _DEEPEST:
        raise VictimError(f"{folder}: names a model inside too many others", "harden the model again")
    if rest == "fake":
        return ":".join((*kinds, rest))
    path = _inside(rest, folder)
    there = path is not None and _is_there(path)
    if path is not None and not there and rest.startswith(".."):
        raise VictimError(
            f"{folder}: its model {_shown(spec)} is not there",
            f"put it back, or name it yourself: {option('model', 'MODEL')}",
        )
    if path is None or not there:
        raise _not_allowed("model", spec, folder, "model")
    if split_spec(str(path))[0] not in _FILES:
        raise _not_allowed("model", spec, folder, "model")
    return ":".join((*kinds, str(path)))


def check_settings(settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a folder, with what they name found and their sizes sane."""
    checked = dict(settings)
    for name, value in settings.items():
        if not isinstance(value, str | int | float | None):
            raise VictimError(
                f"{folder}: the setting {name} is neither a word nor a number", "harden the model again"
            )
        if name in _MODELS and value:
            checked[name] = _named_in(name, str(value), folder, model=True)
        elif name in _TABLES and value and value not in built_in():
            checked[name] = _named_in(name, str(value), folder, model=False)
        elif name != "seed" and not _is_sane(value):
            raise VictimError(
                f"{folder}: the setting {name}={str(value)[:20]} makes no sense", f"give {option(name, 10)}"
            )
    return checked


def _is_sane(value: str | int | float | None) -> bool:
    """Whether it is no number, or one of a sane size; a number may be written as text."""
    try:
        return value is None or abs(float(value)) <= _LARGEST
    except ValueError:
        return True  # a word
    except OverflowError:
        return False


def _named_in(name: str, value: str, folder: Path, *, model: bool) -> str:
    if not model and (path := _inside(value, folder)) is not None and _is_there(path):
        return str(path)
    try:
        if model:
            return named_model(value, folder)
    except VictimError:
        pass
    raise _not_allowed(name, value, folder, name)


def _not_allowed(what: str, value: str, folder: Path, setting: str) -> VictimError:
    return VictimError(
        f"{folder}: its {what} {_shown(value)!r} lies neither below nor beside the folder, and a folder may "
        "name no other",
        f"if you know and trust it, name it yourself: {option(setting, setting.upper())}",
    )


def relative_settings(settings: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Settings to be saved in `out`: paths in them are seen from there."""
    named = {name: relative_spec(settings[name], out) for name in (*_MODELS, *_TABLES) if settings.get(name)}
    return dict(settings) | named


def relative_spec(model: str, out: Path) -> str:
    """The same spec with its path, if it is one, seen from `out`."""
    kinds, rest = _split(model)
    path = Path(rest).expanduser()
    if rest in built_in() or not path.exists():
        return model
    return ":".join((*kinds, os.path.relpath(path.resolve(), out.resolve())))


def _split(spec: str) -> tuple[list[str], str]:
    """The kinds in front, and what the innermost one is made from."""
    kinds: list[str] = []
    kind, colon, rest = spec.partition(":")
    while colon and kind in (*_AROUND, *_FILES):
        kinds.append(kind)
        spec = rest
        kind, colon, rest = spec.partition(":")
    return kinds, spec


def _inside(place: str, folder: Path) -> Path | None:
    """The place of that relative path, if it lies in the folder or beside it; links are followed."""
    home = folder.resolve()
    try:
        if not place or Path(place).is_absolute():
            return None
        found = (home / place).resolve()
        if found == home or not found.is_relative_to(home.parent):
            return None
        return found
    except (OSError, ValueError, RuntimeError):  # names that no file system takes, links in a circle
        return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_dir() or path.is_file()
    except OSError:  # a name that is too long
        return False


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
