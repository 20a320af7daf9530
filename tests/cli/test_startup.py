"""What a small attack loads before it begins: counted in modules, not in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("skops")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from skops.io import dump

from unfooled.cli.app import COMMANDS
from unfooled.cli.command import Group
from unfooled.resources import store
from unfooled.runs.file import RunFile

ROWS = [
    ("a great film with a wonderful cast", "pos"),
    ("good fun and a clever , witty script", "pos"),
    ("a dull film with a terrible cast", "neg"),
    ("bad , boring and a lazy script", "neg"),
]
# Prints, as the last line, what was imported, how threads wait and after how many new objects rubbish is
# looked for.
WATCHED = """
import gc, json, os, sys
from unfooled.cli.app import main
try:
    main()
except SystemExit as stop:
    code = stop.code
print()
seen = {"code": code, "modules": sorted(sys.modules), "collected_after": gc.get_threshold()[0]}
print(json.dumps(seen | {"wait": os.environ.get("OMP_WAIT_POLICY")}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fast model and the rows that it was trained on."""
    made = tmp_path_factory.mktemp("small")
    pipeline = make_pipeline(TfidfVectorizer(), SGDClassifier(random_state=0))
    dump(pipeline.fit([text for text, _ in ROWS], [label for _, label in ROWS]), made / "model.skops")
    lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    (made / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return made


def watched(*arguments: object, **environment: str) -> dict[str, Any]:
    inherited = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=inherited | environment,
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


def attack(folder: Path, out: Path, *more: object) -> dict[str, Any]:
    seen = watched(
        *("attack", "--model", folder / "model.skops", "--data", folder / "rows.jsonl"),
        *("--out", out, "--json", *more),
    )
    assert seen["code"] == 0, seen
    return seen


def test_spelling_mistakes_against_a_fast_model_load_no_network(folder: Path, tmp_path: Path) -> None:
    seen = attack(folder, tmp_path / "run", "--attack", "deepwordbug")
    loaded = set(seen["modules"])
    assert "sklearn.linear_model" in loaded
    assert not loaded & {"torch", "transformers", "tokenizers", "sentence_transformers", "datasets", "skops"}


@pytest.mark.skipif(
    not all(map(store.has, ("minilm", "counter-fitted", "perceptron-tagger"))),
    reason="needs: unfooled resources get minilm counter-fitted perceptron-tagger",
)
def test_the_encoder_comes_without_the_libraries_around_it(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    seen = attack(folder, tmp_path / "run", "--attack", "textfooler")
    loaded = set(seen["modules"])
    assert {"torch", "tokenizers", "unfooled.resources.minilm"} <= loaded
    assert not loaded & {"transformers", "sentence_transformers", "datasets", "skops"}
    with closing(RunFile.read(tmp_path / "run")) as file:
        recorded = file.header["environment"]["versions"]
    assert recorded["torch"] == metadata.version("torch")


HEAVY = (
    "numpy",
    "ray",
    "torch",
    "sklearn",
    "transformers",
    "rich",
    "httpx",
    "optuna",
    "sqlite3",
    "starlette",
)
TYPED = [
    *((name,) for name, entry in COMMANDS.items() if not isinstance(entry, Group)),
    *(
        (name, inner)
        for name, entry in COMMANDS.items()
        if isinstance(entry, Group)
        for inner in entry.commands
    ),
]


@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
def test_help_loads_nothing_that_takes_time(typed: tuple[str, ...]) -> None:
    seen = watched(*typed, "--help")
    assert seen["code"] == 0
    assert sorted({name.partition(".")[0] for name in seen["modules"]} & set(HEAVY)) == []
    ours = [name for name in seen["modules"] if name.partition(".")[0] == "unfooled"]
    assert len(ours) <= 15, ours


def test_threads_that_wait_do_not_spin_unless_the_user_says_so() -> None:
    assert watched("--version")["wait"] == "PASSIVE"
    assert watched("--version", OMP_WAIT_POLICY="ACTIVE")["wait"] == "ACTIVE"


def test_rubbish_is_looked_for_rarely() -> None:
    assert watched("--version")["collected_after"] >= 100_000
