"""Remarks on a finished run, such as the verdict: kept in the header of its file, beside what it did."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from unfooled.errors import RunFileError
from unfooled.runs import sealed
from unfooled.runs.file import HEADER, REMARK, RunFile, _explained
from unfooled.runs.lock import Lock
from unfooled.runs.rows import dump


def write_remark(run: str | Path, name: str, value: Any) -> None:
    """Add or replace one remark. The run's identity, results and digest stay as they are."""
    with closing(RunFile.read(run)) as file:
        path = file.path
    try:
        lock = Lock.take(path)
    except RunFileError as error:
        raise RunFileError(
            f"{path}: a remark on it cannot be written: {error.cause}", error.remedy
        ) from error
    row = (REMARK + name, dump(value))
    try:
        with (
            _explained(path, reading=False),
            closing(sqlite3.connect(path, timeout=5.0)) as connection,
            connection,
        ):
            sealed.prepare(connection)
            connection.execute("BEGIN IMMEDIATE")
            sealed.put(connection, HEADER, [row])
    finally:
        lock.release()


def read_remark(run: str | Path, name: str) -> Any:
    """The remark, or None where there is none."""
    with closing(RunFile.read(run)) as file:
        return file.header.get(REMARK + name)
