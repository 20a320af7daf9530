"""A run file that was damaged: a message that names it, or exactly the results that it held."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostile import some
from reviews import sentences, write_csv
from unfooled.cli.app import main
from unfooled.runs.attack import attack
from unfooled.runs.export import export
from unfooled.runs.file import RESULTS, RunFile
from unfooled.runs.rows import to_row
from unfooled.runs.sealed import put

FILE = "run.sqlite"
PAGE = 4096

Damage = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    name: str
    do: Damage  # to the folder of a run


# -- kinds of damage ---------------------------------------------------------------------------------------


def rewritten(change: Callable[[bytes], bytes]) -> Damage:
    def do(folder: Path) -> None:
        (folder / FILE).write_bytes(change((folder / FILE).read_bytes()))

    return do


def flip(share: float, seed: int) -> Damage:
    """One byte at this share of the file becomes another one."""

    def change(content: bytes) -> bytes:
        chance = random.Random(seed)
        at = min(len(content) - 1, int(share * len(content)) + chance.randrange(64))
        return content[:at] + bytes([content[at] ^ chance.randrange(1, 256)]) + content[at + 1 :]

    return rewritten(change)


def flip_used(seed: int) -> Damage:
    """One byte of a text that the file holds: damage that SQLite itself does not see."""

    def change(content: bytes) -> bytes:
        places = [at for at, byte in enumerate(content) if chr(byte).isalpha() and byte < 128]
        at = random.Random(seed).choice(places)
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return rewritten(change)


def header_byte(at: int, value: int) -> Damage:
    return rewritten(lambda content: content[:at] + bytes([value]) + content[at + 1 :])


def cut(keep: Callable[[int], int]) -> Damage:
    return rewritten(lambda content: content[: max(0, keep(len(content)))])


def pages(change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    def do(content: bytes) -> bytes:
        return b"".join(change([content[at : at + PAGE] for at in range(0, len(content), PAGE)]))

    return rewritten(do)


def exchanged(first: int, second: int) -> Damage:
    def change(found: list[bytes]) -> list[bytes]:
        found[first], found[second] = found[second], found[first]
        return found

    return pages(change)


def beside(suffix: str, content: bytes | None) -> Damage:
    """Something in the place of a file that SQLite or we would write; None is a folder."""

    def do(folder: Path) -> None:
        place = folder / (suffix if suffix == "run.lock" else f"{FILE}{suffix}")
        if content is None:
            place.mkdir()
        else:
            place.write_bytes(content)

    return do


def sql(*statements: str) -> Damage:
    def do(folder: Path) -> None:
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    return do


def schema(statement: str) -> Damage:
    return sql("PRAGMA writable_schema=ON", statement)


def foreign(*statements: str) -> Damage:
    """Another program's database in the place of the run."""

    def do(folder: Path) -> None:
        (folder / FILE).unlink()
        sql(*statements)(folder)

    return do


def forged(column: str, value: object) -> Damage:
    """A cell that is no result, with a checksum and a seal that fit."""

    def do(folder: Path) -> None:
        with RunFile.read(folder) as run:
            row = list(to_row(next(run.results())))
        row[[name.split()[0] for name in RESULTS.columns].index(column)] = value
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as database:
            put(database, RESULTS, [row])

    return do


def elsewhere(folder: Path) -> None:
    (folder / FILE).rename(folder / "moved.sqlite")
    (folder / FILE).symlink_to(folder / "moved.sqlite")


def linked(target: str) -> Damage:
    def do(folder: Path) -> None:
        (folder / FILE).unlink()
        (folder / FILE).symlink_to(target)

    return do


def replaced(make: Callable[[Path], object]) -> Damage:
    def do(folder: Path) -> None:
        (folder / FILE).unlink()
        make(folder / FILE)

    return do


def planted_lock(folder: Path) -> None:
    (folder / "run.lock").symlink_to(folder / FILE)


def read_only(folder: Path) -> None:
    (folder / FILE).chmod(0o444)
    folder.chmod(0o555)


NOISE = random.Random(1).randbytes(3 * PAGE)
WAL = struct.pack(">8I", 0x377F0682, 3007000, PAGE, 0, 1, 2, 3, 4) + NOISE  # a header that looks right
JOURNAL = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 2, 7, 3, 512, PAGE) + NOISE
DEEP = "'" + "[" * 100_000 + "'"

CASES = [
    *(Case(f"flip-{number}", flip(number / 24, number)) for number in range(24)),
    *(Case(f"flip-in-a-text-{number}", flip_used(number)) for number in range(12)),
    *(
        Case(f"header-{name}-{value}", header_byte(at, value))
        for name, at, value in (
            ("magic", 0, 0), ("page-size", 16, 0x40), ("page-size-low", 17, 3), ("write-version", 18, 2),
            ("write-version", 18, 9), ("read-version", 19, 2), ("read-version", 19, 9), ("reserved", 20, 200),
            ("change-counter", 27, 255), ("size", 31, 1), ("size", 28, 255), ("free-list", 35, 3),
            ("free-count", 39, 9), ("schema-format", 47, 9), ("auto-vacuum", 55, 1), ("encoding", 59, 2),
            ("encoding", 59, 3), ("first-page-kind", 100, 5), ("first-page-cells", 104, 0),
        )
    ),
    *(
        Case(f"cut-to-{name}", cut(keep))
        for name, keep in (
            ("nothing", lambda size: 0), ("1-byte", lambda size: 1), ("16-bytes", lambda size: 16),
            ("100-bytes", lambda size: 100), ("512-bytes", lambda size: 512),
            ("one-page", lambda size: PAGE), ("one-page-and-a-byte", lambda size: PAGE + 1),
            ("half", lambda size: size // 2), ("all-but-a-page", lambda size: size - PAGE),
            ("all-but-a-byte", lambda size: size - 1),
        )
    ),
    Case("grown-by-noise", rewritten(lambda content: content + NOISE)),
    Case("twice-itself", rewritten(lambda content: content * 2)),
    Case("pages-1-2-exchanged", exchanged(0, 1)),
    Case("pages-2-3-exchanged", exchanged(1, 2)),
    Case("pages-2-last-exchanged", exchanged(1, -1)),
    Case("page-of-zeros", pages(lambda found: [*found[:-1], bytes(PAGE)])),
    Case("page-of-ones", pages(lambda found: [*found[:-1], b"\xff" * PAGE])),
    Case("page-twice", pages(lambda found: [*found[:-1], found[1]])),
    *(
        Case(f"beside-{suffix.strip('-.')}-{name}", beside(suffix, content))
        for suffix in ("-wal", "-shm", "-journal", "run.lock")
        for name, content in (("noise", NOISE), ("folder", None))
    ),
    Case("beside-wal-that-looks-right", beside("-wal", WAL)),
    Case("beside-journal-that-looks-right", beside("-journal", JOURNAL)),
    Case("beside-lock-that-is-a-link", planted_lock),
    Case("foreign-empty", foreign("VACUUM")),
    Case("foreign-tables", foreign("CREATE TABLE users (name TEXT)")),
    Case("foreign-header", foreign("CREATE TABLE header (title TEXT)")),
    Case("foreign-header-view", foreign("CREATE VIEW header AS SELECT 'schema_version' key, '3' value")),
    Case(
        "foreign-endless-view",
        foreign(
            "CREATE VIEW header AS WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM n) "
            "SELECT key, '3' value FROM n"
        ),
    ),
    Case("format-2", foreign(
        "CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT)",
        "INSERT INTO header VALUES ('schema_version', '2')",
    )),
    Case("format-99", sql("UPDATE header SET value = '99' WHERE key = 'schema_version'")),
    Case("format-words", sql("UPDATE header SET value = '\"new\"' WHERE key = 'schema_version'")),
    Case("format-deep", sql(f"UPDATE header SET value = {DEEP} WHERE key = 'schema_version'")),
    Case("format-blob", sql("UPDATE header SET value = x'ff' WHERE key = 'schema_version'")),
    *(
        Case(f"cell-{name}", sql(f"UPDATE results SET {change} WHERE key = (SELECT max(key) FROM results)"))
        for name, change in (
            ("outcome", "outcome = 'success'||outcome"), ("queries", "queries = queries + 1"),
            ("key", "key = key + 1"), ("text", "perturbed = perturbed || '.'"), ("nan", "probs = '[NaN, 1]'"),
            ("words-for-a-number", "words = 'many'"), ("blob", "perturbed = x'00ff'"),
            ("no-utf-8", "note = CAST(x'c328' AS TEXT)"), ("huge", "note = hex(zeroblob(5000000))"),
            ("deep", f"edits = {DEEP}"), ("no-json", "fields = '[[broken'"),
            ("infinite", "similarity = 9e999"),
        )
    ),
    Case("row-removed", sql("DELETE FROM results WHERE key = 3")),
    Case("rows-removed", sql("DELETE FROM results")),
    Case("identity-removed", sql("DELETE FROM header WHERE key = 'identity'")),
    Case("environment-emptied", sql("UPDATE header SET value = 'null' WHERE key = 'environment'")),
    Case("counters-deep", sql(f"UPDATE counters SET value = {DEEP}")),
    Case("seals-removed", sql("DELETE FROM seals")),
    Case("seals-words", sql("UPDATE seals SET sum = 'what', rows = 'many'")),
    *(
        Case(f"dropped-{name}", sql(f"DROP TABLE {name}"))
        for name in ("results", "header", "counters", "measures", "seals")
    ),
    Case("column-dropped", sql("ALTER TABLE results DROP COLUMN note")),
    Case("column-renamed", sql("ALTER TABLE results RENAME COLUMN note TO remark")),
    Case("column-added", sql("ALTER TABLE results ADD COLUMN more TEXT DEFAULT 'x'")),
    Case("trigger", sql("CREATE TRIGGER t AFTER INSERT ON header BEGIN DELETE FROM results; END")),
    Case("view", sql("CREATE VIEW v AS SELECT * FROM results")),
    Case("view-for-results", sql(
        "ALTER TABLE results RENAME TO others", "CREATE VIEW results AS SELECT * FROM others"
    )),
    Case("index", sql("CREATE INDEX i ON results (outcome)")),
    Case("schema-nonsense", schema("UPDATE sqlite_master SET sql = 'CREATE it' WHERE name = 'results'")),
    Case("schema-other-root", schema("UPDATE sqlite_master SET rootpage = 2 WHERE name = 'results'")),
    Case("schema-root-nowhere", schema("UPDATE sqlite_master SET rootpage = 9999 WHERE name = 'results'")),
    Case("schema-virtual", schema(
        "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE results USING fts5(key)' WHERE name = 'results'"
    )),
    *(
        Case(f"forged-{column}", forged(column, value))
        for column, value in (
            ("outcome", "won"), ("fields", "[]"), ("probs", "{}"), ("edits", "[[1]]"), ("facts", "[" * 99_999)
        )
    ),
    Case("link-to-the-file", elsewhere),
    Case("link-to-nothing", linked("nowhere.sqlite")),
    Case("link-to-itself", linked(FILE)),
    Case("link-to-zeros", linked("/dev/zero")),
    Case("folder", replaced(lambda place: place.mkdir())),
    Case("pipe", replaced(lambda place: os.mkfifo(place))),
    Case("text", replaced(lambda place: place.write_text("key,outcome\n0,success\n" * 400))),
    Case("read-only", read_only),
]  # fmt: skip


# -- what is tried on each ---------------------------------------------------------------------------------


Shown = tuple[int, str, str]  # exit code, output, errors
Command = Callable[..., Shown]


@pytest.fixture
def unfooled(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line, as a process would end."""

    def run(*arguments: object) -> Shown:
        monkeypatch.setattr(sys, "argv", ["unfooled", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged run, and beside it the data that it attacked."""
    folder = tmp_path_factory.mktemp("whole")
    data = write_csv(folder / "d.csv", sentences(24))
    attack("fake", str(data), "deepwordbug", out=folder / "run")
    return folder / "run"


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Iterator[Path]:
    folder = shutil.copytree(whole, tmp_path / "run")
    yield folder
    folder.chmod(0o755)  # so that it can be removed


def digest(folder: Path) -> str:
    with closing(RunFile.read(folder)) as file:
        return file.content_digest()


@pytest.fixture(scope="module")
def wanted(whole: Path) -> str:
    """The export of the undamaged run."""
    export(whole, whole.parent / "wanted.csv")
    return (whole.parent / "wanted.csv").read_text(encoding="utf-8")


def told_cleanly(shown: Shown, folder: Path) -> bool:
    """Whether it ended in one message that names the file; a traceback would have left `main`."""
    code, _, errors = shown
    lines = errors.strip().splitlines()
    begins = [line for line in lines if line.startswith("error: ")]
    return code == 2 and len(begins) == 1 and str(folder) in begins[0] and len(errors) < 2000


@pytest.mark.hostile("damaged run files")
@pytest.mark.parametrize("case", some(CASES, few=6), ids=lambda case: case.name)
def test_damage_is_told_or_harmless(
    case: Case, whole: Path, wanted: str, copy: Path, unfooled: Command
) -> None:
    summary = unfooled("summary", whole)[1]
    case.do(copy)
    out = copy.parent / "out.csv"

    shown = unfooled("summary", copy)
    assert told_cleanly(shown, copy) or shown[1].replace(str(copy), str(whole)) == summary
    shown = unfooled("export", copy, "-o", out)
    assert told_cleanly(shown, copy) or out.read_text(encoding="utf-8") == wanted
    assert out.exists() == (shown[0] == 0)
    shown = unfooled("report", copy, "--out", copy.parent / "report.html")
    assert told_cleanly(shown, copy) or shown[0] == 0
    assert (copy.parent / "report.html").exists() == (shown[0] == 0)

    resumed = ("attack", "--model", "fake", "--data", whole.parent / "d.csv", "--attack", "deepwordbug")
    shown = unfooled(*resumed, "--out", copy)
    assert told_cleanly(shown, copy) or digest(copy) == digest(whole)


READERS = {
    "measure": ("measure", "RUN", "--with", "edit-distance"),
    "gate": ("gate", "RUN", "--min-aua", "0.1"),
    "transfer": ("transfer", "--from", "RUN", "--to", "fake"),
    "replay": ("replay", "RUN", "--models", "one=fake", "--out", "OUT"),
    "report-folder": ("report", "RUN", "--folder", "--out", "OUT"),
    "report-of-two": ("report", "WHOLE", "RUN", "--out", "OUT/both.html"),
    "study": ("study", "create", "RUN", "-o", "OUT/study.db"),
    "summary-json": ("summary", "RUN", "--json"),
    "export-jsonl": ("export", "RUN", "-o", "OUT/out.jsonl"),
}


@pytest.mark.hostile("damaged run files")
@pytest.mark.parametrize("name", some(list(READERS), few=3))
def test_every_command_refuses_a_damaged_run(name: str, whole: Path, copy: Path, unfooled: Command) -> None:
    places = {"RUN": str(copy), "WHOLE": str(whole), "OUT": str(copy.parent / "out")}
    command = [re.sub("RUN|WHOLE|OUT", lambda found: places[found[0]], part) for part in READERS[name]]
    sql("UPDATE results SET queries = queries + 1 WHERE key = 7")(copy)
    shown = unfooled(*command)
    assert told_cleanly(shown, copy), shown
    assert "row 7 of results is damaged" in shown[2]
