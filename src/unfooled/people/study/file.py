"""The study file: one SQLite file that holds what is asked, who is asked and every answer.

Texts and orders are written once. An answer is one row per annotator, item and question, written and synced
before the page says so: the same answer sent twice is still one, and a killed server loses none. Every row
carries a checksum, looked at whenever the file is opened or the row is read.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from unfooled.errors import RunFileError
from unfooled.files import whole_file
from unfooled.people.study.content import Content, Fields, Item, Place, StudySource
from unfooled.people.study.protocols import Protocol
from unfooled.runs import sealed
from unfooled.runs.rows import dump
from unfooled.runs.sealed import DamageError, SealedTable

SCHEMA_VERSION = 2
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0, 1, i, l, o: codes are also typed
CODE_LENGTH = 16  # 79 bits

STUDY = SealedTable("study", ("key TEXT", "value TEXT NOT NULL"))
ITEMS = SealedTable(
    "items",
    (
        "number INTEGER", "view TEXT NOT NULL", "kind TEXT NOT NULL", "texts TEXT NOT NULL",
        "sources TEXT NOT NULL", "example INTEGER NOT NULL", "label INTEGER NOT NULL",
        "expected TEXT NOT NULL", "facts TEXT NOT NULL",
    ),
)  # fmt: skip
ANNOTATORS = SealedTable("annotators", ("number INTEGER", "code TEXT NOT NULL UNIQUE", "begun REAL"))
PLACES = SealedTable(
    "places",
    ("annotator INTEGER", "place INTEGER", "item INTEGER NOT NULL", "flipped INTEGER NOT NULL"),
    keys=2,
)
# `first` and `last` are seconds since 1970; `changes` counts how often the value became another one.
ANSWERS = SealedTable(
    "answers",
    (
        "annotator INTEGER", "item INTEGER", "question TEXT", "value INTEGER NOT NULL",
        "first REAL NOT NULL", "last REAL NOT NULL", "changes INTEGER NOT NULL",
    ),
    keys=3,
)  # fmt: skip
_TABLES = (STUDY, ITEMS, ANNOTATORS, PLACES, ANSWERS)


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
                sealed.prepare(connection)
                if not sealed.has_table(connection, "study"):
                    raise DamageError("it holds no study")
                row = connection.execute("SELECT value FROM study WHERE key = 'version'").fetchone()
                if row is None or row[0] != dump(SCHEMA_VERSION):
                    raise RunFileError(
                        f"{path}: written by another version of unfooled", "use the version that made it"
                    )
                sealed.verify(connection, _TABLES)
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

    def __exit__(self, *raised: object) -> None:
        self.close()

    # -- what is asked: written once, so read once -------------------------------------------------

    @cached_property
    def _header(self) -> dict[str, Any]:
        return {key: json.loads(value) for key, value in self._rows(STUDY)}

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
    def sources(self) -> tuple[StudySource, ...]:
        return tuple(StudySource(**source) for source in self._header["sources"])

    @cached_property
    def primer(self) -> tuple[Fields, ...]:
        return tuple(_fields(question) for question in self._header["primer"])

    @cached_property
    def items(self) -> tuple[Item, ...]:
        rows = self._rows(ITEMS, "ORDER BY number")
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
        return {number: code for number, code, _ in self._rows(ANNOTATORS, "ORDER BY number")}

    @cached_property
    def orders(self) -> dict[int, tuple[Place, ...]]:
        found: dict[int, list[Place]] = {number: [] for number in self.codes}
        for annotator, _, item, flipped in self._rows(PLACES, "ORDER BY annotator, place"):
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
        with self._transaction():
            known = {
                question: (old, first, changes)
                for _, _, question, old, first, _, changes in self._found(
                    ANSWERS, "WHERE annotator = ? AND item = ?", (annotator, item.number)
                )
            }
            rows = []
            for name, value in values.items():
                old, first, changes = known.get(name, (value, now, 0))
                changes += old != value
                rows.append((annotator, item.number, name, value, first, now, changes))
            sealed.put(self._db, ANSWERS, rows)

    def begin(self, annotator: int) -> None:
        """The annotator has read what comes before the first item."""
        with self._transaction():
            rows = self._found(ANNOTATORS, "WHERE number = ? AND begun IS NULL", (annotator,))
            sealed.put(self._db, ANNOTATORS, [(number, code, time.time()) for number, code, _ in rows])

    def begun(self, annotator: int) -> bool:
        return any(
            begun is not None for *_, begun in self._rows(ANNOTATORS, "WHERE number = ?", (annotator,))
        )

    def answers_to(self, annotator: int, place: int) -> dict[str, int]:
        item = self.orders[annotator][place].item
        rows = self._rows(ANSWERS, "WHERE annotator = ? AND item = ?", (annotator, item))
        return {question: value for _, _, question, value, *_ in rows}

    def progress(self, annotator: int) -> Progress:
        given = Counter(row[1] for row in self._rows(ANSWERS, "WHERE annotator = ?", (annotator,)))
        places = self.orders[annotator]
        lacking = [
            at
            for at, place in enumerate(places)
            if given[place.item] < len(self.protocol.part(self.items[place.item].view).questions)
        ]
        return Progress(len(places) - len(lacking), len(places), lacking[0] if lacking else None)

    def answers(self) -> Iterator[Answer]:
        """Every answer given so far."""
        rows = self._rows(ANSWERS, "ORDER BY annotator, first, item")
        return (
            Answer(annotator, item, question, value, first, changes)
            for annotator, item, question, value, first, _, changes in rows
        )

    def _rows(
        self, table: SealedTable, clause: str = "", given: tuple[Any, ...] = ()
    ) -> list[tuple[Any, ...]]:
        with self._lock, _explained(self.path):
            return self._found(table, clause, given)

    def _found(self, table: SealedTable, clause: str, given: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return list(sealed.rows(self._db, table, clause, given))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, _explained(self.path), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield


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
        "sources": [asdict(source) for source in content.sources],
        "primer": content.primer,
        "seed": content.seed,
        "notices": list(content.notices),
        # Codes and the signing key never come from the seed: nobody can work them out again.
        "secret": secrets.token_hex(32),
    }
    sealed.prepare(connection)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        sealed.create(connection, _TABLES)
        sealed.put(connection, STUDY, [(key, dump(value)) for key, value in header.items()])
        items = [
            (
                item.number,
                item.view,
                item.kind,
                dump(item.texts),
                dump(item.sources),
                item.example,
                item.label,
                dump(dict(item.expected)),
                dump(dict(item.facts)),
            )
            for item in content.items
        ]
        sealed.put(connection, ITEMS, items)
        for number, order in enumerate(content.orders, 1):
            sealed.put(connection, ANNOTATORS, [(number, _new_code(), None)])
            places = [(number, at, place.item, int(place.flipped)) for at, place in enumerate(order)]
            sealed.put(connection, PLACES, places)


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
    except DamageError as error:
        raise RunFileError(
            f"{path}: this is not a study file, or a damaged one: {error}",
            "go back to a copy of it, or make a new study",
        ) from error
    except (json.JSONDecodeError, RecursionError, sqlite3.DatabaseError) as error:
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
