"""The tests lie where the code lies, and no test file is a library of another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import unfooled

TESTS = Path(__file__).parents[1]
PACKAGE = Path(unfooled.__file__).parent
OTHERS = {"hostile", "house", "support"}
FILES = sorted(path for path in TESTS.rglob("*.py") if "__pycache__" not in path.parts)


def test_every_folder_of_tests_is_a_room() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in FILES} - {"conftest.py"}
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders - OTHERS == rooms


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_import_no_tests(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    taken = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    taken += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not [name for name in taken if name.startswith("test_")]
