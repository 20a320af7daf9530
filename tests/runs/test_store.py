from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import SUPPORT
from stored_runs import HEADER, make
from unfooled.errors import RunFileError
from unfooled.runs import sealed
from unfooled.runs.file import MEASURES, RESULTS, SCHEMA_VERSION, RunFile
from unfooled.runs.rows import to_row

# Run in another process: adds results for ever, telling after each commit how many are on disk.
WRITER = """
import sys
from stored_runs import HEADER, make
from unfooled.runs.file import RunFile
run = RunFile.open(sys.argv[1], HEADER)
key = 0
while True:
    run.add(make(key))
    key += 1
    if not run._waiting:
        print(key, flush=True)
"""


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    with RunFile.open(tmp_path / "deep" / "out", HEADER) as run:
        for key in (5, 1, 3, 2, 4):
            run.add(make(key))
        assert list(run.results()) == [make(key) for key in (1, 2, 3, 4, 5)]
    with RunFile.read(tmp_path / "deep" / "out") as run:
        assert list(run.results()) == [make(key) for key in (1, 2, 3, 4, 5)]
        assert list(run.results(outcome="failure")) == [make(1), make(5)]
        assert run.count() == {"error": 1, "failure": 2, "skipped": 1, "success": 1}
        assert run.labels == ("neg", "pos")
        assert run.header["schema_version"] == SCHEMA_VERSION
    assert sorted(file.name for file in (tmp_path / "deep" / "out").iterdir()) == ["run.sqlite"]


def test_many_results_are_paged_in_order(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        for key in reversed(range(1201)):
            run.add(make(key))
        assert [result.key for result in run.results()] == list(range(1201))
        assert len(list(run.results(outcome="skipped"))) == 300
        assert [result.key for result in run.results(keys=range(7, 1100))] == list(range(7, 1100))
        assert [result.key for result in run.results(keys=range(2, 8), outcome="skipped")] == [2, 6]
        assert list(run.results(keys=range(5, 5))) == list(run.results(keys=range(1201, 2000))) == []


def test_numbers_of_other_libraries_and_odd_characters(tmp_path: Path) -> None:
    odd = replace(
        make(1),
        key=np.int64(7),  # type: ignore[arg-type]
        probs=(np.float32(0.25), np.float64(0.75)),  # type: ignore[arg-type]
        note="half \ud83d",
        fields=(("text", "nul \0 and half \ud83d"),),
        field=0,
    )
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(odd)
        (back,) = run.results()
    assert (back.key, back.probs, back.note) == (7, (0.25, 0.75), "half \\ud83d")
    assert back.original == "nul \0 and half \ud83d"


def test_a_key_again_replaces(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(make(3))
        run.flush()
        run.add(make(3, "success"))
        assert [result.outcome for result in run.results()] == ["success"]


def test_finished_leaves_out_errors(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        for key in range(8):
            run.add(make(key))
        assert run.finished(2, 6) == {2, 4, 5, 6}
        assert (run.count_finished(0, 7), run.count_finished(2, 6), run.count_finished(3, 3)) == (6, 4, 0)


def test_commits_by_number_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with RunFile.open(tmp_path, HEADER) as run, RunFile.read(tmp_path) as other:
        for key in range(199):
            run.add(make(key))
        assert sum(other.count().values()) == 0
        run.add(make(199))
        assert sum(other.count().values()) == 200
        run.add(make(200))
        assert sum(other.count().values()) == 200
        now += 0.6
        run.add(make(201))
        assert sum(other.count().values()) == 202


def test_an_exception_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), RunFile.open(tmp_path, HEADER) as run:
        run.add(make(0))
        raise KeyboardInterrupt
    with RunFile.read(tmp_path) as run:
        assert list(run.results()) == [make(0)]


def test_counters(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.set_counters({"victim": {"calls": 3}, "seconds": 1.5})
        run.set_counters({"seconds": 2.5})
        assert run.counters() == {"seconds": 2.5, "victim": {"calls": 3}}


# -- continuing --------------------------------------------------------------------------------------------


def test_continuing_keeps_the_first_environment(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(make(0))
    for host in ("second", "third"):
        with RunFile.open(tmp_path, {**HEADER, "environment": {"host": host}}) as run:
            assert list(run.results()) == [make(0)]
    with RunFile.read(tmp_path) as run:
        assert run.header["environment"] == {"host": "first"}
        assert run.header["resumes"] == [{"host": "second"}, {"host": "third"}]


def test_tuples_and_lists_are_the_same_identity(tmp_path: Path) -> None:
    RunFile.open(tmp_path, {"identity": {"labels": ("a", "b")}}).close()
    with RunFile.open(tmp_path, {"identity": {"labels": ["a", "b"]}}) as run:
        assert run.labels == ("a", "b")


def refused(folder: Path, identity: dict[str, Any]) -> RunFileError:
    with pytest.raises(RunFileError) as caught:
        RunFile.open(folder, {"identity": identity})
    return caught.value


def test_another_identity_is_refused_and_named(tmp_path: Path) -> None:
    RunFile.open(tmp_path, HEADER).close()
    identity = {
        "recipe": {"name": "toy", "parts": ["a", "c"]},
        "seed": 1,
        "labels": ["neg", "pos"],
        "budget": 5,
    }
    refusal = refused(tmp_path, identity)
    assert refusal.cause.splitlines()[1:] == [
        "    budget: (absent) → 5",
        '    recipe.parts: ["a","b"] → ["a","c"]',
        "    seed: 0 → 1",
    ]
    assert "--out" in refusal.remedy
    assert "--restart" in refusal.remedy
    with RunFile.open(tmp_path, HEADER) as run:  # the refusal let go of the lock and changed nothing
        assert run.header["resumes"] == [{"host": "first"}]
    with RunFile.open(tmp_path, {"identity": identity}, restart=True) as run:
        assert (run.header["identity"], run.count()) == (identity, {})


def test_other_fingerprints_are_named_in_words(tmp_path: Path) -> None:
    old = {
        "victim": "a" * 64,
        "data": "b" * 64,
        "budget": None,
        "resources": {"tag:perceptron": "perceptron 1", "encode:own": "c" * 64},
        "recipe": {"search": {"depth": None}},
    }
    RunFile.open(tmp_path, {"identity": old}).close()
    new = {
        "victim": "1" * 64,
        "data": "2" * 64,
        "budget": 5,
        "resources": {"tag:perceptron": "perceptron 2", "encode:own": "3" * 64},
        "recipe": {"search": {"depth": 3}},
    }
    assert refused(tmp_path, new).cause.splitlines()[1:] == [
        "    budget: none → 5",
        "    the data or the choice of rows changed (bbbbbbbb… → 22222222…)",
        "    recipe.search.depth: none → 3",
        "    the resource encode:own changed (cccccccc… → 33333333…)",
        "    the resource tag:perceptron changed (perceptron 1 → perceptron 2)",
        "    the model changed (aaaaaaaa… → 11111111…)",
    ]


def test_interrupted_and_uninterrupted_runs_are_equal(tmp_path: Path) -> None:
    with RunFile.open(tmp_path / "whole", HEADER) as run:
        for key in range(50):
            run.add(make(key))
        whole = run.content_digest()
    for keys in (range(20, 40), range(20), range(40, 50)):
        with RunFile.open(tmp_path / "parts", {**HEADER, "environment": {"pid": 7}}) as run:
            for key in keys:
                run.add(make(key))
            parts = run.content_digest()
    assert parts == whole
    with RunFile.open(tmp_path / "parts", HEADER) as run:
        run.add(replace(make(7), queries=99))
        assert run.content_digest() != whole


# -- things that go wrong ----------------------------------------------------------------------------------


def test_kill_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    with subprocess.Popen(
        python(WRITER, tmp_path), stdout=subprocess.PIPE, env=environment(), text=True
    ) as child:
        assert child.stdout is not None
        told = 0
        while told < 600:
            told = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        told = max([told, *(int(line) for line in child.stdout if line.strip())])
    assert child.returncode == -signal.SIGKILL
    assert (tmp_path / "run.lock").exists()  # a stale lock
    with RunFile.read(tmp_path) as run:
        assert sum(run.count().values()) >= told
    with RunFile.open(tmp_path, HEADER) as run:
        kept = list(run.results())
        assert len(kept) >= told
        assert kept == [make(key) for key in range(len(kept))]
        run.add(make(len(kept)))
    with RunFile.read(tmp_path) as run:
        assert sum(run.count().values()) == len(kept) + 1


def test_kill_in_mid_run_then_the_same_command(tmp_path: Path) -> None:
    with RunFile.open(tmp_path / "whole", HEADER) as run:
        for key in range(2000):
            run.add(make(key))
        whole = run.content_digest()
    command = """
import sys
from stored_runs import HEADER, make
from unfooled.runs.file import RunFile
with RunFile.open(sys.argv[1], HEADER) as run:
    finished = run.finished(0, 1999)
    print(len(finished), flush=True)
    for key in range(2000):
        if key not in finished:
            run.add(make(key))
            if key == 700 and len(finished) == 0:
                import os, signal
                os.kill(os.getpid(), signal.SIGKILL)
    print("end")
"""
    outputs = [
        subprocess.run(
            python(command, tmp_path / "killed"),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        ).stdout.split()
        for _ in range(2)
    ]
    assert outputs[0] == ["0"]
    assert int(outputs[1][0]) >= 450  # three quarters of 600; errors run again
    assert outputs[1][1] == "end"
    with RunFile.read(tmp_path / "killed") as run:
        assert run.content_digest() == whole


def test_a_full_disk_keeps_what_was_committed(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        for key in range(200):
            run.add(make(key))
        (pages,) = run._db.execute("PRAGMA page_count").fetchone()
        run._db.execute(f"PRAGMA max_page_count={pages + 1}")
        with pytest.raises(RunFileError, match=r"disk is full; .* is safe: 200 results") as caught:
            for key in range(200, 400):
                run.add(make(key))
        assert "free some space and repeat the command" in caught.value.remedy
        run._db.execute("PRAGMA max_page_count=100000")
        run.flush()
        assert sum(run.count().values()) == 400


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from stored_runs import HEADER, make
from unfooled.errors import RunFileError
from unfooled.runs.file import RunFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
try:
    with RunFile.open(sys.argv[1], HEADER) as run:
        for key in range(20_000):
            run.add(make(key))
except RunFileError as error:
    print(error)
    sys.exit(3)
"""
    done = subprocess.run(
        python(code, tmp_path), env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3, done.stderr
    assert "everything up to the last commit is safe" in done.stdout
    safe = int(done.stdout.split("is safe: ")[1].split()[0])
    with RunFile.open(tmp_path, HEADER) as run:
        kept = list(run.results())
        assert kept == [make(key) for key in range(len(kept))]
        assert len(kept) >= safe >= 200


def test_a_failed_disk_is_reported_once(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="is full") as caught, RunFile.open(tmp_path, HEADER) as run:
        (pages,) = run._db.execute("PRAGMA page_count").fetchone()
        run._db.execute(f"PRAGMA max_page_count={pages}")
        for key in range(1000):
            run.add(make(key))
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    with RunFile.open(tmp_path, HEADER) as run:
        assert run.count() == {}


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER):
        with pytest.raises(RunFileError, match=f"another run is writing it \\(process {os.getpid()}\\)"):
            RunFile.open(tmp_path, HEADER)
        code = "import sys; from unfooled.runs.file import RunFile; RunFile.open(sys.argv[1], {})"
        done = subprocess.run(
            python(code, tmp_path),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert f"another run is writing it (process {os.getpid()})" in done.stderr
    with RunFile.open(tmp_path, HEADER) as run:
        assert run.count() == {}


def test_a_lock_left_by_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("999999999")
    with RunFile.open(tmp_path, HEADER):
        assert (tmp_path / "run.lock").read_text() == str(os.getpid())
    assert not (tmp_path / "run.lock").exists()


def test_another_program_that_holds_the_database(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run._db.execute("PRAGMA busy_timeout=0")
        other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        run.add(make(0))
        with pytest.raises(RunFileError, match="another process holds it"):
            run.flush()
        other.execute("ROLLBACK")
        other.close()
        run.flush()
        assert run.count_finished(0, 0) == 1


def test_reading_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no run"):
        RunFile.read(tmp_path)
    (tmp_path / "run.sqlite").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE something (x)")
    other.close()
    for path in (tmp_path, tmp_path / "other.sqlite"):
        with pytest.raises(RunFileError, match="not a run file") as caught:
            RunFile.read(path)
        assert "choose another --out" not in caught.value.remedy
        with pytest.raises(RunFileError, match="not a run file") as caught:
            RunFile.open(path, HEADER)
        assert "choose another --out" in caught.value.remedy


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE results",
        "UPDATE results SET edits = '[[broken'",
        "UPDATE results SET perturbed = CAST(x'ff' AS TEXT)",
    ],
)
def test_the_remedy_for_a_damaged_file_fits_the_call(tmp_path: Path, damage: str) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(make(0))
    other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
    other.execute(damage)
    other.close()
    with pytest.raises(RunFileError, match="damaged") as caught:
        RunFile.read(tmp_path)
    assert caught.value.remedy == "the file is damaged; attack again with --restart"
    with pytest.raises(RunFileError, match="damaged") as caught:
        RunFile.open(tmp_path, HEADER)
    assert "throw the file away with --restart" in caught.value.remedy


def test_overwritten_pages_are_damage(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        for key in range(200):
            run.add(make(key))
    whole = (tmp_path / "run.sqlite").read_bytes()
    (tmp_path / "run.sqlite").write_bytes(whole[:16384] + b"\xff" * (len(whole) - 16384))
    with pytest.raises(RunFileError, match="damaged") as caught:
        RunFile.read(tmp_path)
    assert caught.value.remedy == "the file is damaged; attack again with --restart"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE results SET queries = queries + 1 WHERE key = 3", "row 3 of results is damaged"),
        ("UPDATE results SET outcome = 'failure' WHERE key = 4", "row 4 of results is damaged"),
        ("UPDATE results SET similarity = 0.51 WHERE key = 5", "row 5 of results is damaged"),
        ("UPDATE results SET key = 70 WHERE key = 6", "row 70 of results is damaged"),
        ("UPDATE header SET value = '{}' WHERE key = 'identity'", "row identity of header is damaged"),
        ("UPDATE counters SET value = '7'", "row seconds of counters is damaged"),
        ("DELETE FROM results WHERE key = 2", "rows of results were removed"),
        ("INSERT INTO results SELECT 99, * FROM (SELECT outcome, label, fields, field, perturbed, probs, "
         "perturbed_probs, edits, words, queries, asked, similarity, note, facts, checksum FROM results "
         "WHERE key = 1)", "row 99 of results is damaged"),
        ("DELETE FROM seals", "seals of its tables"),
        ("UPDATE seals SET rows = rows + 1 WHERE name = 'results'", "rows of results were removed or added"),
        ("CREATE TRIGGER planted AFTER INSERT ON results BEGIN DELETE FROM header; END", "'planted'"),
        ("CREATE VIEW planted AS SELECT 1", "'planted'"),
        ("ALTER TABLE results ADD COLUMN more TEXT", "the table results has other columns"),
        ("DROP TABLE measures", "the table measures is missing"),
    ],
)  # fmt: skip
def test_a_damaged_row_is_named_and_refused(tmp_path: Path, damage: str, said: str) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        for key in range(8):
            run.add(make(key))
        run.set_counters({"seconds": 1.5})
    other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
    other.execute(damage)
    other.close()
    before = (tmp_path / "run.sqlite").read_bytes()
    with pytest.raises(RunFileError, match=said):
        RunFile.read(tmp_path)
    with pytest.raises(RunFileError, match=said):
        RunFile.open(tmp_path, HEADER)
    assert (tmp_path / "run.sqlite").read_bytes() == before
    with RunFile.open(tmp_path, HEADER, restart=True) as run:
        assert run.count() == {}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", "won"),
        ("fields", "7"),
        ("fields", '[["text"]]'),
        ("fields", "[" * 100_000),
        ("field", 9),
        ("field", "one"),
        ("probs", '{"a": 1}'),
        ("probs", '["0.5"]'),
        ("probs", "9" * 5000),
        ("edits", '[["replace", 1]]'),
        ("edits", '[["replace", "1", "a", "b", 0, 1]]'),
        ("facts", "[]"),
        ("facts", '{"draws": "many"}'),
        ("perturbed", b"\x00\xff"),
        ("label", b"\x01"),
    ],
)
def test_a_row_with_a_fitting_checksum_still_has_to_be_a_result(
    tmp_path: Path, column: str, value: object
) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        row = list(to_row(make(5)))
        row[[name.split()[0] for name in RESULTS.columns].index(column)] = value
        with run._transaction():
            sealed.put(run._db, RESULTS, [row])
    with (
        RunFile.read(tmp_path) as run,
        pytest.raises(RunFileError, match="row 5 of results holds no result"),
    ):
        list(run.results())


def test_what_is_not_a_number_is_kept_as_nothing(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(replace(make(1), similarity=float("nan")))
    with RunFile.read(tmp_path) as run:
        assert [result.similarity for result in run.results()] == [None]


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_zeros_with_a_sign_and_whole_numbers_are_no_damage(tmp_path: Path) -> None:
    values = {0: -0.0, 1: 0.0, 2: 3, 3: True}
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(replace(make(0), similarity=-0.0))
        run.add(replace(make(1), similarity=1))
        run.flush()
        with run._db:
            sealed.put(run._db, MEASURES, [("loss", key, value) for key, value in values.items()])
    with RunFile.read(tmp_path) as run:
        assert [result.similarity for result in run.results()] == [0.0, 1.0]
        assert run.measured("loss") == values


def test_a_planted_lock_harms_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "run.lock").symlink_to(tmp_path / "mine")
    with pytest.raises(RunFileError, match=r"run\.lock: "):
        RunFile.open(tmp_path, HEADER)
    (tmp_path / "run.lock").unlink()
    os.mkfifo(tmp_path / "run.lock")
    with pytest.raises(RunFileError, match=r"run\.lock: "):
        RunFile.open(tmp_path, HEADER)
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.sqlite")
    for restart in (False, True):
        with pytest.raises(RunFileError, match="is no file"):
            RunFile.open(tmp_path, HEADER, restart=restart)
    with pytest.raises(RunFileError, match="there is no run"):
        RunFile.read(tmp_path)


@pytest.mark.parametrize(
    ("version", "message", "remedy"), [(99, "newer version", "upgrade"), (1, "older version", "--restart")]
)
def test_other_formats_are_refused(tmp_path: Path, version: int, message: str, remedy: str) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run._db.execute("UPDATE header SET value = ? WHERE key = 'schema_version'", (str(version),))
    with pytest.raises(RunFileError, match=message) as caught:
        RunFile.read(tmp_path)
    assert remedy in caught.value.remedy
    with pytest.raises(RunFileError, match=message):
        RunFile.open(tmp_path, HEADER)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, HEADER) as run:
        run.add(make(0))
    before = (tmp_path / "run.sqlite").read_bytes()
    with RunFile.read(tmp_path) as run:
        assert run.count_finished(0, 9) == 1
        with pytest.raises(RunFileError, match="reading only"):
            run.set_counters({"a": 1})
    assert (tmp_path / "run.sqlite").read_bytes() == before
    assert json.loads(json.dumps(HEADER)) == HEADER


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match="cannot be created"):
        RunFile.open(tmp_path / "file" / "out", HEADER)
