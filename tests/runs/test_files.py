"""What is written appears whole or not at all, and is open to whom the user's umask lets read it."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import unfooled
from reviews import sentences
from tiny_index import tiny_store
from unfooled.data.dataset import Dataset
from unfooled.files import (
    follow_umask,
    move_files,
    remove_parts,
    scratch_folder,
    whole_file,
    write_json,
    write_table,
)
from unfooled.resources import perceptron
from unfooled.resources.store import Store
from unfooled.runs.attack import attack
from unfooled.runs.export import export
from unfooled.victims.fake import FakeVictim

PACKAGE = Path(unfooled.__file__).parent
GROUP_MAY_READ = 0o027  # neither what a temporary file has nor what most users have


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return tiny_store(tmp_path, monkeypatch)


@pytest.fixture
def odd_umask() -> Iterator[None]:
    before = os.umask(GROUP_MAY_READ)
    yield
    os.umask(before)


def wrong_modes(folder: Path) -> dict[str, str]:
    """Files and folders whose mode is not that of the umask."""
    found = {}
    for path in sorted(folder.rglob("*")):
        expected = (0o777 if path.is_dir() else 0o666) & ~GROUP_MAY_READ
        if (mode := stat.S_IMODE(path.stat().st_mode)) != expected:
            found[str(path.relative_to(folder))] = oct(mode)
    return found


def test_the_modes_that_a_check_calls_wrong(tmp_path: Path, odd_umask: None) -> None:
    (tmp_path / "good").write_text("")
    (tmp_path / "private").touch(mode=0o600)
    assert wrong_modes(tmp_path) == {"private": "0o600"}


@pytest.mark.parametrize("family", ["naive-bayes", "word-cnn"])
def test_a_trained_model_and_its_defence_follow_the_umask(
    family: str, tmp_path: Path, odd_umask: None
) -> None:
    pytest.importorskip("skops")
    from unfooled.defenses.harden import harden
    from unfooled.training.trainer import train

    rows = Dataset.from_pairs(sentences(40))
    model = tmp_path / "model"
    if family == "naive-bayes":
        train(family, rows, model)
    else:
        pytest.importorskip("accelerate")
        train(family, rows, model, options={"epochs": 1, "vectors": "none"})
        harden(str(model), rows, method="retune", out=tmp_path / "retuned", options={"epochs": 1})
        harden(str(model), method="five", out=tmp_path / "defence")
        assert (tmp_path / "defence" / "defense.json").is_file()
    assert wrong_modes(tmp_path) == {}
    assert (model / "training.json").is_file()


def test_a_run_its_exports_and_its_reports_follow_the_umask(tmp_path: Path, odd_umask: None) -> None:
    from unfooled.report.folder import write_report

    run = attack(FakeVictim(), sentences(6), "deepwordbug", out=tmp_path / "run")
    names = ["out.csv", "out.jsonl"]
    if importlib.util.find_spec("datasets"):
        names += ["out.parquet", "folder"]
    assert [export(run.path, tmp_path / name) for name in names] == [6] * len(names)
    write_report(run.path, tmp_path / "report")
    assert wrong_modes(tmp_path) == {}


def test_resources_follow_the_umask(store: Store, odd_umask: None) -> None:
    store.get("upper")
    assert wrong_modes(store.root) == {}
    assert len(list(store.root.rglob("*.txt"))) == 3


def test_converted_tagger_weights_follow_the_umask(tmp_path: Path, odd_umask: None) -> None:
    weights = perceptron.Weights(("NN",), {"word": 1}, np.zeros((2, 1), dtype=np.int32), {})
    perceptron._save(weights, tmp_path / "w.npz", "")
    assert wrong_modes(tmp_path) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, odd_umask: None) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"größe": 1})
    assert json.loads(path.read_text(encoding="utf-8")) == {"größe": 1}
    with pytest.raises(RuntimeError, match="halfway"), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError("halfway")
    assert json.loads(path.read_text(encoding="utf-8")) == {"größe": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_file_that_a_library_put_in_its_place_follows_the_umask(tmp_path: Path, odd_umask: None) -> None:
    with whole_file(tmp_path / ("long" * 60)) as part:
        part.unlink()
        part.touch(mode=0o600)
    assert wrong_modes(tmp_path) == {}


def test_the_folder_of_a_library_follows_the_umask(tmp_path: Path, odd_umask: None) -> None:
    with scratch_folder(tmp_path, "new") as scratch:
        (scratch / "inner").mkdir()
        for name in ("config.json", "inner/private", "weights"):
            (scratch / name).touch(mode=0o600)
        follow_umask(scratch)
        assert wrong_modes(tmp_path) == {}
        move_files(scratch, tmp_path, last=("config.json",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "inner", "weights"]


def test_what_a_kill_left_is_removed(tmp_path: Path) -> None:
    with whole_file(tmp_path / "model") as part:
        left = part.with_name(part.name.replace("model", "other"))
        left.write_text("half")
    (tmp_path / ".hidden").touch()
    remove_parts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "model"]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_are_put_in_place_in_one_module_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    private = used & {"os.replace", "tempfile.mkstemp", "tempfile.mkdtemp", "tempfile.NamedTemporaryFile"}
    assert not private or path == PACKAGE / "files.py"


def test_no_cell_of_a_table_is_run_by_a_spreadsheet(tmp_path: Path) -> None:
    words = ["=1+1", "+cmd", "-x", "@user", "\t=x", "\r=x", "\n=x", "＝1", "plain", "a=b"]
    write_table(tmp_path / "t.csv", ("word", "share", "rounded"), [(word, -0.5, "-0.25") for word in words])
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["word", "share", "rounded"]
    assert [word for word, _, _ in rows] == [*(f"'{word}" for word in words[:8]), "plain", "a=b"]
    assert {(share, rounded) for _, share, rounded in rows} == {("-0.5", "-0.25")}
