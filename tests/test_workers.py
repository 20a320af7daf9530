"""Several processes give the results of one, and a dying worker costs one example at most."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import unfooled
from reviews import sentences, write_csv
from unfooled.data.dataset import Dataset
from unfooled.errors import VictimError
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.runs.workers import _Pool, _Worker
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim

MODULE = """
import os
from unfooled.victims.fake import FakeVictim

inner = FakeVictim()

def deadly(texts):
    if any("number 13." in text for text in texts) and os.environ.get("PARENT") != str(os.getpid()):
        os._exit(9)
    return inner.predict(texts)

def broken(texts):
    os._exit(7)

broken.labels = deadly.labels = ("negative", "positive")

if os.environ.get("DIE_ON_IMPORT") and os.environ.get("PARENT") != str(os.getpid()):
    os._exit(5)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    import os

    (tmp_path / "deadly_victim.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PARENT", str(os.getpid()))
    sys.modules.pop("deadly_victim", None)
    return "deadly_victim"


def digest(path: Path) -> str:
    with closing(RunFile.read(path)) as file:
        return file.content_digest()


def test_two_workers_give_the_results_of_one(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(60)))
    attack("fake", data, "deepwordbug", out=tmp_path / "one")
    attack("fake", data, "deepwordbug", out=tmp_path / "two", workers=2)
    attack(FakeVictim(), data, "deepwordbug", out=tmp_path / "pickled", workers=3)
    assert digest(tmp_path / "one") == digest(tmp_path / "two") == digest(tmp_path / "pickled")
    with closing(RunFile.read(tmp_path / "one")) as one, closing(RunFile.read(tmp_path / "two")) as two:
        assert one.counters()["victim"]["asked"] == two.counters()["victim"]["asked"]


class Sent:
    """Stands for a worker: keeps what it is sent."""

    def __init__(self) -> None:
        self.examples: list[Any] = []
        self.closed = False

    def send(self, examples: list[Any]) -> None:
        self.examples += examples
        self.closed = not examples


def test_no_worker_is_given_more_than_its_fair_share() -> None:
    data = Dataset.from_pairs(sentences(61), labels=("negative", "positive"))
    pool = _Pool((), iter(data), size=2, remaining=61, on_counters=lambda counted: None)
    first, second = (_Worker(process=None, pipe=Sent()) for _ in range(2))  # type: ignore[arg-type]
    pool._workers = [first, second]
    for worker in (first, first, second, first, second):
        worker.wants = 256
        pool._feed(worker)
    assert isinstance(first.pipe, Sent)
    assert isinstance(second.pipe, Sent)
    # The first is left waiting for more until the second has its half; then nothing is left for either.
    assert (len(first.pipe.examples), len(second.pipe.examples)) == (31, 30)
    assert first.pipe.closed
    assert second.pipe.closed


def test_a_text_that_kills_its_worker_is_found_and_harms_nobody_else(tmp_path: Path, module: str) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(20)))
    run = attack(f"{module}:deadly", data, "deepwordbug", out=tmp_path / "run", workers=2)
    results = {result.key: result for result in run.results()}
    assert len(results) == 20
    assert [key for key, result in results.items() if result.outcome == "error"] == [13]
    assert "worker process died" in results[13].note
    clean = attack("fake", data, "deepwordbug", out=tmp_path / "clean")
    for result in clean.results():
        if result.key != 13:
            assert result == results[result.key]


def test_a_worker_that_cannot_start_stops_the_run(
    tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(5)))
    monkeypatch.setenv("DIE_ON_IMPORT", "1")
    with pytest.raises(VictimError, match=r"(?s)died while it started.*__main__"):
        attack(f"{module}:deadly", data, "deepwordbug", out=tmp_path / "run", workers=2)


def test_a_victim_that_cannot_travel_says_so(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(5)))
    inner = FakeVictim()
    local = FunctionVictim(lambda texts: inner.predict(texts), labels=("negative", "positive"))
    with pytest.raises(VictimError, match="workers=1"):
        attack(local, data, "deepwordbug", out=tmp_path / "run", workers=2)
