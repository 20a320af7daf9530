"""A file of lines, one per finished row, so that work before a training is not lost when it is stopped."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_FLUSH_SECONDS = 1.0


class RowLog:
    """Lines `{"row": n, …}`. Opening it again finds what was written; a line cut short is left out."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                try:
                    content = json.loads(line)
                    self.rows[int(content["row"])] = content
                except (KeyError, TypeError, ValueError):
                    break
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
        self._file = path.open("a+b")
        self._file.truncate(whole)
        self._flushed = time.monotonic()

    def __enter__(self) -> RowLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, row: int, **content: Any) -> None:
        self.rows[row] = {"row": row, **content}
        self._file.write(json.dumps(self.rows[row], separators=(",", ":")).encode() + b"\n")
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._file.flush()
            self._flushed = time.monotonic()
