"""SQLite tables that show damage: every row carries a checksum, every table a seal over all of its rows.

The checksum tells a row that was changed; the seal tells rows that were removed or added. Both guard against
accident and carelessness, not against somebody who computes them anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# Bytes that one cell may have. The longest text to attack has 16 million characters.
_LONGEST_CELL = 1 << 28
_SUMS = 1 << 64

_SEALS = "CREATE TABLE seals (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, sum TEXT NOT NULL)"

Values = Sequence[Any]


class DamageError(Exception):
    """What is wrong with a file, in words for the user. Caught where the file's name is known."""


@dataclass(frozen=True, slots=True)
class SealedTable:
    """`columns` are SQL definitions; the first `keys` of them name a row."""

    name: str
    columns: tuple[str, ...]
    keys: int = 1

    @property
    def names(self) -> str:
        return ", ".join(column.split()[0] for column in self.columns)

    @property
    def sql(self) -> str:
        keys = ", ".join(column.split()[0] for column in self.columns[: self.keys])
        columns = ", ".join(self.columns)
        return f"CREATE TABLE {self.name} ({columns}, checksum TEXT NOT NULL, PRIMARY KEY ({keys}))"

    def checksum(self, values: Values) -> str:
        """Of what SQLite gives back for the values."""
        return hashlib.blake2b(ascii((self.name, *values)).encode(), digest_size=8).hexdigest()

    def checked(self, row: Values) -> tuple[Any, ...]:
        """The row without its checksum, which must fit."""
        *values, checksum = row
        if self.checksum(values) != checksum:
            named = " ".join(str(value)[:40] for value in values[: self.keys])
            raise DamageError(f"row {named} of {self.name} is damaged: its checksum does not fit")
        return tuple(values)


def prepare(database: sqlite3.Connection) -> None:
    """Settings for a file that anybody may have written: nothing in it runs, nothing in it is too long."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
    # What is no UTF-8 becomes halves of surrogate pairs: the checksum does not fit, and the row is named.
    database.text_factory = lambda content: content.decode(errors="surrogateescape")
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA cell_size_check=ON")


def create(database: sqlite3.Connection, tables: Iterable[SealedTable]) -> None:
    """Within a transaction of the caller."""
    database.execute(_SEALS)
    for table in tables:
        database.execute(table.sql)
        database.execute("INSERT INTO seals VALUES (?, 0, ?)", (table.name, f"{0:016x}"))


def put(database: sqlite3.Connection, table: SealedTable, rows: Sequence[Values]) -> None:
    """Add rows, or replace those of the same keys, within a transaction of the caller."""
    same_key = " AND ".join(f"{column.split()[0]} = ?" for column in table.columns[: table.keys])
    marks = ", ".join("?" * (len(table.columns) + 1))
    found = database.execute("SELECT rows, sum FROM seals WHERE name = ?", (table.name,)).fetchone()
    if found is None:
        raise DamageError(f"the seal of {table.name} is missing")
    number, total = found[0], _summed(found[1], f"the seal of {table.name}")
    if type(number) is not int:
        raise DamageError(f"the seal of {table.name} is damaged")
    for row in rows:
        values = [_as_stored(value, column) for value, column in zip(row, table.columns, strict=True)]
        checksum = table.checksum(values)
        keys = values[: table.keys]
        old = database.execute(f"SELECT checksum FROM {table.name} WHERE {same_key}", keys).fetchone()
        if old is None:
            number += 1
        else:
            named = " ".join(str(key)[:40] for key in keys)
            total -= _summed(old[0], f"the checksum of row {named} of {table.name}")
        total += int(checksum, 16)
        database.execute(f"INSERT OR REPLACE INTO {table.name} VALUES ({marks})", (*values, checksum))
    seal = (number, f"{total % _SUMS:016x}", table.name)
    database.execute("UPDATE seals SET rows = ?, sum = ? WHERE name = ?", seal)


def _summed(written: Any, what: str) -> int:
    """A stored checksum as a number; whatever else stands there was not written by us."""
    try:
        return int(written, 16)
    except (TypeError, ValueError):
        raise DamageError(f"{what} is damaged") from None


def _as_stored(value: Any, column: str) -> Any:
    """What SQLite will give back: plain numbers, a zero without a sign, and nothing for what is no number."""
    if isinstance(value, float) or (isinstance(value, int) and column.split()[1] == "REAL"):
        return None if math.isnan(value) else float(value) + 0.0  # which turns -0.0 into 0.0
    return int(value) if isinstance(value, bool) else value


def rows(
    database: sqlite3.Connection, table: SealedTable, clause: str = "", given: Values = ()
) -> Iterator[tuple[Any, ...]]:
    """Rows whose checksums fit; `clause` is what follows the table's name in the query."""
    found = database.execute(f"SELECT {table.names}, checksum FROM {table.name} {clause}", given)
    return (table.checked(row) for row in found)


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Whether there is an ordinary table of this name; a view in its place could keep us busy for ever."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE TABLE %'"
    return database.execute(query, (name,)).fetchone() is not None


def verify(database: sqlite3.Connection, tables: Sequence[SealedTable]) -> None:
    """Every page, every row and every seal, in one moment of a file that others may write."""
    _verify_schema(database, tables)
    database.execute("BEGIN")
    try:
        for (found,) in database.execute("PRAGMA quick_check(1)"):
            if found != "ok":
                raise DamageError(f"its pages are damaged: {' '.join(str(found).split())[:200]}")
        seals = {name: (number, total) for name, number, total in database.execute("SELECT * FROM seals")}
        if sorted(map(str, seals)) != sorted(table.name for table in tables):
            raise DamageError("the seals of its tables are damaged")
        for table in tables:
            number = total = 0
            for row in database.execute(f"SELECT {table.names}, checksum FROM {table.name}"):
                table.checked(row)
                number += 1
                total += int(row[-1], 16)
            if seals[table.name] != (number, f"{total % _SUMS:016x}"):
                raise DamageError(f"rows of {table.name} were removed or added: its seal does not fit")
    finally:
        with contextlib.suppress(sqlite3.Error):  # some errors end the transaction themselves
            database.execute("ROLLBACK")


def _verify_schema(database: sqlite3.Connection, tables: Sequence[SealedTable]) -> None:
    """Exactly our tables: no trigger, view or column that somebody planted."""
    query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex_%' OR sql IS NOT NULL"
    found = dict(database.execute(query).fetchall())
    wanted = {"seals": _SEALS} | {table.name: table.sql for table in tables}
    for name in sorted(map(str, {**wanted, **found})):
        if name not in found:
            raise DamageError(f"the table {name} is missing")
        if name not in wanted:
            raise DamageError(f"it holds {name[:40]!r}, which does not belong there")
        if found[name] != wanted[name]:
            raise DamageError(f"the table {name} has other columns than it should")
