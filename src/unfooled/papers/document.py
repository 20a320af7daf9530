"""A page made of a few kinds of blocks, written as Markdown and as one self-contained HTML file."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from unfooled.papers.claims import STATUSES
from unfooled.report.diffs import visible
from unfooled.report.templates import page_file


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """`code` and **bold** are all the markup there is."""

    text: str


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]


@dataclass(frozen=True)
class Grid:
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Image:
    path: Path
    title: str


_STYLE = """figure img { max-width: 100%; background: #fff; }
th { overflow-wrap: normal; }
.holds, .does-not-hold, .not-decided, .not-measured,
.not-comparable { white-space: nowrap; font-weight: 600; }
.holds { color: var(--good); } .does-not-hold { color: var(--bad); } .not-decided { color: var(--middling); }
"""

Block = Heading | Paragraph | Bullets | Grid | Image


def to_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Images are linked, relative to `folder`."""
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {block.text}"
        case Paragraph():
            return block.text
        case Bullets():
            return "\n".join(f"- {item}" for item in block.items)
        case Grid():
            lines = [block.headings, ["---"] * len(block.headings), *block.rows]
            return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)
        case Image():
            return f"![{block.title}]({block.path.relative_to(folder).as_posix()})"


def _cell(text: str) -> str:
    return visible(text).replace("|", "\\|").replace("\n", " ")


def to_html(blocks: Sequence[Block], title: str) -> str:
    """Images are inside; the page asks nobody for anything."""
    style = page_file("page.css")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}\n{_STYLE}"
        f"</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"
        case Paragraph():
            return f"<p>{_inline(block.text)}</p>"
        case Bullets():
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in block.items) + "</ul>"
        case Grid():
            head = "".join(f'<th scope="col">{_inline(heading)}</th>' for heading in block.headings)
            rows = "".join("<tr>" + "".join(_td(cell) for cell in row) + "</tr>" for row in block.rows)
            table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            return f'<div class="scroll">{table}</div>'
        case Image():
            packed = base64.b64encode(block.path.read_bytes()).decode()
            source = f"data:image/svg+xml;base64,{packed}"
            return (
                f'<figure><img alt="{escape(block.title, quote=True)}" src="{source}">'
                f"<figcaption>{_inline(block.title)}</figcaption></figure>"
            )


def _td(cell: str) -> str:
    mark = f' class="{cell.replace(" ", "-")}"' if cell in STATUSES else ""
    return f"<td{mark}>{_inline(cell)}</td>"


def _inline(text: str) -> str:
    """Escaped first, so that nothing but our two marks becomes markup."""
    safe = escape(visible(text), quote=True)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)
