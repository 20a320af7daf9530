"""Answers of a web service, kept on disk for good: a question is sent once per machine.

Every answer has a checksum. One that was damaged counts as not known: the service is asked again, and without
the service the digest of what is kept is another.
"""

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
CREATE TABLE IF NOT EXISTS kept_answers (
    service TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, day TEXT NOT NULL,
    checksum TEXT NOT NULL, PRIMARY KEY (service, question)
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
        with self._open() as database:
            return _undamaged(database, service, questions)

    def put(self, service: str, answers: Mapping[str, Sequence[str]]) -> None:
        if not answers:
            return
        day = datetime.now(UTC).date().isoformat()
        with self._open() as database, database:
            database.execute("BEGIN IMMEDIATE")
            here = _undamaged(database, service, list(answers))
            for question in answers.keys() - here.keys():
                row = (service, question, json.dumps(list(answers[question]), ensure_ascii=False), day)
                database.execute(
                    "INSERT OR REPLACE INTO kept_answers VALUES (?, ?, ?, ?, ?)", (*row, _checksum(*row))
                )

    def digest(self, service: str) -> tuple[int, str]:
        """How many answers of a service are here, and a checksum that changes with any of them."""
        hasher, count = hashlib.sha256(), 0
        if self.file.is_file():
            with self._open() as database:
                query = "SELECT * FROM kept_answers WHERE service = ? ORDER BY question"
                for *row, checksum in database.execute(query, (service,)):
                    if checksum == _checksum(*row):
                        hasher.update(json.dumps((row[1], row[2])).encode())
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


def _undamaged(database: sqlite3.Connection, service: str, questions: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for start in range(0, len(questions), _PORTION):
        portion = questions[start : start + _PORTION]
        marks = ",".join("?" * len(portion))
        query = f"SELECT * FROM kept_answers WHERE service = ? AND question IN ({marks})"
        for *row, checksum in database.execute(query, (service, *portion)):
            if checksum == _checksum(*row):
                found[row[1]] = json.loads(row[2])
    return found


def _checksum(*row: object) -> str:
    return hashlib.blake2b(ascii(row).encode(), digest_size=8).hexdigest()
