"""A run that is kept in memory: the same tables as a run file, gone with the process unless saved."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unfooled.runs.file import RunFile
from unfooled.runs.lock import Lock

NAME = Path(":memory:")


class MemoryRunFile(RunFile):
    """Closing it keeps what it holds: there is no other copy to open again."""

    @classmethod
    def create(cls, header: Mapping[str, Any]) -> MemoryRunFile:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        run = cls(NAME, connection, _NoLock())
        run._prepare(json.loads(json.dumps(dict(header))))
        return run

    def close(self) -> None:
        self.flush()

    def save(self, out: Path) -> None:
        """Write everything into the run file of a folder."""
        kept = {name: value for name, value in self.header.items() if name in ("identity", "environment")}
        with RunFile.open(out, kept) as file:
            for result in self.results():
                file.add(result)
            file.set_counters(self.counters())
            for name in self.measures():
                file.add_measures([(name, key, value) for key, value in self.measured(name).items()])


class _NoLock(Lock):
    """Nobody else can write to the memory of this process."""

    def __init__(self) -> None:
        super().__init__(NAME, -1)

    def release(self) -> None:
        pass
