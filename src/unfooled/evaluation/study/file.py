"""The study file: one SQLite file that holds what is asked, who is asked and every answer.

Texts and orders are written once. An answer is one row per annotator, item and question, written and synced
before the page says so: the same answer sent twice is still one, and a killed server loses none.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from unfooled.errors import RunFileError
from unfooled.evaluation.rows import dump
from unfooled.evaluation.study.content import Content, Fields, Item, Place, Source
from unfooled.evaluation.study.protocols import Protocol
from unfooled.files import whole_file

SCHEMA_VERSION = 1
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0, 1, i, l, o: codes are also typed
CODE_LENGTH = 16  # 79 bits

_SCHEMA = """
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (
    number INTEGER PRIMARY KEY, view TEXT NOT NULL, kind TEXT NOT NULL, texts TEXT NOT NULL,
    sources TEXT NOT NULL, example INTEGER NOT NULL, label INTEGER NOT NULL, expected TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE TABLE annotators (number INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, begun REAL);
CREATE TABLE places (
    annotator INTEGER NOT NULL REFERENCES annotators, place INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items, flipped INTEGER NOT NULL, PRIMARY KEY (annotator, place)
);
CREATE TABLE answers (
    annotator INTEGER NOT NULL REFERENCES annotators, item INTEGER NOT NULL REFERENCES items,
    question TEXT NOT NULL, value INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL,
    changes INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (annotator, item, question)
);
"""
_SAVE = """
INSERT INTO answers (annotator, item, question, value, first, last) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (annotator, item, question) DO UPDATE
SET changes = changes + (value <> excluded.value), value = excluded.value, last = excluded.last
"""


class Answer(NamedTuple):
    annotator: int
    item: int
    question: str
    value: int
    first: float  # seconds since 1970 when it was given first
    changes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an annotator is; `open` is the first place that lacks an answer, None at the end."""

    done: int
    total: int
    open: int | None


class StudyFile:
    """Open with `create` or `open`. Threads share one; each call is a transaction of its own."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection
        self._lock = threading.Lock()

    # -- opening -----------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, content: Content) -> StudyFile:
        """Write a new study with a fresh code per annotator. A file that exists is left alone."""
        if path.exists():
            raise RunFileError(
                f"{path}: there is a file already", "choose another -o; answers are never replaced"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Made under another name first: a half-written study is never taken for one.
            with (
                whole_file(path) as draft,
                _explained(path),
                contextlib.closing(sqlite3.connect(draft)) as connection,
            ):
                _write(connection, content)
                connection.execute("PRAGMA journal_mode=DELETE")
        except OSError as error:
            raise RunFileError(
                f"{path}: cannot be created ({error.strerror})", "choose another -o"
            ) from error
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, reading: bool = False) -> StudyFile:
        if not path.is_file():
            raise RunFileError(f"{path}: there is no study", "make one with `unfooled study create`")
        connection = _connect(path, reading=reading)
        study = cls(path, connection)
        try:
            with _explained(path):
                row = connection.execute("SELECT value FROM study WHERE key = 'version'").fetchone()
                if row is None or json.loads(row[0]) != SCHEMA_VERSION:
                    raise RunFileError(
                        f"{path}: written by another version of unfooled", "use the version that made it"
                    )
                if not reading:
                    connection.execute("PRAGMA journal_mode=WAL")
                    connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return study

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what is asked: written once, so read once -------------------------------------------------

    @cached_property
    def _header(self) -> dict[str, Any]:
        return {key: json.loads(value) for key, value in self._query("SELECT key, value FROM study")}

    @cached_property
    def protocol(self) -> Protocol:
        return Protocol.from_json(self._header["name"], self._header["protocol"])

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._header["labels"])

    @property
    def seed(self) -> int:
        return int(self._header["seed"])

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(self._header["notices"])

    @property
    def secret(self) -> bytes:
        """Signs what forms carry; of this study alone."""
        return bytes.fromhex(self._header["secret"])

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return tuple(Source(**one) for one in self._header["sources"])

    @cached_property
    def primer(self) -> tuple[Fields, ...]:
        return tuple(_fields(one) for one in self._header["primer"])

    @cached_property
    def items(self) -> tuple[Item, ...]:
        rows = self._query(
            "SELECT number, view, kind, texts, sources, example, label, expected, facts FROM items "
            "ORDER BY number"
        )
        return tuple(
            Item(
                number,
                view,
                kind,
                tuple(_fields(text) for text in json.loads(texts)),
                tuple(json.loads(sources)),
                example,
                label,
                json.loads(expected),
                json.loads(facts),
            )
            for number, view, kind, texts, sources, example, label, expected, facts in rows
        )

    @cached_property
    def codes(self) -> dict[int, str]:
        """Code by annotator."""
        return dict(self._query("SELECT number, code FROM annotators ORDER BY number"))

    @cached_property
    def orders(self) -> dict[int, tuple[Place, ...]]:
        found: dict[int, list[Place]] = {number: [] for number in self.codes}
        rows = self._query("SELECT annotator, item, flipped FROM places ORDER BY annotator, place")
        for annotator, item, flipped in rows:
            found[annotator].append(Place(item, bool(flipped)))
        return {number: tuple(places) for number, places in found.items()}

    def annotator(self, code: str) -> int | None:
        """Whose code this is. Every code is compared, so that the time says nothing."""
        given = tidy_code(code).encode()
        found = [number for number, own in self.codes.items() if hmac.compare_digest(own.encode(), given)]
        return found[0] if found else None

    # -- answers -----------------------------------------------------------------------------------

    def save(self, annotator: int, place: int, values: Mapping[str, int]) -> None:
        """On disk when this returns. The same again changes nothing; another value replaces the old one."""
        item = self.items[self.orders[annotator][place].item]
        questions = {question.id: question for question in self.protocol.part(item.view).questions}
        for name, value in values.items():
            if name not in questions or value not in questions[name].values(len(self.labels)):
                raise ValueError(f"{name}={value} answers nothing that was asked")
        now = time.time()
        rows = [(annotator, item.number, name, value, now, now) for name, value in values.items()]
        with self._lock, _explained(self.path), self._db:
            self._db.executemany(_SAVE, rows)

    def begin(self, annotator: int) -> None:
        """The annotator has read what comes before the first item."""
        with self._lock, _explained(self.path), self._db:
            self._db.execute(
                "UPDATE annotators SET begun = coalesce(begun, ?) WHERE number = ?", (time.time(), annotator)
            )

    def begun(self, annotator: int) -> bool:
        return self._query("SELECT begun FROM annotators WHERE number = ?", (annotator,))[0][0] is not None

    def answers_to(self, annotator: int, place: int) -> dict[str, int]:
        item = self.orders[annotator][place].item
        rows = self._query(
            "SELECT question, value FROM answers WHERE annotator = ? AND item = ?", (annotator, item)
        )
        return dict(rows)

    def progress(self, annotator: int) -> Progress:
        rows = self._query(
            "SELECT item, count(*) FROM answers WHERE annotator = ? GROUP BY item", (annotator,)
        )
        given = dict(rows)
        places = self.orders[annotator]
        lacking = [
            at
            for at, place in enumerate(places)
            if given.get(place.item, 0) < len(self.protocol.part(self.items[place.item].view).questions)
        ]
        return Progress(len(places) - len(lacking), len(places), lacking[0] if lacking else None)

    def answers(self) -> Iterator[Answer]:
        """Every answer given so far."""
        rows = self._query(
            "SELECT annotator, item, question, value, first, changes FROM answers "
            "ORDER BY annotator, first, item"
        )
        return (Answer(*row) for row in rows)

    def _query(self, sql: str, given: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock, _explained(self.path):
            return self._db.execute(sql, given).fetchall()


def tidy_code(code: str) -> str:
    """As it is kept: lower case, nothing but letters and digits."""
    return "".join(char for char in code.lower() if char in ALPHABET)[:64]


def spaced_code(code: str) -> str:
    """As it is read: groups of four."""
    return "-".join(code[at : at + 4] for at in range(0, len(code), 4))


def _connect(path: Path, *, reading: bool = False) -> sqlite3.Connection:
    with _explained(path):
        if reading:
            uri = path.resolve().as_uri() + "?mode=ro"
            return sqlite3.connect(uri, uri=True, timeout=10.0, check_same_thread=False)
        return sqlite3.connect(path, timeout=10.0, check_same_thread=False)


def _write(connection: sqlite3.Connection, content: Content) -> None:
    header = {
        "version": SCHEMA_VERSION,
        "name": content.protocol.name,
        "protocol": content.protocol.to_json(),
        "labels": list(content.labels),
        "sources": [asdict(one) for one in content.sources],
        "primer": content.primer,
        "seed": content.seed,
        "notices": list(content.notices),
        # Codes and the signing key never come from the seed: nobody can work them out again.
        "secret": secrets.token_hex(32),
    }
    with connection:
        connection.executescript(_SCHEMA)
        connection.executemany(
            "INSERT INTO study VALUES (?, ?)", [(key, dump(value)) for key, value in header.items()]
        )
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    one.number,
                    one.view,
                    one.kind,
                    dump(one.texts),
                    dump(one.sources),
                    one.example,
                    one.label,
                    dump(dict(one.expected)),
                    dump(dict(one.facts)),
                )
                for one in content.items
            ],
        )
        for number, order in enumerate(content.orders, 1):
            connection.execute("INSERT INTO annotators VALUES (?, ?, NULL)", (number, _new_code()))
            connection.executemany(
                "INSERT INTO places VALUES (?, ?, ?, ?)",
                [(number, at, place.item, int(place.flipped)) for at, place in enumerate(order)],
            )


def _new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))


def _fields(stored: Any) -> Fields:
    return tuple((str(name), str(content)) for name, content in stored)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what the user can do about it."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a closed file is a bug of ours
    except (json.JSONDecodeError, sqlite3.DatabaseError) as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR"):
            raise RunFileError(f"{path}: the disk is full or failing ({error})", "free some space") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise RunFileError(f"{path}: another process holds it", "wait for it to end") from error
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            raise RunFileError(f"{path}: {error}", "check that the folder can be read and written") from error
        raise RunFileError(
            f"{path}: this is not a study file, or a damaged one ({error})", "name a file of `study create`"
        ) from error
