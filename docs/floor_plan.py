"""Draws the floor plan of the package from its imports, into images/floor-plan.svg.

A box is a folder of the package; what lies beside the folders is one box, `base`. A line leads from a folder
up to one that it imports. Lines that follow from others are left out: who imports B, which imports A, may
import A too. `make docs` draws it anew.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "unfooled"
PICTURE = ROOT / "docs" / "images" / "floor-plan.svg"
BASE = "base"
WIDTH, BOX, TALL, GAP = 760, 150, 34, 34
# The public face names everything and imports it only when asked; the other only starts the command.
FACES = {"__init__.py", "__main__.py"}

Imports = Mapping[str, frozenset[str]]


def read_imports(package: Path = PACKAGE) -> dict[str, frozenset[str]]:
    """Each folder, and the other folders that any of its files imports."""
    folders = {path.name for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    found: dict[str, set[str]] = {name: set() for name in (*folders, BASE)}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).parts
        if inside[0] in FACES:
            continue
        here = inside[0] if inside[0] in folders else BASE
        for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            root, *rest = name.split(".")
            if root == package.name and rest:
                found[here].add(rest[0] if rest[0] in folders else BASE)
    return {name: frozenset(others - {name}) for name, others in found.items()}


def _imported(tree: ast.AST) -> list[str]:
    """Names that are imported when the code runs; those of annotations only are none."""
    found: list[str] = []
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def reduced(imports: Imports) -> dict[str, frozenset[str]]:
    """Without the lines that follow from others."""
    below = _reach(imports)
    return {
        name: frozenset(
            folder
            for folder in others
            if not any(folder in below[other] for other in others if other != folder)
        )
        for name, others in imports.items()
    }


def storeys(imports: Imports) -> list[list[str]]:
    """Folders by height: each stands below all that it imports."""
    _reach(imports)  # a circle has no height

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in imports[name]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(depth, imports)))]
    for name in sorted(imports):
        rows[depth(name)].append(name)
    return rows


def _reach(imports: Imports) -> dict[str, set[str]]:
    """What each folder imports, directly or through others. A circle is an error."""
    found: dict[str, set[str]] = {}

    def visit(name: str, path: tuple[str, ...]) -> set[str]:
        if name in path:
            raise ValueError(f"folders import each other: {' → '.join((*path[path.index(name) :], name))}")
        if name not in found:
            found[name] = {
                reached for other in imports[name] for reached in (other, *visit(other, (*path, name)))
            }
        return found[name]

    for name in sorted(imports):
        visit(name, ())
    return found


def draw(imports: Imports) -> str:
    rows = storeys(imports)
    places: dict[str, tuple[int, int]] = {}
    for storey, names in enumerate(rows):
        for at, name in enumerate(names):
            places[name] = (WIDTH * (2 * at + 1) // (2 * len(names)), 20 + storey * (TALL + GAP))
    height = 40 + len(rows) * (TALL + GAP) - GAP
    lines = [
        f'<path d="M{places[name][0]} {places[name][1]}L{places[other][0]} {places[other][1] + TALL}"/>'
        for name, others in sorted(reduced(imports).items())
        for other in sorted(others)
    ]
    boxes = [
        f'<rect x="{x - BOX // 2}" y="{y}" width="{BOX}" height="{TALL}" rx="6"/>'
        f'<text x="{x}" y="{y + 22}">{name}</text>'
        for name, (x, y) in sorted(places.items())
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' aria-label="Folders of the package; each imports only those above it">',
            "<style>rect{fill:#eef1fb;stroke:#3f51b5}path{stroke:#8a93b8;stroke-width:1.5}"
            "text{font:15px sans-serif;text-anchor:middle;fill:#1a1a1a}</style>",
            f'<rect x="0" y="0" width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>',
            *lines,
            *boxes,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(read_imports()), encoding="utf-8")
