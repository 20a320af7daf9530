"""The list of resources: what each is, where it comes from, what it may be used for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """One table of the manifest. `package` is empty for what is built here instead of downloaded."""

    name: str
    what: str
    version: str
    licence: str
    size: int  # bytes: of the wheel, or of what a build writes
    package: str = ""
    sha256: str = ""  # of the wheel
    files: tuple[str, ...] = ()  # inside the wheel; a trailing slash takes a whole folder
    wheel: tuple[str, ...] = ()  # Python tag and platform, where the package has a wheel for each
    built_from: tuple[str, ...] = ()
    build: str = ""  # "module:function"
    settings: tuple[str, ...] = ()  # names of what the build may be told
    long: bool = False  # takes minutes: built only when asked for by name

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def command(self) -> str:
        return f"unfooled resources {'build' if self.long else 'get'} {self.name}"


def parse_manifest(text: str) -> dict[str, Resource]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: Resource(name=name, **_with_tuples(table)) for name, table in tables.items()}


def _with_tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


@cache
def built_in() -> Mapping[str, Resource]:
    """The manifest that comes with the package."""
    text = (package_files("unfooled.resources") / "manifest.toml").read_text(encoding="utf-8")
    return parse_manifest(text)
