"""Several processes give the results of one, and a dying worker costs one example at most."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import unfooled
from deadly_victim import import_deadly
from reviews import sentences, write_csv
from stored_runs import digest
from unfooled.data.dataset import Dataset
from unfooled.errors import VictimError
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.runs.workers.pool import Pool, Worker
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return import_deadly(tmp_path / "deadly_workers.py", monkeypatch)


def test_two_workers_give_the_results_of_one(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(60)))
    attack("fake", data, "deepwordbug", out=tmp_path / "one")
    attack("fake", data, "deepwordbug", out=tmp_path / "two", workers=2)
    attack(FakeVictim(), data, "deepwordbug", out=tmp_path / "pickled", workers=3)
    assert digest(tmp_path / "one") == digest(tmp_path / "two") == digest(tmp_path / "pickled")
    with (
        closing(RunFile.read(tmp_path / "one")) as alone,
        closing(RunFile.read(tmp_path / "two")) as together,
    ):
        assert alone.counters()["victim"]["asked"] == together.counters()["victim"]["asked"]


class Sent:
    """Stands for the connection to a worker: keeps what it is sent."""

    def __init__(self) -> None:
        self.examples: list[Any] = []
        self.closed = False

    def send(self, items: list[Any], /) -> None:
        self.examples += items
        self.closed = not items

    def messages(self) -> list[tuple[str, Any]]:
        return []


def test_no_worker_is_given_more_than_its_fair_share() -> None:
    data = Dataset.from_pairs(sentences(61), labels=("negative", "positive"))
    pool: Pool[Sent] = Pool(None, None, iter(data), size=2, remaining=61)  # type: ignore[arg-type]
    first, second = (Worker(Sent()) for _ in range(2))
    pool._workers = [first, second]
    for worker in (first, first, second, first, second):
        worker.wants = 256
        pool._feed(worker)
    # The first is left waiting for more until the second has its half; then nothing is left for either.
    assert (len(first.channel.examples), len(second.channel.examples)) == (31, 30)
    assert first.channel.closed
    assert second.channel.closed


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
    with pytest.raises(VictimError, match=r"(?s)died while they started.*__main__"):
        attack(f"{module}:deadly", data, "deepwordbug", out=tmp_path / "run", workers=2)


def test_a_victim_that_cannot_travel_says_so(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(5)))
    inner = FakeVictim()
    local = FunctionVictim(lambda texts: inner.predict(texts), labels=("negative", "positive"))
    with pytest.raises(VictimError, match="workers=1"):
        attack(local, data, "deepwordbug", out=tmp_path / "run", workers=2)


# A victim that a worker is in the middle of: each stage says that it is there and then takes ten minutes.
STAGES = """
import http.client, os, pathlib, socket, sys, threading, time
from unfooled.victims.fake import FakeVictim

inner = FakeVictim()
here = pathlib.Path(__file__).parent
in_worker = os.environ.get("DRIVER") != str(os.getpid())

def reached():
    (here / f"worker-{os.getpid()}.tmp").write_text("")
    (here / f"worker-{os.getpid()}.tmp").rename(here / f"worker-{os.getpid()}")

def stage(name):
    def classify(texts):
        if in_worker:
            reached()
            if name == "sleeping":
                time.sleep(600)
            if name == "computing":  # in C, and no other thread of Python runs meanwhile
                pow(3, 10 ** 9)
            if name == "asking":
                server = socket.create_server(("127.0.0.1", 0))
                asked = http.client.HTTPConnection("127.0.0.1", server.getsockname()[1])
                asked.request("GET", "/")
                asked.getresponse()
        return inner.predict(texts)
    classify.labels = ("negative", "positive")
    return classify

sleeping, computing, asking, loading = map(stage, ("sleeping", "computing", "asking", "loading"))
if in_worker and os.environ["STAGE"] == "loading":
    reached()
    time.sleep(600)
"""
DRIVER = """
import os, sys
os.environ.setdefault("DRIVER", str(os.getpid()))
from unfooled.runs.attack import attack
if __name__ == "__main__":
    attack(f"staged_victim:{os.environ['STAGE']}", "d.csv", "deepwordbug", out="run", workers=2)
"""


def alive(process: int) -> bool:
    """Whether it runs; one that ended and was not asked for its exit code yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("stage", ["loading", "sleeping", "computing", "asking"])
def test_workers_end_when_their_driver_is_killed(tmp_path: Path, stage: str) -> None:
    write_csv(tmp_path / "d.csv", sentences(40))
    (tmp_path / "staged_victim.py").write_text(STAGES)
    (tmp_path / "driver.py").write_text(DRIVER)
    source = str(Path(unfooled.__file__).parents[1])
    paths = os.pathsep.join([str(tmp_path), source, os.environ.get("PYTHONPATH", "")])
    driver = subprocess.Popen(
        [sys.executable, "driver.py"], cwd=tmp_path, env=os.environ | {"STAGE": stage, "PYTHONPATH": paths}
    )
    found: list[int] = []
    try:

        def both() -> bool:
            found[:] = [int(file.name.partition("-")[2]) for file in tmp_path.glob("worker-*[0-9]")]
            return len(found) == 2 or driver.poll() is not None

        assert eventually(both)
        assert driver.poll() is None
        driver.kill()
        driver.wait()
        assert eventually(lambda: not any(alive(worker) for worker in found))
    finally:
        driver.kill()
        driver.wait()
        for worker in found:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
