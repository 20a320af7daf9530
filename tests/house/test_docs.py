"""What the documentation says can be typed, can be typed; where it points, there is something."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main

import unfooled
from doc_pages import DOCS, GENERATED, PAGES, ROOT, Block, blocks, typed
from unfooled.cli.app import app
from unfooled.plugins import registry

README = ROOT / "README.md"
PYTHON = [block for page in PAGES for block in blocks(page, "python")]
COMMANDS = [
    line
    for page in PAGES
    for block in blocks(page, "", "sh", "text")
    for line in typed(block)
    if line.startswith("unfooled ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    _, name, *rest = shlex.split(line, comments=True)
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, name)
    while isinstance(command, typer.core.TyperGroup):
        found, command, rest = command.resolve_command(typer.Context(command), rest)
        name = found or name
    assert command is not None, f"no command {name}"
    with command.make_context(name, list(rest), resilient_parsing=False) as context:
        assert context.params


def test_there_are_commands_and_code_to_check() -> None:
    assert len(COMMANDS) >= 100
    assert len(PYTHON) >= 12


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_names_what_exists(block: Block) -> None:
    """Imports lead somewhere, and `unfooled.x` is public; tutorials and examples are run elsewhere."""
    tree = ast.parse(block.code)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unfooled"):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "unfooled":
            assert node.attr in unfooled.__all__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = [(page.parent / target).resolve() for target in re.findall(r"\]\((?!https?:)([^)#]+)", text)]
    assert [target for target in targets if not target.exists() and target not in GENERATED] == []


def test_the_readme_is_short_and_its_findings_are_those_of_the_pages() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.encode()) <= 10_000
    table = text.partition("<!-- findings: begin -->")[2].partition("<!-- findings: end -->")[0]
    rows = re.findall(r"^\| \[([\w-]+)\]\(\S+\): (.*?) \| (.*?) \| (.*?) \|$", table, re.M)
    assert len(rows) == 5
    for paper, sentence, measured, judgement in rows:
        page = json.loads((ROOT / f"reproduction/{paper}.json").read_text(encoding="utf-8"))
        (claim,) = [claim for claim in page["claims"] if claim["claim"] == sentence]
        assert (claim["short"], claim["judgement"]) == (measured, judgement)
    told = (ROOT / "reproduction/README.md").read_text(encoding="utf-8")
    decided, total = re.findall(r"(\d+) of (\d+) claims are decided", told)[0]
    assert f"{total} claims of five papers" in text
    assert f"{decided} are decided" in text


def test_every_command_is_in_the_table_of_the_start_page() -> None:
    table = (DOCS / "index.md").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(app)
    missing = [name for name in group.commands if not re.search(rf"^\| `unfooled {name}\b", table, re.M)]
    assert missing == []


def test_every_attack_is_on_the_page_of_attacks() -> None:
    page = (DOCS / "reference" / "attacks.md").read_text(encoding="utf-8")
    table = " ".join(line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `"))
    families = re.findall(r"`(\w+)-[\w-]+`(?:, `-[\w-]+`)+", table)  # `smuggle-tags`, `-emoji`
    named = {name.partition("@")[0] for name in re.findall(r"`([\w@-]+)`", table)}
    named |= {f"{family}{name}" for family in families for name in named if name.startswith("-")}
    assert set(registry.names("attack")) - named == {"bae", "bad-characters"}  # other names of two of them


def test_the_start_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "index.md"
    (reviews,) = blocks(page, "csv")
    Path(reviews.title).write_text(reviews.code, encoding="utf-8")
    shown: list[Any] = []
    (code,) = blocks(page, "python")
    exec(compile(code.code, str(page), "exec"), {"print": shown.append})
    assert shown[0].n == 6
    assert shown[0].value > 0


def test_the_protocol_of_the_page_about_people_can_be_used(tmp_path: Path) -> None:
    from unfooled.people.study.protocols import load_protocol

    (block,) = blocks(DOCS / "how-to" / "people.md", "toml")
    (tmp_path / "mine.toml").write_text(block.code, encoding="utf-8")
    protocol = load_protocol(str(tmp_path / "mine.toml"))
    assert [question.kind for question in protocol.questions] == ["label", "scale"]


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
    save, use = blocks(README, "python")
    shown: list[Any] = []
    for block in (save, use):
        exec(compile(block.code, "README.md", "exec"), {"pipeline": pipeline, "print": shown.append})
    assert shown[0].n == 8
    assert (tmp_path / "model.skops").is_file()
