"""One file and one line: something new of every kind is registered, found by its name and used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import unfooled
from doc_pages import DOCS, blocks
from unfooled.checks.illusions.checks import check_names, help_table
from unfooled.metrics import measures
from unfooled.runs.file import RunFile
from unfooled.training.families import all_families, find_family

FILES = {block.title: block.code for block in blocks(DOCS / "how-to" / "extend.md", "python")}
ROWS = [("a Superb and moving film", "positive"), ("a dull and boring plot", "negative")] * 10

VICTIM = '''
import unfooled

def predict(texts):
    return [[0.9, 0.1] if "dull" in text else [0.2, 0.8] for text in texts]

def load(rest, *, labels=None, trust_pickle=False):
    """`anything`"""
    return unfooled.FunctionVictim(predict, labels=("negative", "positive"), name="keyword")
'''

ATTACK = '''
"""Deletes words from the end."""
from dataclasses import dataclass

import unfooled
from unfooled.attacks.parts.goals import Untargeted

@dataclass(frozen=True, kw_only=True)
class FromTheEnd:
    most: int = 2

    def run(self, a, start):
        now = start
        for _ in range(min(self.most, len(start.text.words) - 1)):
            (now,) = yield from a.score([now.text.delete(len(now.text.words) - 1)])
            if now.success:
                break
        return now

RECIPES = {
    "first": unfooled.Recipe(
        name="from-the-end", version="first", summary="deletes the last words", paper="our own",
        goal=Untargeted(), search=FromTheEnd(),
    )
}
'''


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Write the one file, type the one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    added: list[tuple[str, str, str]] = []

    def register(kind: str, name: str, module: str, attribute: str, code: str) -> None:
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        unfooled.registry.register(kind, name, f"{module}:{attribute}")
        added.append((kind, name, module))

    yield register
    for kind, name, module in added:
        unfooled.registry.unregister(kind, name)
        sys.modules.pop(module, None)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command line here; returns what it wrote."""
    from unfooled.cli.app import main

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["unfooled", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        written = capsys.readouterr()
        assert not left.value.code, written
        return written.out

    return run


def test_a_wrapping_defence(add: Callable[..., None], typed: Callable[..., str]) -> None:
    add("defense", "shorter", "shorter", "METHOD", FILES["shorter.py"])
    assert "shorter" in typed("harden", "--list")
    hardened = unfooled.harden("fake", method="shorter", out="wrapped", options={"copies": "6"})
    assert hardened.settings["copies"] == 6
    victim = unfooled.load_victim("wrapped")
    (plain,), (voted,) = (v.predict(["a superb film"]) for v in (unfooled.load_victim("fake"), victim))
    assert voted.sum() == pytest.approx(1.0)
    assert abs(voted - plain).max() > 0.01
    run = unfooled.attack("wrapped", ROWS[:2], "deepwordbug", out="run")
    assert {result.outcome for result in run.results()} <= {"success", "failure"}


def test_a_training_defence(add: Callable[..., None], typed: Callable[..., str]) -> None:
    pytest.importorskip("accelerate")
    add("defense", "lowered", "lowered", "METHOD", FILES["lowered.py"])
    assert "lowered" in typed("harden", "--list")
    sizes = {"epochs": 1, "hidden": 8, "embedding": 8, "vectors": "none", "min_count": 1}
    unfooled.train("lstm", ROWS, "base", valid=0.0, options=sizes)
    hardened = unfooled.harden("base", ROWS, method="lowered", out="new", valid=0.0, options={"epochs": 1})
    assert hardened.trained is not None
    steps = json.loads(Path("base/training.json").read_text())["metrics"]["steps"]
    assert hardened.trained.metrics["steps"] == 2 * steps  # twice the rows
    assert unfooled.load_victim("new").labels == ("negative", "positive")


def test_a_measure(add: Callable[..., None], typed: Callable[..., str]) -> None:
    add("measure", "capitals", "capitals", "MEASURE", FILES["capitals.py"])
    assert "capitals: capital letters added (low is better)" in measures.help_table()
    assert typed("measure", "--list") == measures.help_table() + "\n"
    listed: list[dict[str, str]] = json.loads(typed("measure", "--list", "--json"))
    assert {"name": "capitals", "title": "capital letters added", "better": "low"}.items() <= next(
        measure for measure in listed if measure["name"] == "capitals"
    ).items()
    unfooled.attack("fake", ROWS[:2], "deepwordbug", out="run")
    assert "capital letters added" in typed("measure", "run", "--with", "capitals")
    with closing(RunFile.read("run")) as file:
        found = file.measured("capitals")
        fallen = list(file.results(outcome="success"))
    assert fallen
    assert found == {
        r.key: float(sum(map(str.isupper, r.perturbed)) - sum(map(str.isupper, r.original))) for r in fallen
    }


def test_a_victim(add: Callable[..., None]) -> None:
    add("victim", "keyword", "keyword_victim", "load", VICTIM)
    run = unfooled.attack("keyword:any", ROWS[1:2], "deepwordbug", out="run")
    (result,) = run.results()
    assert result.outcome == "success"
    assert "dull" not in result.perturbed


def test_an_attack(add: Callable[..., None], typed: Callable[..., str]) -> None:
    add("attack", "from-the-end", "from_the_end", "RECIPES", ATTACK)
    assert "from-the-end" in typed("attacks")
    assert "most" in typed("show", "from-the-end")
    run = unfooled.attack("fake", [("a film that is superb", "positive")], "from-the-end", out="run")
    (result,) = run.results()
    assert (result.outcome, result.perturbed) == ("success", "a film that is")


def test_a_model_family(add: Callable[..., None], typed: Callable[..., str]) -> None:
    pytest.importorskip("sklearn")
    add("family", "ridge", "ridge", "FAMILY", FILES["ridge.py"])
    assert find_family("ridge") in all_families()
    listed: list[dict[str, Any]] = json.loads(typed("train", "--list", "--json"))
    assert {"name": "ridge", "defaults": {"shrink": 1.0, "seed": 0}}.items() <= next(
        family for family in listed if family["name"] == "ridge"
    ).items()
    assert "how strongly weights are kept small" in " ".join(typed("train", "--list").split())
    trained = unfooled.train("ridge", ROWS, "ridge-model", valid=0.2, options={"shrink": "0.5"})
    assert trained.metrics["valid"]["accuracy"] == 1.0
    assert unfooled.load_victim("ridge-model").predict(["dull"]).argmax() == 0
    with pytest.raises(unfooled.UserError, match="out of range"):
        unfooled.train("ridge", ROWS, "other", options={"shrink": 5000})


def test_a_sweep_draws_from_the_ranges_of_a_new_family(add: Callable[..., None]) -> None:
    pytest.importorskip("optuna")
    add("family", "ridge", "ridge", "FAMILY", FILES["ridge.py"])
    best = unfooled.sweep("ridge", ROWS, "best", trials=2, valid=0.2)
    record = json.loads((best.path / "training.json").read_text())
    assert all(0.1 <= trial["options"]["shrink"] <= 10 for trial in record["trials"])


def test_an_illusion_check(add: Callable[..., None], typed: Callable[..., str]) -> None:
    add("check", "shouting", "shouting", "CHECK", FILES["shouting.py"])
    attacks = ("again", "temperature", "averages", "gradients", "transfer", "guided")
    assert check_names() == (*attacks, "abstention", "state", "memory", "fresh-rows", "shouting")
    assert "shouting: survivors in capital letters" in help_table()
    assert typed("evaluate", "--list") == help_table() + "\n"
    listed: list[dict[str, str]] = json.loads(typed("evaluate", "--list", "--json"))
    assert tuple(check["name"] for check in listed) == check_names()
    models = {"base": "fake", "hot": "overconfident:base"}
    evaluation = unfooled.evaluate(models, ROWS[:4], "deepwordbug", out="e", checks=["shouting"])
    for model in evaluation.models:
        assert [check.name for check in model.checks][-1] == "shouting"
    with pytest.raises(unfooled.UserError, match="did you mean shouting"):
        unfooled.evaluate(models, ROWS[:4], "deepwordbug", out="f", checks=["shoting"])


def test_the_registry_stays_the_registry_whatever_was_imported() -> None:
    code = (
        "import unfooled; unfooled.load_victim('fake'); import unfooled.plugins, unfooled.cli.app\n"
        "unfooled.registry.register('measure', 'x', 'm:x'); print(unfooled.registry.names('measure'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "'x'" in done.stdout


def test_a_folder_called_like_a_public_name_does_not_hide_it() -> None:
    code = "import unfooled.report.html; import unfooled; print(unfooled.report.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "report"), done.stderr


def composed() -> unfooled.Run:
    """What the page composes of parts and runs."""
    Path("reviews.csv").write_text("text,label\na superb film,positive\na dull plot,negative\n")
    names: dict[str, Any] = {}
    exec(compile(FILES["composed.py"], "composed.py", "exec"), names)
    run: unfooled.Run = names["run"]
    return run


def test_an_attack_of_parts_takes_ten_lines_and_one_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in FILES["composed.py"].splitlines() if line]
    assert len(lines) <= 10
    assert [line for line in lines if line.startswith(("import", "from"))] == ["import unfooled"]
    results = list(composed().results())
    assert [result.outcome for result in results] == ["success", "failure"]


def test_a_run_in_memory_is_that_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = unfooled.attack("fake", ROWS, "deepwordbug")
    assert list(tmp_path.iterdir()) == []
    kept = unfooled.attack("fake", ROWS, "deepwordbug", out="kept")
    assert list(held.results()) == list(kept.results())
    assert held.summary() == kept.summary()
    saved = held.save("saved")
    with closing(RunFile.read("saved")) as ours, closing(RunFile.read("kept")) as theirs:
        assert ours.content_digest() == theirs.content_digest()
    assert unfooled.measure(saved, "edit-distance")["edit-distance"]
    assert unfooled.attack("fake", ROWS, "deepwordbug", out="saved").summary() == held.summary()


def test_a_run_shows_itself_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = composed()
    page = run._repr_html_()
    assert page == run.summary()._repr_html_()
    assert "<td>success rate of the attack</td><td>50.0%</td>" in page
