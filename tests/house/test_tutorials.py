"""The tutorials, typed from top to bottom, and the complete files of the how-to pages, run as they stand.

What is typed runs inside this process, where the model libraries are loaded already; servers do
not.
"""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from doc_pages import COMPLETE_FILES, TUTORIALS, Block, blocks, typed
from unfooled.cli.app import main
from web_server import free_port, wait_until_answering

NEEDS = {
    "hugging-face": ("torch", "accelerate"),
    "moderation": ("sklearn", "skops"),
    "endpoint": ("httpx",),
    "guard": ("sklearn", "skops"),
}
PORT = "8000"  # of the endpoint's page; a test takes one that is free


def test_there_is_something_to_type() -> None:
    assert set(NEEDS) == {page.stem for page in TUTORIALS}
    assert {path.stem for path in COMPLETE_FILES} == {"attack", "victim", "defence"}


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in NEEDS[page.stem]:
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    port, done = free_port(), 0
    with in_the_background(port) as start:
        for block in blocks(page, "python", "csv", "sh"):
            if block.title:
                Path(block.title).write_text(block.code, encoding="utf-8")
            elif block.language == "python":
                exec(compile(block.code, str(page), "exec"), {"__name__": "__main__"})
            else:
                for line in lines_of(block):
                    program, *rest = shlex.split(line.replace(PORT, str(port)).removesuffix("&"))
                    if line.endswith("&"):
                        start([sys.executable, *rest])
                    elif program == "unfooled":
                        typed_unfooled(rest, monkeypatch)
                    else:
                        monkeypatch.setattr(sys, "argv", rest)
                        runpy.run_path(rest[0], run_name="__main__")
                    done += 1
    assert done >= 4
    assert Path("report.html").is_file()


EXPECTED = {
    "attack": "success 'a good film' → 'a g00d film'",
    "victim": "success 'you idiot' → ",
    "defence": "not decided at n = 20",
}


@pytest.mark.parametrize("path", COMPLETE_FILES, ids=lambda path: path.stem)
def test_a_complete_file_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert EXPECTED[path.stem] in done.stdout


@contextmanager
def in_the_background(port: int) -> Iterator[Callable[[list[str]], None]]:
    """Starts servers, and ends them."""
    started: list[subprocess.Popen[str]] = []

    def start(arguments: list[str]) -> None:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        wait_until_answering(process, port)

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=60)


def lines_of(block: Block) -> list[str]:
    return [line for line in typed(block) if not line.startswith("pip install")]


def typed_unfooled(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["unfooled", *arguments])
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    assert code in (0, None), arguments
