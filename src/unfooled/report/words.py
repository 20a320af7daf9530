"""A result as people read it: which words went and which came, in place."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from unfooled.core.result import Result

Kind = Literal["same", "gone", "new"]


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


def visible(text: str) -> str:
    """Control, zero-width and direction-changing characters written out: no text can trick a reader."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs") else _code(char)
        for char in text
    )


def _code(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
