"""The run file: one SQLite file that holds a run's header, its results and its counters.

Written while the run goes on, in small commits, so that a crash, a kill or a full disk loses at most the last
half second. Opening it again with the same identity continues the run. Every row carries a checksum (see
`sealed.py`), and all of them are looked at whenever the file is opened: what is damaged is never shown.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from unfooled.core.result import Outcome, Result
from unfooled.errors import RunFileError
from unfooled.runs import sealed
from unfooled.runs.lock import Lock
from unfooled.runs.rows import dump, to_result, to_row
from unfooled.runs.sealed import DamageError, SealedTable

SCHEMA_VERSION = 3
FILE = "run.sqlite"
JUDGE = "judge"  # the remark of a run whose successes were judged
REMARK = "remark:"  # how the names of remarks in the header begin (see `notes.py`)
_COMMIT_RESULTS = 200
_COMMIT_SECONDS = 0.5
_PAGE = 500
_READ_AHEAD = 512  # kilobytes that whoever reads from end to end needs; parts are read side by side

HEADER = SealedTable("header", ("key TEXT", "value TEXT NOT NULL"))
RESULTS = SealedTable(
    "results",
    (
        "key INTEGER", "outcome TEXT NOT NULL", "label INTEGER NOT NULL", "fields TEXT NOT NULL",
        "field INTEGER NOT NULL", "perturbed TEXT NOT NULL", "probs TEXT NOT NULL",
        "perturbed_probs TEXT NOT NULL", "edits TEXT NOT NULL", "words INTEGER NOT NULL",
        "queries INTEGER NOT NULL", "asked INTEGER NOT NULL", "similarity REAL", "note TEXT NOT NULL",
        "facts TEXT NOT NULL",
    ),
)  # fmt: skip
COUNTERS = SealedTable("counters", ("name TEXT", "value TEXT NOT NULL"))
MEASURES = SealedTable("measures", ("name TEXT", "key INTEGER", "value REAL"), keys=2)
_TABLES = (HEADER, RESULTS, COUNTERS, MEASURES)


class RunFile:
    """Open with `RunFile.open` to write or continue, with `RunFile.read` to look."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
        self.path = path
        self._db = connection
        self._lock = lock
        self._waiting: list[tuple[Any, ...]] = []
        self._committed_at = time.monotonic()
        self._closed = False

    # -- opening -----------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: str | Path, header: Mapping[str, Any], *, restart: bool = False) -> RunFile:
        """Start a run in the folder `path`, or continue the one that is there.

        `header["identity"]` must equal that of the run to continue; the rest of the header is kept from the
        first time, and `header["environment"]` of every continuation joins the list `resumes`. `restart`
        throws an old run away.
        """
        file = _file(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFileError(
                f"{file.parent}: cannot be created ({error.strerror})", "choose another --out"
            ) from error
        if os.path.lexists(file) and not file.is_file():
            raise RunFileError(f"{file}: is there, but is no file", "choose another --out")
        lock = Lock.take(file)
        try:
            if restart:
                _remove(file)
            with _explained(file, reading=False):
                connection = sqlite3.connect(file, isolation_level=None, timeout=5.0)
            run = cls(file, connection, lock)
            try:
                with run._explained():
                    run._prepare(json.loads(json.dumps(dict(header))))
            except BaseException:
                connection.close()
                raise
        except BaseException:
            lock.release()
            raise
        return run

    @classmethod
    def read(cls, path: str | Path) -> RunFile:
        """Look at a run, also while another process writes it. Nothing can be changed."""
        file = _file(path)
        if not file.is_file():
            raise RunFileError(f"{file}: there is no run", "give the --out folder of a run")
        uri = file.resolve().as_uri() + "?mode=ro"
        if not os.access(file.parent, os.W_OK) and not Path(f"{file}-wal").exists():
            uri += "&immutable=1"  # a finished run in a folder that allows no side files
        with _explained(file, reading=True):
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0)
        run = cls(file, connection, None)
        try:
            with run._explained():
                sealed.prepare(connection)
                connection.execute(f"PRAGMA cache_size=-{_READ_AHEAD}")
                run._check()
        except BaseException:
            connection.close()
            raise
        return run

    def _prepare(self, header: dict[str, Any]) -> None:
        sealed.prepare(self._db)
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # A process that was killed before its first commit leaves one page without a table.
        new = not tables and pages <= 1
        if not new:
            self._check()  # before anything is written
        (mode,) = self._db.execute("PRAGMA journal_mode=WAL").fetchone()
        # Without a write-ahead log only full synchronisation keeps the file whole after a power cut.
        self._db.execute(f"PRAGMA synchronous={'NORMAL' if mode == 'wal' else 'FULL'}")
        if not new:
            self._continue(header)
            return
        entries = {**header, "schema_version": SCHEMA_VERSION, "resumes": []}
        with self._transaction():
            sealed.create(self._db, _TABLES)
            sealed.put(self._db, HEADER, [(key, dump(value)) for key, value in entries.items()])

    def _check(self) -> None:
        """Refuse what is no run, of another version, or damaged."""
        self._check_version()
        sealed.verify(self._db, _TABLES)
        _check_header(self.header)

    def _check_version(self) -> None:
        reading = self._lock is None
        row = None
        if sealed.has_table(self._db, "header"):
            try:
                row = self._db.execute("SELECT value FROM header WHERE key = 'schema_version'").fetchone()
            except sqlite3.OperationalError as error:
                if not str(error).startswith("no such "):
                    raise
        if row is None:
            remedy = "give the --out folder of a run" if reading else "choose another --out"
            raise RunFileError(f"{self.path}: this is not a run file", remedy)
        version = json.loads(row[0]) if isinstance(row[0], str) else None
        if not isinstance(version, int):
            raise DamageError("the version of its format is damaged")
        if version > SCHEMA_VERSION:
            raise RunFileError(
                f"{self.path}: written by a newer version (format {version}, known up to {SCHEMA_VERSION})",
                "upgrade with pip install -U unfooled" + ("" if reading else ", or choose another --out"),
            )
        if version < SCHEMA_VERSION:
            raise RunFileError(
                f"{self.path}: written by an older version (format {version}, needed {SCHEMA_VERSION})",
                "attack again with --restart",
            )

    def _continue(self, header: dict[str, Any]) -> None:
        from unfooled.runs.identity import differences

        old = self.header
        changed = differences(old.get("identity"), header.get("identity"))
        if changed:
            raise RunFileError(
                f"{self.path}: holds a run with other settings\n    " + "\n    ".join(changed),
                "write to another --out, or throw the old run away with --restart",
            )
        first, now = old.get("environment") or {}, header.get("environment") or {}
        if first.get("final") and now.get("asked") != first.get("asked"):
            raise RunFileError(
                f"{self.path}: the size of this run was fixed at {first.get('asked')} rows (--final)",
                f"attack {first.get('asked')} rows, or write to another --out",
            )
        if (shard := first.get("shard")) != now.get("shard"):
            raise RunFileError(
                f"{self.path}: holds {_cut(shard)}, and this command attacks {_cut(now.get('shard'))}",
                "write each part to an --out of its own",
            )
        if now.get("shortened") and (other := _other_rows(old, now)):
            raise RunFileError(
                f"{self.path}: {other}", "write to another --out, or take rows of the same kind"
            )
        resumes = [*old.get("resumes", []), header.get("environment")]
        with self._transaction():
            sealed.put(self._db, HEADER, [("resumes", dump(resumes))])

    # -- writing -----------------------------------------------------------------------------------

    def add(self, result: Result) -> None:
        """Keep a result; the same key again replaces. On disk after 200 of them or half a second."""
        self.add_stored(to_row(result))

    def add_stored(self, row: tuple[Any, ...]) -> None:
        """Keep a row as `stored` of another run file gives it."""
        self._waiting.append(row)
        if len(self._waiting) >= _COMMIT_RESULTS or time.monotonic() - self._committed_at >= _COMMIT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Put everything that waits on disk. After an error it still waits, so flushing can be repeated."""
        if self._waiting:
            with self._explained(), self._transaction():
                sealed.put(self._db, RESULTS, self._waiting)
            self._waiting.clear()
        self._committed_at = time.monotonic()

    def set_counters(self, counters: Mapping[str, Any]) -> None:
        """Replace the counters of the given names."""
        rows = [(name, dump(value)) for name, value in counters.items()]
        with self._explained(), self._transaction():
            sealed.put(self._db, COUNTERS, rows)

    def add_counters(self, counted: Mapping[str, Any]) -> None:
        """Add to the counters what was counted on top."""
        self.set_counters(_sum(self.counters(), counted))

    def add_measures(self, rows: Sequence[tuple[str, int, float]]) -> None:
        """Values by the measure's name and the example's key; those of the same keys are replaced."""
        with self._explained(), self._transaction():
            sealed.put(self._db, MEASURES, rows)

    def close(self) -> None:
        if self._closed:
            return
        try:
            if self._lock is not None:
                self.flush()
        finally:
            self._closed = True
            if self._lock is not None:
                # A finished run is one plain file that can be copied and read anywhere.
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("PRAGMA busy_timeout=0")
                    self._db.execute("PRAGMA journal_mode=DELETE")
            self._db.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> RunFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RunFileError:
            # The same full disk need not be reported twice.
            if not isinstance(error, RunFileError):
                raise

    # -- reading -----------------------------------------------------------------------------------

    @property
    def header(self) -> dict[str, Any]:
        with self._explained():
            return {key: json.loads(value) for key, value in sealed.rows(self._db, HEADER)}

    def missing(self) -> int:
        """Examples that the last command wanted and that are not here: it was stopped, or is at work."""
        header = self.header
        last = [header.get("environment"), *header.get("resumes", ())][-1] or {}
        return max(0, (last.get("asked") or 0) - sum(self.count().values()))

    @property
    def labels(self) -> tuple[str, ...]:
        """The victim's labels, from the entry `labels` of the header or of its identity."""
        header = self.header
        found = header.get("labels") or (header.get("identity") or {}).get("labels") or ()
        return tuple(str(label) for label in found)

    @property
    def writes(self) -> bool:
        """Whether the victim writes text: then its identity has an empty list of labels."""
        return bool((self.header.get("identity") or {}).get("labels") == [])

    def counters(self) -> dict[str, Any]:
        with self._explained():
            rows = sealed.rows(self._db, COUNTERS, "ORDER BY name")
            return {name: json.loads(value) for name, value in rows}

    def measures(self) -> list[str]:
        """Names of what was measured after the attack (see `measures.py`)."""
        with self._explained():
            return [name for (name,) in self._db.execute("SELECT DISTINCT name FROM measures ORDER BY name")]

    def measured(self, name: str) -> dict[int, float]:
        """Value by key; empty where this was not measured."""
        with self._explained():
            rows = sealed.rows(self._db, MEASURES, "WHERE name = ?", (name,))
            return {key: value for _, key, value in rows}

    def finished(self, low: int, high: int) -> set[int]:
        """Keys from `low` to `high`, both included, that need not run again; an error may run again."""
        self.flush()
        with self._explained():
            rows = self._db.execute(
                "SELECT key FROM results WHERE key BETWEEN ? AND ? AND outcome <> 'error'", (low, high)
            )
            return {key for (key,) in rows}

    def count_finished(self, low: int, high: int) -> int:
        """How many of the keys from `low` to `high`, both included, need not run again."""
        self.flush()
        with self._explained():
            (number,) = self._db.execute(
                "SELECT count(*) FROM results WHERE key BETWEEN ? AND ? AND outcome <> 'error'", (low, high)
            ).fetchone()
        return int(number)

    def count(self) -> dict[Outcome, int]:
        """How many results of each outcome; an outcome that did not occur is left out."""
        self.flush()
        with self._explained():
            rows = self._db.execute("SELECT outcome, count(*) FROM results GROUP BY outcome ORDER BY outcome")
            return dict(rows.fetchall())

    def results(self, *, outcome: Outcome | None = None, keys: range | None = None) -> Iterator[Result]:
        """In the order of their keys, a page at a time; the run may be written meanwhile.

        `keys` restricts to those from its start up to, not including, its stop.
        """
        self.flush()
        for row in self._rows(outcome, keys):
            with self._explained():
                result = to_result(row)
            yield result

    def stored(self) -> Iterator[tuple[Any, ...]]:
        """Rows as they are kept, in the order of their keys."""
        return self._rows(None)

    def content_digest(self) -> str:
        """Equal for equal identities and results, however often the run was interrupted."""
        self.flush()
        digest = hashlib.sha256(dump(self.header.get("identity"), sort=True).encode())
        for row in self._rows(None):
            digest.update(dump(row).encode())
            digest.update(b"\n")
        return digest.hexdigest()

    def _rows(self, outcome: Outcome | None, keys: range | None = None) -> Iterator[tuple[Any, ...]]:
        low, high = (-(2**63), 2**63 - 1) if keys is None else (keys.start, keys.stop - 1)
        condition, given = ("AND outcome = ?", (outcome,)) if outcome else ("", ())
        clause = f"WHERE key BETWEEN ? AND ? {condition} ORDER BY key LIMIT {_PAGE}"
        while True:
            with self._explained():
                page = list(sealed.rows(self._db, RESULTS, clause, (low, high, *given)))
            yield from page
            if len(page) < _PAGE:
                return
            low = page[-1][0] + 1

    # -- inside ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._lock is None:
            raise RunFileError(f"{self.path}: was opened for reading only")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        return _explained(self.path, reading=self._lock is None, safe=self._safe)

    def _safe(self) -> int:
        """Results that are on disk for certain."""
        try:
            (number,) = self._db.execute("SELECT count(*) FROM results").fetchone()
        except sqlite3.Error:
            return 0
        return int(number)


@contextlib.contextmanager
def _explained(path: Path, *, reading: bool, safe: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn what SQLite says into what the user can do about it."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a closed file or a wrong thread is a bug of ours
    except (DamageError, ValueError, RecursionError) as error:  # what is no JSON is a ValueError
        raise _damaged(path, error, reading) from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR"):
            kept = f"; everything up to the last commit is safe: {safe()} results" if safe else ""
            what = "the disk is full" if name == "SQLITE_FULL" else f"the disk is full or failing ({error})"
            raise RunFileError(
                f"{path}: {what}{'' if reading else kept}", "free some space and repeat the command"
            ) from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            other = "" if reading else ", or choose another --out"
            raise RunFileError(f"{path}: another process holds it", f"wait for it to end{other}") from error
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            raise RunFileError(f"{path}: {error}", "check that the folder can be read and written") from error
        raise _damaged(path, error, reading) from error


def _damaged(path: Path, error: Exception, reading: bool) -> RunFileError:
    remedy = (
        "the file is damaged; attack again with --restart"
        if reading
        else "choose another --out, or throw the file away with --restart"
    )
    if isinstance(error, DamageError):
        return RunFileError(f"{path}: this run file is damaged: {error}", remedy)
    said = " ".join(str(error).split())[:200]
    return RunFileError(f"{path}: this is not a run file, or a damaged one ({said})", remedy)


def _other_rows(header: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why part of the rows cannot follow those that are here: the first ones and a sample do not mix.

    A run from before there were samples, without an entry, holds the first rows; one over all rows holds any.
    """
    commands = [header.get("environment") or {}, *(header.get("resumes") or ())]
    kinds = {
        command.get("rows", "first") for command in commands if command and command.get("shortened", True)
    }
    wanted = now.get("rows", "first")
    if not kinds - {wanted} or any(command and command.get("shortened") is False for command in commands):
        return ""
    told = {"first": "the first rows of the data (--first)", "stratified": "a sample of its rows (--limit)"}
    return f"holds {told.get(kinds.pop(), 'other rows')}, and this command takes {told[wanted]}"


def _cut(shard: Mapping[str, Any] | None) -> str:
    if not shard:
        return "a run that is not cut"
    return f"part {shard.get('part')} of {shard.get('parts')} of {shard.get('rows'):,} rows"


def _sum(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    total = dict(old)
    for name, value in new.items():
        if isinstance(value, Mapping):
            total[name] = _sum(total.get(name, {}), value)
        elif name == "largest":
            total[name] = max(total.get(name, 0), value)
        else:
            total[name] = total.get(name, 0) + value
    return total


def _check_header(header: Mapping[str, Any]) -> None:
    """What the code relies on where it reads a header."""
    resumes = header.get("resumes")
    if not isinstance(resumes, list):
        raise DamageError("the entry resumes of its header is no list")
    for entry in (header.get("identity"), header.get("environment"), *resumes):
        if entry is not None and not isinstance(entry, dict):
            raise DamageError("an entry of its header is no object")
    labels = header.get("labels") or (header.get("identity") or {}).get("labels") or []
    if not isinstance(labels, list):
        raise DamageError("the labels in its header are no list")


def _remove(file: Path) -> None:
    """The run file and what SQLite keeps beside it."""
    for name in (file, *(Path(f"{file}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
        try:
            name.unlink(missing_ok=True)
        except OSError as error:
            raise RunFileError(
                f"{name}: cannot be removed ({error.strerror})", "choose another --out"
            ) from error


def _file(path: str | Path) -> Path:
    path = Path(path).expanduser()
    return path if path.suffix == ".sqlite" else path / FILE
