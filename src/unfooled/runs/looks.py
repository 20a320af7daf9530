"""Looks at a run that grows: whoever goes on until the answer pleases has looked more than once.

Every size at which the gate judged a run is kept in its file. Whether the size was fixed before anybody saw a
result is read from what the commands asked for: the first of them settles it, by `--final` or by attacking
all rows there are, and no later one asked for another size.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unfooled.errors import RunFileError
from unfooled.runs.notes import read_remark, write_remark

REMARK = "looks"


def size_was_fixed(header: Mapping[str, Any]) -> bool:
    """False also where nothing is known, as of runs that were put together from chosen examples."""
    first = header.get("environment") or {}
    asked = [command.get("asked") for command in (first, *(header.get("resumes") or ())) if command]
    settled = bool(first.get("final")) or (first.get("available") is not None and not first.get("shortened"))
    return settled and None not in asked and len(set(asked)) == 1


def record_look(run: Path, rows: int) -> list[int]:
    """Keep that the gate looks at so many rows; all sizes so far, this one included.

    A run in a place where nothing can be written is still judged: whether it grew says its header.
    """
    known = read_remark(run, REMARK)
    sizes = [size for size in known if isinstance(size, int)] if isinstance(known, list) else []
    if rows in sizes:
        return sizes
    sizes = sorted([*sizes, rows])
    try:
        write_remark(run, REMARK, sizes)
    except RunFileError:
        return sizes
    return sizes
