"""A result as people read it: which words went and which came, in place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from unfooled.core.result import Result
from unfooled.text import Text

Kind = Literal["same", "gone", "new"]
_SPACED = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")  # words and signs, each with the space behind it


class Piece(NamedTuple):
    kind: Kind
    text: str


def pieces(result: Result) -> Iterator[Piece]:
    """The edited field in reading order; a replaced word comes as `gone`, then `new`."""
    at = 0
    text = result.perturbed
    for edit in result.edits:
        if edit.at > at:
            yield Piece("same", text[at : edit.at])
        if edit.before:
            yield Piece("gone", edit.before)
        if edit.after:
            yield Piece("new", edit.after)
        at = max(at, edit.at + len(edit.after))
    if at < len(text):
        yield Piece("same", text[at:])


def output_pieces(result: Result) -> Iterator[Piece]:
    """What a victim that writes made of the text before and after, word by word; nothing for any other."""
    before, after = (_SPACED.findall(text) for text in (result.output, result.perturbed_output))
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Piece("same", "".join(after[b0:b1]))
            continue
        gone, new = "".join(before[a0:a1]), "".join(after[b0:b1])
        behind = new or gone  # the space behind what came, or behind what only went
        if gone:
            yield Piece("gone", gone.rstrip())
        if new:
            yield Piece("new", new.rstrip())
        if space := behind[len(behind.rstrip()) :]:
            yield Piece("same", space)


def as_written(result: Result, steps: Sequence[str]) -> str:
    """The edited field with cleaning undone around the edits: what somebody would have had to write."""
    if not result.uncleaned:
        return result.perturbed
    from unfooled.data.cleaning import clean

    cleaned = clean(result.uncleaned[result.field][1], steps)
    if cleaned.text != result.original:
        return result.perturbed  # cleaned by another version, whose changes are not known any more
    words = Text(result.original)
    starts = [*words.starts, len(result.original)]
    edits = []
    for edit in result.edits:
        start = starts[edit.position]
        if edit.kind == "insert":
            edits.append((start, start, f"{edit.after} "))
        else:
            edits.append((start, start + len(edit.before), edit.after))
    return cleaned.put_back(edits)


def visible(text: str) -> str:
    """Control, zero-width and direction-changing characters written out: no text can trick a reader."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs") else _code(char)
        for char in text
    )


def in_markdown(text: str) -> str:
    """Text that cannot leave its place in a Markdown table or start markup of its own."""
    shown = visible(text).replace("\n", " ").replace("\\", "\\\\")
    for mark in "|*_~`<>[]":
        shown = shown.replace(mark, f"\\{mark}" if mark not in "<>" else ("&lt;" if mark == "<" else "&gt;"))
    return shown


def _code(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
