"""Reads the pages: their fenced blocks, and what a reader would type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Made when the site is built, from what `unfooled` itself says.
GENERATED = {DOCS / "reference" / "cli.md"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
COMPLETE_FILES = sorted((DOCS / "how-to").glob("*.py"))
_FENCE = re.compile(r"^( *)```(?:\{\.)?(\w*)\}?(?: title=\"([^\"]+)\")?\n(.*?)^ *```$", re.S | re.M)


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    title: str  # the name of a file whose content the block is, or nothing
    code: str

    def __str__(self) -> str:
        first = self.code.strip().splitlines()[0] if self.code.strip() else ""
        return f"{self.page.relative_to(ROOT)}: {first[:40]}"


def blocks(page: Path, *languages: str) -> list[Block]:
    """Those of some languages, or all; `--8<-- "file"` is replaced by the file."""
    text = page.read_text(encoding="utf-8")
    found = [Block(page, kind, title, _included(code)) for _, kind, title, code in _FENCE.findall(text)]
    return [block for block in found if not languages or block.language in languages]


def typed(block: Block) -> list[str]:
    """The lines of a block that are commands, without prompt and comment."""
    lines = [line.strip().removeprefix("$ ") for line in block.code.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line and not line.startswith("#")]


def _included(code: str) -> str:
    found = re.fullmatch(r'\s*--8<-- "([^"]+)"\s*', code)
    return (DOCS / found[1]).read_text(encoding="utf-8") if found else code
