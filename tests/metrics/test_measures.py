"""What found texts are like, measured after the attack."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stored_runs import made, stored
from unfooled.errors import UnknownNameError
from unfooled.metrics.measures import measure_run, parse_measure
from unfooled.plugins import registry
from unfooled.report.html import write_html
from unfooled.runs.export import export
from unfooled.runs.file import RunFile


class Angles:
    """A text with `awful` in it points 60 degrees away from any other."""

    batch_size = 3
    asked: list[str] = []  # noqa: RUF012

    def __call__(self, items: list[str]) -> list[np.ndarray]:
        self.asked.extend(items)
        assert len(items) <= self.batch_size
        angle = [np.pi / 3 if "awful" in item else 0.0 for item in items]
        return [np.array([np.cos(radians), np.sin(radians)]) for radians in angle]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    results = [
        made(0, "success", "great film"),
        made(1, "failure", "fine film"),
        made(2, "success", "great plot"),
    ]
    return stored(tmp_path / "r", [*results, made(3, "error", "lost")])


@pytest.fixture
def angles(monkeypatch: pytest.MonkeyPatch) -> type[Angles]:
    Angles.asked.clear()
    load = registry.load
    monkeypatch.setattr(
        registry,
        "load",
        lambda kind, name: (lambda variant: Angles()) if name == "encode" else load(kind, name),
    )
    return Angles


def test_similarity_of_what_fell_is_stored_once(run: Path, angles: type[Angles]) -> None:
    seen: list[tuple[int, int]] = []
    assert measure_run(run, ["similarity:toy"], progress=lambda *now: seen.append(now)) == ["similarity:toy"]
    with closing(RunFile.read(run)) as file:
        assert file.measures() == ["similarity:toy"]
        assert file.measured("similarity:toy") == {0: 0.5, 2: 0.5}
        assert file.measured("grammar:toy") == {}
    assert seen == [(2, 2)]
    asked = len(angles.asked)
    measure_run(run, ["similarity:toy"])
    assert len(angles.asked) == asked


def test_edit_distance_needs_no_model(run: Path) -> None:
    measure_run(run, ["edit-distance"])
    with closing(RunFile.read(run)) as file:
        # great → awful: all five letters differ, of ten characters.
        assert file.measured("edit-distance") == {0: 0.5, 2: 0.5}


def test_a_report_draws_what_was_measured(run: Path, angles: type[Angles], tmp_path: Path) -> None:
    measure_run(run, ["similarity:toy", "edit-distance"])
    page = write_html([run], tmp_path / "p.html").read_text()
    assert "Accuracy when only good texts count: similarity:toy" in page
    assert "Accuracy when only good texts count: edit-distance" in page


def test_parts_of_speech_are_counted_drawn_and_exported(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Tags:
        """`great` is an adjective, `awful` a noun."""

        batch_size = 2

        def __call__(self, items: list[tuple[tuple[str, ...], int, tuple[str, ...]]]) -> list[list[str]]:
            tags = {"great": "ADJ", "awful": "NOUN"}
            return [[tags[words[at]], *(tags[word] for word in put)] for words, at, put in items]

    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda kind, name: (lambda variant: Tags()) if name == "tag" else load(kind, name)
    )
    measure_run(run, ["changed-pos:toy", "same-pos:toy"])
    measure_run(run, ["changed-pos:toy"])
    with closing(RunFile.read(run)) as file:
        assert file.measures() == ["changed-pos:toy", "changed-pos:toy/ADJ", "same-pos:toy"]
        assert file.measured("changed-pos:toy/ADJ") == {0: 1.0, 2: 1.0}
        assert file.measured("same-pos:toy") == {0: 0.0, 2: 0.0}
    page = write_html([run], tmp_path / "p.html").read_text()
    assert "Parts of speech of the changed words" in page
    assert "Accuracy when only good texts count: changed-pos" not in page
    export(run, tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["changed-pos:toy/ADJ"] for row in rows] == [1.0, None, 1.0, None]
    export(run, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet").to_pydict()
    assert table["same-pos:toy"] == [0.0, None, 0.0, None]


def test_names() -> None:
    assert parse_measure("similarity")[1] == "similarity:minilm"
    assert parse_measure("grammar")[1] == "grammar:harper"
    with pytest.raises(UnknownNameError, match="did you mean similarity"):
        parse_measure("similarty")
