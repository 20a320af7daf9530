"""`attack(backend=...)`: settled before a run, part of what it is, refused where it decides otherwise."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import sentences
from tiny_models import tiny
from unfooled.core.result import Example
from unfooled.data.dataset import Dataset
from unfooled.errors import RunFileError, UserError, VictimError
from unfooled.runs import backend as backends
from unfooled.runs.attack import Observer, Run, attack
from unfooled.runs.backend import Agreement, edited_copies, settle_backend
from unfooled.victims.loading import load_victim
from unfooled.victims.torch import compiled as compiling
from unfooled.victims.torch.compiled import CompiledVictim, compiled

pytest.importorskip("torch")
pytest.importorskip("onnxruntime", reason="needs the extra unfooled[onnx]")
pytest.importorskip("onnxscript", reason="needs the extra unfooled[onnx]")

ATTACK = "deepwordbug"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    victim = tiny("bert", positions=60, classes=2)
    victim.model.save_pretrained(path)
    victim.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiling._export(load_victim(str(folder)), tmp_path_factory.mktemp("onnx"))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _exported_once(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export takes seconds, and all tests have one model."""

    def copied(_original: object, to: Path) -> Path:
        return Path(shutil.copy(exported, to / "model.onnx"))

    monkeypatch.setattr(compiling, "_export", copied)


def rows(folder: Path, n: int = 12) -> list[tuple[str, str]]:
    """Labelled by the model itself, so that its preflight passes."""
    victim = load_victim(str(folder))
    texts = [text for text, _ in sentences(n)]
    return [
        (text, victim.labels[i]) for text, i in zip(texts, victim.predict(texts).argmax(axis=1), strict=True)
    ]


def header(run: Run) -> dict[str, Any]:
    with run._open() as file:
        return dict(file.header)


class Notes(Observer):
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


def test_a_run_keeps_its_backend_and_how_often_it_agreed(folder: Path, tmp_path: Path) -> None:
    data, notes = rows(folder), Notes()
    run = attack(str(folder), data, ATTACK, out=tmp_path / "run", backend="onnx", observer=notes)
    plain = attack(str(folder), data, ATTACK)
    assert header(run)["identity"]["backend"] == "onnx"
    facts = header(run)["environment"]["backend"]
    assert facts["name"] == "onnx"
    assert facts["same"] == facts["asked"] > 12  # edited copies as well
    assert any("agrees with torch on" in note for note in notes.told)
    assert "backend" not in header(plain)["identity"]
    assert [result.outcome for result in run.results()] == [result.outcome for result in plain.results()]
    with pytest.raises(RunFileError, match="backend"):
        attack(str(folder), data, ATTACK, out=tmp_path / "run")


def test_a_copy_that_decides_otherwise_is_refused_with_the_figure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy: Any = load_victim(str(folder), backend="onnx")
    compute = copy._compute

    def turned(inputs: Any) -> Any:
        logits = np.array(compute(inputs))
        turn = inputs["input_ids"].sum(axis=1) % 50 == 0
        logits[turn] = logits[turn][:, ::-1]
        return logits

    copy._compute = turned
    with pytest.raises(VictimError, match=r"agrees with .* on [\d,]+ of [\d,]+ decisions \(9\d\.\d+ %\)"):
        attack(copy, rows(folder, 60), ATTACK)


def test_workers_load_the_backend_that_was_chosen(folder: Path) -> None:
    settled = settle_backend(
        "onnx", load_victim(str(folder)), _examples(folder), seed=0, before=None, tell=print
    )
    assert settled.victim.options["backend"] == "onnx"
    again = load_victim(settled.victim.spec, **settled.victim.options)
    assert again.fingerprint() == settled.victim.fingerprint()


def _examples(folder: Path) -> list[Example]:
    victim = load_victim(str(folder))
    return list(Dataset.from_pairs(rows(folder), name="rows").aligned(victim.labels))


@pytest.mark.parametrize(
    ("seconds", "winner"),
    [
        ({"torch": 1.0, "onnx": 0.5}, "onnx"),
        ({"torch": 1.0, "onnx": 0.95}, "torch"),  # a tie
        ({"torch": 1.0, "onnx": 2.0}, "torch"),
    ],
)
def test_auto_takes_the_winner_of_a_race_and_torch_after_a_tie(
    folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], winner: str
) -> None:
    monkeypatch.setattr("unfooled.victims.torch.compiled.available", lambda: ["onnx"])
    monkeypatch.setattr(backends, "race", lambda victims, texts: seconds)
    settled = settle_backend(
        "auto", load_victim(str(folder)), _examples(folder), seed=0, before=None, tell=print
    )
    assert settled.facts["backend"]["name"] == winner
    assert set(settled.facts["backend"]["race"]) == {"torch", "onnx"}
    assert settled.identity == ({} if winner == "torch" else {"backend": winner})


def test_auto_passes_over_what_is_fast_and_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unfooled.victims.torch.compiled.available", lambda: ["onnx", "onnx-8bit"])
    monkeypatch.setattr(backends, "race", lambda *_: {"torch": 1.0, "onnx": 0.5, "onnx-8bit": 0.1})
    monkeypatch.setattr(
        backends, "agreement", lambda original, copy, texts: Agreement(99 + (copy.backend == "onnx"), 100)
    )
    told: list[str] = []
    settled = settle_backend(
        "auto", load_victim(str(folder)), _examples(folder), seed=0, before=None, tell=told.append
    )
    assert settled.facts["backend"]["name"] == "onnx"
    assert settled.facts["backend"]["refused"] == {"onnx-8bit": "99 of 100 decisions (99 %)"}


def test_a_run_that_goes_on_does_not_race_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = rows(folder)
    attack(str(folder), data, ATTACK, out=tmp_path, backend="onnx", limit=4)
    monkeypatch.setattr(backends, "race", lambda *_: pytest.fail("raced"))
    run = attack(str(folder), data, ATTACK, out=tmp_path, backend="auto", limit=8)
    assert header(run)["identity"]["backend"] == "onnx"
    assert run.summary().total == 8


def test_a_race_is_run_in_turns_on_the_same_texts(folder: Path) -> None:
    victim: Any = load_victim(str(folder))
    found = backends.race({"torch": victim, **compiled(victim, "onnx")}, ["a film", "a good film"])
    assert set(found) == {"torch", "onnx"}
    assert all(0 < seconds < float("inf") for seconds in found.values())


def test_only_what_a_copy_gives_is_attacked(folder: Path) -> None:
    with pytest.raises(UserError, match="gradients"):
        attack(str(folder), rows(folder), "hotflip", backend="onnx")


def test_other_victims_have_no_backend() -> None:
    with pytest.raises(UserError, match="for Hugging Face classifiers"):
        attack("fake", sentences(4), ATTACK, backend="onnx")


def test_a_copy_below_a_threshold_is_tried_as_well(folder: Path) -> None:
    data = rows(folder)
    label = data[0][1]
    victim = load_victim(str(folder), backend="onnx", thresholds={label: 0.5})
    assert not isinstance(victim, CompiledVictim)
    run = attack(victim, data, ATTACK, limit=2)
    assert header(run)["identity"]["backend"] == "onnx"


def test_edited_copies_leave_words_out_and_exchange_letters() -> None:
    example = Example(key=3, content=(("text", "a dull film"),), label=0, edit="text")
    found = list(edited_copies(example, 0))
    assert found == list(edited_copies(example, 0))
    assert found[0] == "a dull film"
    assert {"dull film", "a film", "a dull"} <= set(found)
    assert len(found) == 1 + 3 + 2
