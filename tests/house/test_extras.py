"""A library that is missing is told from one that is broken."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import unfooled
from unfooled.errors import MissingExtraError, UserError
from unfooled.extras import libraries_of

PACKAGE = Path(unfooled.__file__).parent


def plant(folder: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "planted_library.py").write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


def test_a_missing_library_names_its_extra() -> None:
    with (
        pytest.raises(MissingExtraError, match=r"a plot needs .*\n.*unfooled\[plots\]"),
        libraries_of("plots", "planted_library", needed_for="a plot"),
    ):
        import planted_library.figure  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("import no_such_helper", "ModuleNotFoundError: No module named 'no_such_helper'"),
        ("from json import no_such_name", "ImportError: cannot import name 'no_such_name'"),
        ("raise OSError('libfast.so: cannot open shared object file')", "OSError: libfast.so"),
    ],
)
def test_a_broken_library_is_told_as_it_is(
    content: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, content, monkeypatch)
    with (
        pytest.raises(UserError) as caught,
        libraries_of("plots", "planted_library", needed_for="a plot"),
    ):
        import planted_library  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)
    assert told in caught.value.cause
    assert "pip install" not in caught.value.remedy


def test_every_import_of_an_extra_goes_through_it() -> None:
    by_hand = [
        f"{path.relative_to(PACKAGE)}:{handler.lineno}"
        for path in PACKAGE.rglob("*.py")
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(handler, ast.ExceptHandler)
        and "ImportError" in ast.unparse(handler.type or ast.Constant(""))
        and "MissingExtraError" in "".join(map(ast.unparse, handler.body))
        and path.name != "extras.py"
    ]
    assert by_hand == []
