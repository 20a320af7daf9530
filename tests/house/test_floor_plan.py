"""The picture of the floor plan is that of the imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from floor_plan import PACKAGE, PICTURE, draw, read_imports, reduced, storeys


def test_the_picture_is_up_to_date() -> None:
    expected = draw(read_imports())
    assert PICTURE.read_text(encoding="utf-8") == expected, "run: python docs/floor_plan.py"
    for folder in PACKAGE.iterdir():
        if folder.is_dir() and (folder / "__init__.py").is_file():
            assert f">{folder.name}</text>" in expected


def test_what_is_imported_stands_above() -> None:
    imports = {
        "base": frozenset[str](),
        "low": frozenset({"base"}),
        "high": frozenset({"base", "low"}),
        "side": frozenset({"base"}),
    }
    assert storeys(imports) == [["base"], ["low", "side"], ["high"]]
    assert reduced(imports)["high"] == {"low"}  # that it may import base too follows
    with pytest.raises(ValueError, match="import each other: base → low → base"):
        draw(imports | {"base": frozenset({"low"})})


def test_imports_are_read_from_the_files(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from toys.late import everything",
        "words.py": "import os",
        "early/__init__.py": "",
        "early/one.py": "import toys.words",
        "late/__init__.py": "",
        "late/two.py": "def f():\n    from toys.early.one import x\n    from toys import words",
    }
    package = tmp_path / "toys"
    for name, content in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content, encoding="utf-8")
    assert read_imports(package) == {"base": set(), "early": {"base"}, "late": {"base", "early"}}
