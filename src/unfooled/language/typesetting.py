"""Texts as they are usually set: many data sets part every mark from its word by a space, as taggers like it,
and a language model takes that for a fault of the text."""

from __future__ import annotations

import re

_SPACES = re.compile(r"\s+")
_BEFORE_MARK, _BEHIND_BRACKET = re.compile(r"\s+([,.;:?!)\]])"), re.compile(r"([(\[])\s+")


def typeset(text: str) -> str:
    """No space before a comma or behind a bracket, one space between words."""
    return _SPACES.sub(" ", _BEHIND_BRACKET.sub(r"\1", _BEFORE_MARK.sub(r"\1", text))).strip()
