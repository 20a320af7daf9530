"""Retraining as a cure: it learns from some rows, is measured on others, and is attacked anew."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import unfooled
from command_line import unfooled as typed
from unfooled.checks.cures import RETRAINED
from unfooled.checks.guard import by_class, guard, read_guard
from unfooled.checks.mending import mend
from unfooled.checks.retraining import MARK, Lesson, copy_model, learning, retrained
from unfooled.checks.suites import Suite, SuiteAttack
from unfooled.checks.worst_case import read_state
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.errors import UserError, VictimError
from unfooled.report.guard import cure_rows
from unfooled.runs.row_choice import take
from unfooled.victims.filtering import Filter
from unfooled.victims.function import FunctionVictim
from unfooled.victims.loading import DEFENSE_FILE

STARTS, PLACES = ("you are", "they are", "what a", "so very"), ("rome", "oslo", "bonn", "lima")
WORDS = {"vile": "abuse", "scummy": "abuse", "kind": "other", "fine": "other", "good": "other"}
ROWS = [
    (f"{start} {word} in {place}", label)
    for word, label in WORDS.items()
    for start in STARTS
    for place in PLACES
]
TRAIN, TEST = ROWS[::2], ROWS[1::2]
LEET = Suite(name="toy", version="1", summary="", attacks=(SuiteAttack("leetspeak@plain"),))


def pipeline(folder: Path) -> Path:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100))
    model.fit([text for text, _ in TRAIN], [label for _, label in TRAIN])
    skops.io.dump(model, folder / "filter.skops")
    return folder / "filter.skops"


def the_filter(folder: Path, **options: object) -> Filter:
    found = unfooled.load_victim(pipeline(folder), flag=["abuse"], **options)  # type: ignore[arg-type]
    assert isinstance(found, Filter)
    return found


def test_half_of_the_rows_teach_and_the_others_measure(tmp_path: Path) -> None:
    victim = the_filter(tmp_path, thresholds={"abuse": 0.55})
    data = relabelled(Dataset.from_pairs(TEST), victim)
    train = Dataset.from_pairs([*TRAIN, *TEST[:3]])  # three rows that are measured, or may be
    result = guard(victim, data, out=tmp_path / "run", suite=LEET, train=train)
    bad = [example.key for example in data if example.label == 1]
    assert set(result.learned) == learning(bad) & set(bad)
    assert 0 < len(result.learned) < len(bad)
    cures = {cure.name: cure for cure in result.cures}
    again = cures[RETRAINED]
    measured = sum(key not in result.learned for key in result.fell_at)
    assert again.closes.n == cures["leet"].closes.n == measured
    assert again.recall.n == len(bad) - len(result.learned)
    assert again.closes.value > 0  # the same words are written in the same way
    assert again.accuracy is not None
    assert again.accuracy.n == again.recall.n + again.honest.n
    stored = json.loads((tmp_path / "run" / RETRAINED / MARK).read_text())
    texts = {example.text().value for example in data if example.key not in result.learned}
    assert stored["rows"] == sum(text not in texts for text, _ in [*TRAIN, *TEST[:3]])
    assert stored["found"] == sum(key in result.learned for key in result.fell_at)
    assert read_guard(tmp_path / "run").to_dict() == result.to_dict()
    assert len(cure_rows(result)[0]) == 7
    same = guard(victim, data, out=tmp_path / "run", suite=LEET, train=train)
    assert [cure.closes for cure in same.cures] == [cure.closes for cure in result.cures]
    mended = mend(victim, data, result, out=tmp_path / "run", suite=LEET)
    assert mended is not None
    assert "abuse ≥ 0.55" in mended.result.victim  # it decides as before
    assert mended.result.recall.n == len(bad) - len(result.learned)  # what was learned from is not measured


def test_what_cannot_be_trained_is_refused_before_any_attack(tmp_path: Path) -> None:
    says_abuse = FunctionVictim(lambda texts: ["abuse"] * len(texts), labels=("abuse", "other"))
    victim = Filter(says_abuse, ["abuse"])
    data = relabelled(Dataset.from_pairs(TEST), victim)
    with pytest.raises(VictimError, match="cannot be trained"):
        guard(victim, data, out=tmp_path / "run", suite=LEET, train=Dataset.from_pairs(TRAIN))
    assert not (tmp_path / "run").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    with pytest.raises(UserError, match="not empty"):
        copy_model(tmp_path / "run", tmp_path / "full")


def test_only_a_folder_with_our_mark_is_replaced(tmp_path: Path) -> None:
    victim, train, place = the_filter(tmp_path), Dataset.from_pairs(TRAIN), tmp_path / "again"
    (place / "notes").mkdir(parents=True)
    (place / "notes" / "mine").write_text("")
    first, second = ([Lesson("you are vile", text)] for text in ("you are v1le", "you are vi1e"))
    with pytest.raises(UserError, match=r"(?s)not empty \(notes\).*move again away, or name another --out"):
        retrained(victim, train, first, place, measured=[])
    assert (place / "notes" / "mine").is_file()
    (place / MARK).write_text('{"mark": ""}')  # a training of ours that was stopped
    one = retrained(victim, train, first, place, measured=[]).fingerprint()
    assert not (place / "notes").exists()
    assert retrained(victim, train, second, place, measured=[]).fingerprint() != one
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe" / DEFENSE_FILE).write_text("{}")  # of another cure, once
    copy_model(place, tmp_path / "safe")
    assert {path.name for path in (tmp_path / "safe").iterdir()} == {path.name for path in place.iterdir()}


def test_a_mended_filter_is_attacked_on_no_row_that_was_not_measured_before(tmp_path: Path) -> None:
    victim = the_filter(tmp_path)
    data = relabelled(Dataset.from_pairs(TEST), victim)
    options: dict[str, Any] = {"suite": LEET, "limit": 8, "settings": Settings(seed=3)}
    result = guard(victim, data, out=tmp_path / "run", train=Dataset.from_pairs(ROWS), **options)
    assert 0 < len(result.learned) < 8 == result.recall.n
    assert sum(example.label == 1 for example in data) > 8
    mended = mend(victim, data, result, out=tmp_path / "run", **options)
    assert mended is not None
    assert mended.result.recall.n == 8 - len(result.learned)
    measured = take(by_class(data)[0], 8, seed=3)
    again = read_state(tmp_path / "run" / "mended" / "ladder")
    assert again is not None
    assert {row["key"] for row in again["rows"]} == {row.key for row in measured} - set(result.learned)
    assert mended.result.honest.n == result.honest.n


def test_a_torch_model_is_trained_on_by_augmentation(tmp_path: Path) -> None:
    options = {"epochs": 1, "hidden": 8}
    model = unfooled.train("lstm", TRAIN, tmp_path / "lstm", valid=0, options=options)
    victim = unfooled.load_victim(model.path, flag=["abuse"])
    assert isinstance(victim, Filter)
    lessons = [Lesson("you are vile", "y0u 4r3 v1l3"), Lesson("you are scummy", "y0u 4r3 5cummy")]
    train, place = Dataset.from_pairs(TRAIN), tmp_path / "again"
    found = retrained(victim, train, lessons, place, measured=[TRAIN[0][0]])
    record = json.loads((place / "training.json").read_text())
    assert record["hardened"]["method"] == "augment"
    assert json.loads((place / MARK).read_text())["rows"] == len(TRAIN) - 1
    assert found.fingerprint() != victim.fingerprint()
    assert found.flag == ("abuse",)
    once = (place / "model.safetensors").stat().st_mtime_ns
    retrained(victim, train, lessons, place, measured=[TRAIN[0][0]])  # of the same rows: nothing to do
    assert (place / "model.safetensors").stat().st_mtime_ns == once


def test_the_command_writes_a_retrained_filter_that_loads(tmp_path: Path) -> None:
    pipeline(tmp_path)
    for name, rows in (("train.csv", TRAIN), ("test.csv", TEST)):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    command = ["guard", "--model", "filter.skops", "--data", "test.csv", "--flag", "abuse", "--out", "run"]
    command += ["--without", "textfooler@textattack", "--without", "bae-r@textattack"]
    command += ["--train-data", "train.csv", "--fix", "safe", "--price", "0.1"]
    done = json.loads(typed(*command, "--json", cwd=tmp_path).stdout)
    names = [cure["name"] for cure in done["cures"]]
    assert RETRAINED in names
    assert done["learned"]
    chosen = done["mended"]["cure"]
    assert chosen["closes"]["value"] == max(
        cure["closes"]["value"] for cure in [*done["cures"], done["best"]] if cure["name"] == chosen["name"]
    )
    assert "other" in unfooled.load_victim(tmp_path / "safe").labels
    typed(*command, cwd=tmp_path)  # once more, over what is there
