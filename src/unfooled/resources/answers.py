"""Answers of a web service, kept on disk for good: a question is sent once per machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from unfooled.errors import ResourceError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    service TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, day TEXT NOT NULL,
    PRIMARY KEY (service, question)
)
"""
_PORTION = 500  # questions per statement; SQLite allows a limited number


class AnswerCache:
    """One SQLite file for all services. Processes may share it; the first answer to a question stays."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def get(self, service: str, questions: Sequence[str]) -> dict[str, list[str]]:
        """The answers that are here."""
        if not self.file.is_file():
            return {}
        found: dict[str, list[str]] = {}
        with self._open() as database:
            for start in range(0, len(questions), _PORTION):
                portion = questions[start : start + _PORTION]
                marks = ",".join("?" * len(portion))
                query = f"SELECT question, answer FROM answers WHERE service = ? AND question IN ({marks})"
                for question, answer in database.execute(query, (service, *portion)):
                    found[question] = json.loads(answer)
        return found

    def put(self, service: str, answers: Mapping[str, Sequence[str]]) -> None:
        if not answers:
            return
        day = datetime.now(UTC).date().isoformat()
        rows = [
            (service, question, json.dumps(list(answer), ensure_ascii=False), day)
            for question, answer in answers.items()
        ]
        with self._open() as database, database:
            database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)

    def digest(self, service: str) -> tuple[int, str]:
        """How many answers of a service are here, and a checksum that changes with any of them."""
        hasher, count = hashlib.sha256(), 0
        if self.file.is_file():
            with self._open() as database:
                query = "SELECT question, answer FROM answers WHERE service = ? ORDER BY question"
                for row in database.execute(query, (service,)):
                    hasher.update(json.dumps(row).encode())
                    count += 1
        return count, hasher.hexdigest()

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self.file, timeout=30.0)
            try:
                database.execute(_SCHEMA)
                yield database
            finally:
                database.close()
        except (OSError, sqlite3.Error, json.JSONDecodeError) as error:
            raise ResourceError(
                f"the kept answers in {self.file} cannot be read or written: {error}",
                "make room there; or, where the file is damaged, delete it: the service will be asked again",
            ) from error
