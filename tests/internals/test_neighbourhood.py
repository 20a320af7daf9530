"""The words and vectors around the edit that tipped a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis_runs import changed, write_run
from unfooled.errors import VictimError
from unfooled.internals.analysis import analyse
from unfooled.internals.figures.neighbourhood import wrong_share
from unfooled.internals.folder import write_analysis
from unfooled.internals.neighbourhood import DRAWS, Field, field, neighbourhood, tipping_edit
from unfooled.internals.tables import analysis_rows
from unfooled.text import Text
from unfooled.victims.fake import load as load_fake
from unfooled.victims.function import FunctionVictim

NEAR = {"great": ["superb", "awful", "big"], "large": ["big", "great", "dull"]}


def find(word: str) -> list[str]:
    return NEAR.get(word, [])


def always_positive() -> FunctionVictim:
    return FunctionVictim(lambda texts: [[0.1, 0.9]] * len(texts), labels=("negative", "positive"))


def test_the_last_replacement_is_the_one_that_tipped() -> None:
    text = Text("a great and funny film").replace(3, "dull").replace(1, "large")
    edit = tipping_edit(changed(text))
    assert edit is not None
    assert (edit.before, edit.after) == ("great", "large")
    assert tipping_edit(changed(text, outcome="failure")) is None
    assert tipping_edit(changed(text.insert(0, "well"))) is None


def test_each_neighbour_stands_in_the_adversarial_text() -> None:
    fake = load_fake("")
    text = Text("Great film, funny").replace(2, "slow").replace(0, "Large")
    found = neighbourhood(changed(text), find, {"attacked": fake, "other": always_positive()})
    assert found is not None
    assert [(neighbour.word, neighbour.near, neighbour.rank) for neighbour in found.neighbours] == [
        ("Great", "original", 0),
        ("superb", "original", 1),
        ("awful", "original", 2),
        ("big", "original", 3),
        ("Large", "adversarial", 0),
        ("big", "adversarial", 1),  # `great` itself is not among the neighbours of `large`
        ("dull", "adversarial", 2),
    ]
    # The other edit stays: "Awful film, slow".
    by_hand = fake.predict(["Awful film, slow"])[0]
    assert found.neighbours[2].p_true[0] == pytest.approx(by_hand[1], abs=1e-6)
    assert [neighbour.decided[0] for neighbour in found.neighbours] == [1, 1, 0, 0, 0, 0, 0]
    assert found.wrong(0, "original") == (2, 3)
    assert found.wrong(0, "adversarial") == (2, 2)
    assert found.wrong(1, "original") == (0, 3)


def test_a_pair_keeps_its_other_field() -> None:
    seen: list[Any] = []

    def answer(texts: Any) -> list[list[float]]:
        seen.extend(texts)
        return [[0.1, 0.9]] * len(texts)

    text = Text({"premise": "it rains", "hypothesis": "a great day"}, edit="hypothesis").replace(1, "large")
    victim = FunctionVictim(answer, labels=("negative", "positive"))
    assert neighbourhood(changed(text), find, {"one": victim}) is not None
    assert ("it rains", "a awful day") in seen


def test_models_of_other_classes_are_refused(tmp_path: Path) -> None:
    fake = load_fake("")
    run = write_run(tmp_path / "run", fake, [changed(Text("a great film").replace(1, "large"))])
    other = FunctionVictim(lambda texts: [[0.1, 0.9]] * len(texts), labels=("no", "yes"))
    with pytest.raises(VictimError, match=r"different classes: attacked: .*; other: no, yes"):
        analyse(run, victim=fake, against={"other": other}, nearest=find, only=["neighbours"])


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    fake = load_fake("")
    run = write_run(tmp_path / "run", fake, [changed(Text("a great film").replace(1, "large"))])
    found = analyse(run, victim=fake, nearest=None, only=["words", "neighbours", "field"])
    assert "no neighbours: give a table of nearest words as --neighbours" in found.notes
    assert "no field of embeddings: it needs a torch model as --model, and no --threshold" in found.notes


def test_a_field_and_its_pictures(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("matplotlib")
    from tiny_models import tiny

    victim = tiny("bert", classes=2)
    result = changed(Text("a good film").replace(1, "bad"))
    found = field(result, "attacked", victim)
    assert isinstance(found, Field)
    assert found.points.shape == (2 * DRAWS + 2, 2)
    assert found.near[:2].tolist() == [0, 1]
    assert np.bincount(found.near[2:]).tolist() == [DRAWS, DRAWS]
    # The first two are the words without noise.
    plain = victim.predict(["a good film", "a bad film"]).argmax(axis=1)
    assert found.decided[:2].tolist() == plain.tolist()
    wrong, n = wrong_share(found, 0)
    assert n == DRAWS
    assert wrong == int((found.decided[2:][found.near[2:] == 0] != 1).sum())
    again = field(result, "attacked", victim)
    assert again is not None
    assert np.array_equal(again.points, found.points)

    run = write_run(tmp_path / "run", victim, [result])
    analysis = analyse(
        run, victim=victim, nearest=lambda word: ["film", "good"], only=["neighbours", "field"]
    )
    names = [row.name for row in analysis_rows(analysis)]
    assert "neighbours of the original word that fool it, attacked" in names
    assert "vectors around the adversarial word that fool it, attacked" in names
    out = write_analysis(analysis, tmp_path / "out")
    for name in ("neighbours-0.svg", "neighbours-0.csv", "field-0-0.svg", "field-0-0.csv"):
        assert (out / name).stat().st_size > 200
    assert (out / "field-0-0.csv").read_text().count("\n") == 2 * DRAWS + 3
