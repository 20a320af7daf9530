"""What is left out when a folder of ours is not there, and what must stay loud."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from unfooled.plugins import Registry


def registry_of(target: str) -> Registry:
    return Registry({"thing": {"here": "unfooled.errors:UserError", "away": target}})


def everything(registry: Registry) -> list[Any]:
    return [registry.load("thing", name) for name in registry.names("thing")]


def test_a_thing_of_a_folder_that_is_not_there_is_left_out() -> None:
    assert [found.__name__ for found in everything(registry_of("unfooled.no_wing.part:X"))] == ["UserError"]


def test_what_a_module_of_ours_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is there, but something that it imports is not: no wing that was left out."""
    (tmp_path / "broken_part.py").write_text("import a_library_that_is_not_here\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_part", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_not_here"):
        everything(registry_of("broken_part:X"))


def test_a_name_that_a_module_of_ours_no_longer_has_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stale_part.py").write_text("from unfooled.errors import NoSuchName\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="NoSuchName"):
        everything(registry_of("stale_part:X"))


def test_a_plug_in_that_is_gone_is_told() -> None:
    with pytest.raises(ModuleNotFoundError, match="gone_plugin"):
        everything(registry_of("gone_plugin:X"))


def test_the_families_of_a_broken_wing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`unfooled train --list` would otherwise show fewer families and say nothing."""
    from unfooled.plugins import registry
    from unfooled.training.families import all_families

    (tmp_path / "broken_family.py").write_text("from unfooled.errors import NoSuchName\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    registry.register("family", "broken", "broken_family:FAMILY")
    try:
        with pytest.raises(ImportError, match="NoSuchName"):
            all_families()
    finally:
        registry.unregister("family", "broken")
