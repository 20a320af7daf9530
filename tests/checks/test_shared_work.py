"""Replaying, transferring and measuring in several processes gives what one process gives."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

import unfooled
from deadly_victim import import_deadly
from reviews import sentences, write_csv
from stored_runs import digest
from unfooled.checks.transfer import FOLDER
from unfooled.runs.file import RunFile
from unfooled.runs.workers.where import Workers

TWO = Workers(number=2)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    data = write_csv(tmp_path / "d.csv", sentences(60))
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    module = import_deadly(tmp_path / "deadly_again.py", monkeypatch, number=4)
    return f"{module}:deadly"


def test_replay(tmp_path: Path, run: Path, deadly: str) -> None:
    alone = unfooled.replay(run, "overconfident:fake", out=tmp_path / "alone")
    unfooled.replay(run, "overconfident:fake", out=tmp_path / "two", workers=TWO)
    assert digest(tmp_path / "alone") == digest(tmp_path / "two")
    expected = {result.key: result.perturbed_probs for result in alone.results()}
    assert 4 in expected
    unfooled.replay(run, deadly, out=tmp_path / "deadly", workers=TWO)
    found = {result.key: result for result in unfooled.Run(tmp_path / "deadly").results()}
    assert found.keys() == expected.keys()
    assert [key for key, result in found.items() if result.outcome == "error"] == [4]
    assert "the worker process died on this text" in found[4].note


def test_transfer(run: Path, deadly: str) -> None:
    alone = unfooled.transfer(run, "overconfident:fake")
    two = unfooled.transfer(run, "overconfident:fake", again=True, workers=TWO)
    assert alone == two
    (stored,) = (run / FOLDER).glob("*.json")
    assert json.loads(stored.read_text())["errors"] == 0
    lost = unfooled.transfer(run, deadly, workers=TWO)
    assert [example.key for example in lost.examples if example.error] == [4]


def test_measures(tmp_path: Path, run: Path) -> None:
    from unfooled.metrics.measures import measure_run

    alone = unfooled.measure(run, "edit-distance")
    data = tmp_path / "d.csv"
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "other")
    seen: list[tuple[int, int]] = []
    measure_run(
        tmp_path / "other",
        ["edit-distance"],
        progress=lambda done, total: seen.append((done, total)),
        workers=TWO,
    )
    with closing(RunFile.read(tmp_path / "other")) as file:
        assert {"edit-distance": file.measured("edit-distance")} == alone
    assert seen[-1][0] == seen[-1][1] == len(alone["edit-distance"])
    measure_run(tmp_path / "other", ["edit-distance"], workers=TWO)  # nothing is left to measure
