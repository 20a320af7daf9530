"""Samples made on one model, shown to another: from a run, from its export, from somebody else's file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import planted
from unfooled.checks.replay import Sample, read_samples, replay
from unfooled.core.victim import Probabilities, TextValue
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError, RunFileError
from unfooled.runs.attack import attack
from unfooled.runs.export import export
from unfooled.runs.file import RunFile
from unfooled.text import Edit
from unfooled.victims.fake import FakeVictim


class Counting(FakeVictim):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.texts: list[TextValue] = []

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.texts += texts
        return super().predict(texts)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    attack(FakeVictim(), planted.data(20), planted.recipe(tmp_path), out=tmp_path / "run")
    return tmp_path / "run"


def sample(key: int, before: str, after: str, label: str = "positive") -> Sample:
    return Sample(key, label, (("text", before),), 0, after)


def test_a_run_replayed_on_its_own_model_fools_it_again(run: Path, tmp_path: Path) -> None:
    made = [sample for sample in read_samples(run) if sample.fooled]
    assert 3 < len(made) < 20
    again = replay(run, FakeVictim(), out=tmp_path / "again").summary()
    assert again.counts["success"] == again.total == len(made)
    assert again.accuracy_before.value == 1.0
    assert again.words_changed.value > 1
    robust = replay(run, planted.Knowing(), out=tmp_path / "robust").summary()
    assert robust.counts["failure"] == len(made)
    assert robust.accuracy_under_attack.value == 1.0


def test_an_export_says_the_same_as_its_run(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "all.jsonl")
    assert read_samples(tmp_path / "all.jsonl") == read_samples(run)
    packed = tmp_path / "all.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "all.jsonl").read_bytes()))
    assert read_samples(packed) == read_samples(run)


def test_pairs_keep_their_fields(tmp_path: Path) -> None:
    rows = [({"premise": "a film", "hypothesis": text}, label) for text, label in planted.rows(8)]
    data = Dataset.from_pairs(rows, labels=planted.LABELS)
    attack(FakeVictim(), data, planted.recipe(tmp_path), out=tmp_path / "run")
    export(tmp_path / "run", tmp_path / "pairs.jsonl")
    found = read_samples(tmp_path / "pairs.jsonl")
    assert found == read_samples(tmp_path / "run")
    assert found[0].fields[0] == ("premise", "a film")
    assert found[0].value(edited=True) == ("a film", found[0].perturbed)
    replayed = replay(tmp_path / "pairs.jsonl", FakeVictim(), out=tmp_path / "again").summary()
    assert replayed.counts["success"] == sum(sample.fooled for sample in found) > 0


def test_somebody_elses_file_needs_three_columns(tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    lines = [
        {"text": "a superb film", "perturbed_text": "a superbish film", "label_name": "positive"},
        {"text": "an awful film", "perturbed_text": "an film", "label": "negative"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    found = read_samples(path)
    assert [(sample.key, sample.label, sample.fooled) for sample in found] == [
        (0, "positive", True),
        (1, "negative", True),
    ]
    results = list(replay(path, FakeVictim(), out=tmp_path / "run").results())
    assert [result.outcome for result in results] == ["success", "failure"]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("{", "line 1: this is no sample"),
        ('{"text": "a"}', "there is no 'perturbed_text'"),
        ("[1]", "line 1"),
        ('{"text": "a", "perturbed_text": "a", "label": "positive"}', "no sample that fooled"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: str, cause: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=cause):
        replay(path, FakeVictim(), out=tmp_path / "run")


def test_missing_sources_and_strange_labels_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.jsonl"):
        read_samples(tmp_path / "no.jsonl")
    with pytest.raises(RunFileError, match="there is no run"):
        read_samples(tmp_path / "nothing")
    with pytest.raises(DataError, match="do not match"):
        replay([sample(0, "a", "b", label="sport")], FakeVictim(), out=tmp_path / "run")
    run = replay(
        [sample(0, "superb", "film", label="sport")],
        FakeVictim(),
        out=tmp_path / "run",
        label_map={"sport": "positive"},
    )
    assert run.summary().counts["success"] == 1


def test_outcomes(tmp_path: Path) -> None:
    samples = [
        sample(0, "superb film", "awful film"),
        sample(1, "superb film", "great film"),
        sample(2, "awful film", "superb film"),
        sample(3, "great film", "great film"),
        sample(4, "great film", "a poisoned film"),
    ]
    results = list(replay(samples, FakeVictim(poison="poison"), out=tmp_path / "run").results())
    assert [result.outcome for result in results] == ["success", "failure", "skipped", "skipped", "error"]
    assert "chokes" in results[4].note
    assert results[3].note == "there is no sample of this row"
    assert results[3].probs == results[3].perturbed_probs
    assert [result.queries for result in results[:4]] == [2, 2, 2, 1]


def test_the_same_call_asks_nothing_and_a_changed_text_is_scored_anew(tmp_path: Path) -> None:
    victim = Counting()
    first = [sample(0, "superb film", "awful film"), sample(1, "great film", "film")]
    replay(first, victim, out=tmp_path / "run")
    assert len(victim.texts) == 4
    replay(first, victim, out=tmp_path / "run")
    assert len(victim.texts) == 4
    edits = (Edit("replace", 0, "great", "fine", 0),)
    changed = [
        first[0],
        Sample(1, "positive", first[1].fields, 0, "fine film", edits),
        sample(2, "fun", "film"),
    ]
    run = replay(changed, victim, out=tmp_path / "run")
    assert victim.texts[4:] == ["great film", "fine film", "fun", "film"]
    assert [result.perturbed for result in run.results()] == ["awful film", "fine film", "film"]
    with pytest.raises(RunFileError, match="the model changed"):
        replay(changed, planted.Knowing(), out=tmp_path / "run")
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert file.header["environment"]["attack"] == "replay of samples"
