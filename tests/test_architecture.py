"""Arrows between rooms point one way, and looking at the package costs nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unfooled

PACKAGE = Path(unfooled.__file__).parent
# Each room may import those before it and itself; a wing all of these, and nothing imports a wing.
ROOMS = [
    "base",
    "resources",
    "core",
    "victims",
    "data",
    "training",
    "attacks",
    "defenses",
    "runs",
    "metrics",
    "checks",
    "report",
    "cli",
]
WINGS = ["translation", "internals", "people", "papers"]
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "skops",
    "httpx",
    "pyarrow",
    "datasets",
    "scipy",
    "jinja2",
    "matplotlib",
    "starlette",
    "uvicorn",
    "nltk",
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))


def room(parts: tuple[str, ...]) -> str:
    return parts[0] if (len(parts) > 1 and parts[0] in ROOMS) or parts[0] in ROOMS else "base"


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_arrow_points_back(path: Path) -> None:
    here = path.relative_to(PACKAGE).with_suffix("").parts
    if here in (("__init__",), ("__main__",)):
        return  # the public face names everything, and imports it only when asked
    own = ROOMS.index(room(here))
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = tuple(name.split(".")[1:])
        if name.split(".")[0] == "unfooled" and parts:
            assert ROOMS.index(room(parts)) <= own, f"{'.'.join(here)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module(
        body=[node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], type_ignores=[]
    )
    assert not {name.split(".")[0] for name in imports(top)} & HEAVY


def loaded_after(code: str) -> set[str]:
    script = f"import sys; {code}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    return set(done.stdout.split())


def test_importing_loads_no_model_library() -> None:
    assert not loaded_after("import unfooled") & (HEAVY | {"numpy", "rich", "typer"})


def test_help_loads_no_model_library() -> None:
    code = "sys.argv = ['unfooled', '--help']; from unfooled.cli.app import app; app(standalone_mode=False)"
    assert not loaded_after(code) & HEAVY


def test_the_public_surface_is_what_it_says() -> None:
    assert sorted(unfooled.__all__) == unfooled.__all__ == dir(unfooled)
    for name in unfooled.__all__:
        assert getattr(unfooled, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        unfooled.nothing  # noqa: B018
