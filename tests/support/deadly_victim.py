"""A victim that kills the process that asks it about one certain text, unless that is the test's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_MODULE = """
import os
from unfooled.victims.fake import FakeVictim

inner = FakeVictim()

def deadly(texts):
    if any("number {number}." in text for text in texts) and os.environ.get("PARENT") != str(os.getpid()):
        os._exit(9)
    return inner.predict(texts)

def broken(texts):
    os._exit(7)

broken.labels = deadly.labels = ("negative", "positive")

if os.environ.get("DIE_ON_IMPORT") and os.environ.get("PARENT") != str(os.getpid()):
    os._exit(5)
"""


def write_deadly(path: Path, monkeypatch: pytest.MonkeyPatch, *, number: int = 13) -> None:
    """A module with `deadly` and `broken`; the row of that number is the text."""
    path.write_text(_MODULE.format(number=number))
    monkeypatch.setenv("PARENT", str(os.getpid()))


def import_deadly(path: Path, monkeypatch: pytest.MonkeyPatch, *, number: int = 13) -> str:
    """Write it where it can be imported; the module's name."""
    write_deadly(path, monkeypatch, number=number)
    monkeypatch.syspath_prepend(str(path.parent))
    sys.modules.pop(path.stem, None)
    return path.stem
