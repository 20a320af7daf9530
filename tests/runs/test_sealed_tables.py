"""Rows are added to a file that somebody damaged meanwhile: a sentence, never a traceback."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from unfooled.errors import RunFileError
from unfooled.runs import sealed
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile

TABLE = sealed.SealedTable("things", ("name TEXT", "size INTEGER"))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE seals SET sum = 'not a number'", "the seal of things is damaged"),
        ("UPDATE seals SET sum = 17.5", "the seal of things is damaged"),
        ("UPDATE seals SET rows = 'many'", "the seal of things is damaged"),
        ("UPDATE things SET checksum = 'zz'", "the checksum of row a of things is damaged"),
        ("UPDATE things SET checksum = x'00ff'", "the checksum of row a of things is damaged"),
    ],
)
def test_a_stored_checksum_that_is_none_is_named(damage: str, told: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        sealed.prepare(database)
        sealed.create(database, [TABLE])
        sealed.put(database, TABLE, [("a", 1)])
        database.execute(damage)
        with pytest.raises(sealed.DamageError, match=told):
            sealed.put(database, TABLE, [("a", 2)])


def test_a_run_that_is_damaged_while_it_is_open_says_so(tmp_path: Path) -> None:
    data = [("a superb film", "positive"), ("an awful film", "negative")]
    run = attack("fake", data, "deepwordbug", out=tmp_path / "run")
    results = list(run.results())
    with RunFile.read(run.path) as file:
        header = {name: file.header[name] for name in ("identity", "environment")}
        path = file.path
    with (
        pytest.raises(RunFileError, match="the seal of results is damaged") as refused,
        RunFile.open(run.path, header) as file,
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE seals SET sum = 'x' WHERE name = 'results'")
        file.add(results[0])
    assert "--restart" in str(refused.value)
