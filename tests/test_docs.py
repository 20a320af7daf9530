"""What the documentation says can be typed, can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main

from unfooled.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands() -> list[str]:
    lines = [line.strip() for page in PAGES for code in blocks(page, "") for line in code.splitlines()]
    return [
        line.removeprefix("$ ").partition("  #")[0] for line in lines if re.match(r"(\$ )?unfooled ", line)
    ]


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line: str) -> None:
    _, name, *rest = shlex.split(line, comments=True)
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, name)
    while isinstance(command, typer.core.TyperGroup):
        name, *rest = rest
        command = command.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None, f"no command {name}"
    with command.make_context(name, list(rest), resilient_parsing=False) as context:
        assert context.params


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_python_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from reviews import sentences, write_csv
    from unfooled.resources import store

    for name in ("perceptron-tagger", "minilm", "counter-fitted"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    rows = sentences(60)
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    pipeline.fit([text for text, _ in rows], [label for _, label in rows])
    write_csv(tmp_path / "mine.csv", rows[:8])
    monkeypatch.chdir(tmp_path)
    save, use = blocks(ROOT / "README.md", "python")
    shown: list[Any] = []
    for code in (save, use):
        exec(compile(code, "README.md", "exec"), {"pipeline": pipeline, "print": shown.append})
    assert shown[0].n == 8
    assert (tmp_path / "model.skops").is_file()
