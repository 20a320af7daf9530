"""Recipes: named, versioned, printable values that say what an attack is made of.

`textfooler` means the first version listed in its file; `textfooler@paper` names one. Every part is a frozen
dataclass, so a recipe can be written into a run file and rebuilt from it.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unfooled.core.attempt import Goal, Search
from unfooled.errors import RunFileError, UnknownNameError
from unfooled.registry import registry, unknown_name


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A goal, a search and its parts. The victim comes at run time."""

    name: str
    version: str
    summary: str
    paper: str
    goal: Goal
    search: Search
    needs: tuple[str, ...] = ("probabilities",)

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.version}"

    def oracles(self) -> list[str]:
        """Names of the oracles, other than the victim, that its parts ask."""
        found = (name for part in _parts(self) for name in getattr(part, "asks", ()))
        return list(dict.fromkeys(found))

    def to_json(self) -> dict[str, Any]:
        described = _to_json(self)
        assert isinstance(described, dict)
        return described


def load_recipe(name: str) -> Recipe:
    """`"textfooler"` or `"textfooler@paper"`."""
    base, _, version = name.partition("@")
    versions: Mapping[str, Recipe] = registry.load("attack", base)
    if not version:
        return next(iter(versions.values()))
    if version not in versions:
        raise unknown_name("attack", name, [f"{base}@{known}" for known in versions])
    return versions[version]


def all_recipes() -> Iterator[Recipe]:
    for name in registry.names("attack"):
        yield from registry.load("attack", name).values()


def recipe_from_json(described: Mapping[str, Any]) -> Recipe:
    try:
        recipe = _from_json(described)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise RunFileError(
            f"this recipe cannot be rebuilt here: {error}",
            "use the version of unfooled, and the plug-ins, that wrote the run",
        ) from error
    if not isinstance(recipe, Recipe):
        raise RunFileError("this is not a recipe", "check that the file was written by unfooled")
    return recipe


def with_setting(recipe: Recipe, path: str, value: str) -> Recipe:
    """A copy with one value changed, such as `search.candidates.most=20`. Types follow the old value.

    A tuple of parts is reached by number: `search.constraints.1.threshold=0.7`.
    """
    changed = _replaced(recipe, path.split("."), value, path)
    assert isinstance(changed, Recipe)
    return dataclasses.replace(changed, version=f"{changed.version.split('+')[0]}+changed")


def _replaced(part: Any, names: list[str], value: str, path: str) -> Any:
    if not names:
        return _parsed(part, value, path)
    name, *rest = names
    if isinstance(part, tuple) and name.isdigit() and int(name) < len(part):
        place = int(name)
        return (*part[:place], _replaced(part[place], rest, value, path), *part[place + 1 :])
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        known = [field.name for field in dataclasses.fields(part)]
        if name in known:
            return dataclasses.replace(part, **{name: _replaced(getattr(part, name), rest, value, path)})
        raise unknown_name("setting", path, known)
    raise UnknownNameError(f"{path!r} leads nowhere at {name!r}", "`unfooled show ATTACK` lists the settings")


def _parsed(old: Any, value: str, path: str) -> Any:
    try:
        if isinstance(old, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                value.lower()
            ]
        if isinstance(old, int):
            return int(value)
        if isinstance(old, float):
            return float(value)
    except (KeyError, ValueError):
        raise UnknownNameError(
            f"{path}={value}: this setting is a {type(old).__name__}", f"its value now is {old!r}"
        ) from None
    if old is None or isinstance(old, str):
        return value
    raise UnknownNameError(
        f"{path} is made of parts and cannot be set as a whole", "name one of its settings"
    )


def _parts(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from _parts(one)


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        settings = {field.name: _to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"part": f"{kind.__module__}:{kind.__qualname__}", **settings}
    if isinstance(value, tuple):
        return [_to_json(one) for one in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        module, _, name = str(value.get("part", "")).partition(":")
        # Only parts that belong to us or to a plug-in that registered an attack may be built.
        allowed = {"unfooled"} | {
            type(one).__module__.split(".")[0] for recipe in all_recipes() for one in _parts(recipe)
        }
        if module.split(".")[0] not in allowed:
            raise ValueError(f"unknown part {value.get('part')!r}")
        kind: Any = getattr(importlib.import_module(module), name)
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise ValueError(f"{value['part']} is not a part")
        return kind(**{key: _from_json(one) for key, one in value.items() if key != "part"})
    if isinstance(value, list):
        return tuple(_from_json(one) for one in value)
    return value
