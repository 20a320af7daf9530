"""What a wheel holds, as far as it shows without building one; `make dist` builds, installs and tries one."""

from __future__ import annotations

import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "unfooled"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_file_that_is_not_code_is_package_data() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["unfooled"]
    listed = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    found = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert len(found) >= 15
    assert found - listed == set()


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_what_the_development_needs_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {line.split(";")[0].split("[")[0] for line in requires("unfooled") or ()}
    names = {name.split(">")[0].split("<")[0].split("=")[0].strip().lower() for name in wanted}
    extras = {
        requirement.split(">")[0].split("<")[0].split("[")[0]
        for extra in PROJECT["project"]["optional-dependencies"].values()
        for requirement in extra
    }
    assert (names | extras) - {"unfooled"} - pinned == set()
