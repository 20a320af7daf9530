"""Hostile texts as a user has them, rows of a file: attacked, killed, continued, exported, reported."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser import PATIENCE, open_browser
from hostile import some
from hostile_texts import TEXTS
from stored_runs import rows_written
from unfooled.core.result import Result
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CASES = list(TEXTS)
UNUSABLE = {"empty", "one blank", "blanks only", "line ends only"}  # rows without a text


def unfooled(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "unfooled", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
    )


def done(*arguments: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    process = unfooled(*arguments)
    output, errors = process.communicate(timeout=300)
    assert process.returncode in codes, errors
    assert "Traceback" not in errors
    return output


def written(path: Path) -> Path:
    """One row per text, with the class that the model decides for; half a character as JSON escapes it."""
    labels = FakeVictim().labels
    rows = [
        {"text": text, "label": labels[int(row.argmax())]}
        for text, row in zip(TEXTS.values(), FakeVictim().predict(list(TEXTS.values())), strict=True)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def attack(folder: Path, out: str, *more: str) -> tuple[str | Path, ...]:
    model = ("attack", "--model", "fake", "--data", folder / "rows.jsonl", "--attack", "deepwordbug")
    return (*model, "--budget", "100", "--out", folder / out, *more)


def results_of(run: Path) -> list[Result]:
    with RunFile.read(run) as file:
        return sorted(file.results(), key=lambda result: result.key)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all rows, never interrupted. Some rows are no texts: the exit code says so."""
    folder = tmp_path_factory.mktemp("rows")
    written(folder / "rows.jsonl")
    done(*attack(folder, "run"), codes=(3,))
    return folder


@pytest.mark.hostile("rows of a data file")
@pytest.mark.parametrize("name", some(CASES, few=12))
def test_a_hostile_row(name: str, whole: Path) -> None:
    """What the data file says is what stands in the run, and in every table made of it."""
    result = results_of(whole / "run")[CASES.index(name)]
    unreadable = name in UNUSABLE or "surrogate" in name
    if unreadable:
        assert result.outcome == "error"
        assert result.note
    else:
        assert result.original == TEXTS[name]
    for suffix in ("jsonl", "csv"):
        table = whole / f"table.{suffix}"
        if not table.exists():
            done("export", whole / "run", "-o", table)
        row = exported(table)[CASES.index(name)]
        assert row["outcome"] == result.outcome
        if not unreadable and suffix == "jsonl":
            assert result.original in row.values()
            assert result.perturbed in row.values()


def exported(table: Path) -> list[dict[str, Any]]:
    with table.open(encoding="utf-8", newline="") as lines:
        if table.suffix == ".jsonl":
            return [json.loads(line) for line in lines.read().split("\n") if line]
        csv.field_size_limit(10_000_000)
        return list(csv.DictReader(lines))


@pytest.mark.hostile("a run over hostile rows, killed")
@pytest.mark.parametrize("after", some([1, 10, 30, 60], few=1))
def test_killed_in_the_middle_and_continued(after: int, whole: Path, tmp_path: Path) -> None:
    written(tmp_path / "rows.jsonl")
    process = unfooled(*attack(tmp_path, "run", "--window", "2", "--victim-option", "delay=0.01"))
    until = time.monotonic() + 120
    while rows_written(tmp_path / "run") < after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert after <= rows_written(tmp_path / "run") < len(TEXTS)
    done(*attack(tmp_path, "run", "--victim-option", "delay=0.0"), codes=(3,))
    assert results_of(tmp_path / "run") == results_of(whole / "run")


def test_the_summary_has_no_escapes(whole: Path) -> None:
    shown = done("summary", whole / "run")
    assert "deepwordbug" in shown
    assert not {char for char in shown if char != "\n" and not char.isprintable()} - {" "}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


def test_the_page_of_a_run_over_hostile_rows(browser: Browser, whole: Path) -> None:
    done("report", whole / "run", "-o", whole / "page.html")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    address = (whole / "page.html").as_uri()
    page.on("request", lambda sent: trouble.append(sent.url) if sent.url != address else None)
    page.goto(address)
    text = page.inner_text("body")
    assert "deepwordbug" in text
    assert page.locator("img[src=x], main form").count() == 0
    assert page.evaluate("document.documentElement.lastElementChild.tagName") == "BODY"
    assert trouble == []
    page.close()
