"""Models side by side: the figures, the table, the plot, the file."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import sentences, write_csv
from unfooled.checks.compare import compare, measure
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError
from unfooled.rates import f1_interval, macro_f1
from unfooled.training.preparation import read_rows
from unfooled.victims.fake import load as load_fake
from unfooled.victims.loading import load_victim


def test_figures_of_a_victim_without_files() -> None:
    (measured,) = compare([load_fake("")], Dataset.from_pairs([*sentences(40), ("", "positive")]))
    assert measured.n == 40
    assert measured.skipped == 1
    assert measured.accuracy_low <= measured.accuracy <= measured.accuracy_high
    assert measured.macro_f1_low <= measured.macro_f1 <= measured.macro_f1_high
    assert measured.texts_per_second > 0
    assert measured.parameters is measured.megabytes is measured.training_seconds is measured.padding is None


def test_two_of_one_name_are_told_apart() -> None:
    data = Dataset.from_pairs(sentences(10))
    loaded = (load_fake("") for _ in range(2))
    assert [model.name for model in compare(loaded, data)] == ["fake", "fake (2)"]


def test_other_labels_are_an_error() -> None:
    with pytest.raises(DataError, match="labels do not match"):
        compare([load_fake("")], Dataset.from_pairs([("a film", "ham"), ("a film", "spam")]))


def test_the_interval_of_macro_f1_is_close_to_a_bootstrap_of_the_rows() -> None:
    table = np.array([[30, 5, 5], [4, 20, 6], [0, 3, 27]])
    true = np.repeat(np.arange(9), table.ravel()) // 3
    predicted = np.repeat(np.arange(9), table.ravel()) % 3
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        rows = rng.integers(len(true), size=len(true))
        cells = np.bincount(true[rows] * 3 + predicted[rows], minlength=9).reshape(3, 3)
        drawn.append(float(macro_f1(cells)))
    assert f1_interval(table) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.02)


def test_a_neural_model_computes_no_padding_and_keeps_up_with_a_bare_loop(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    from unfooled.training.trainer import train

    data = Dataset.from_pairs(sentences(200))
    options = {"epochs": 1, "vectors": "none", "hidden": 8, "embedding": 8}
    train("lstm", data, tmp_path / "lstm", options=options)
    victim: Any = load_victim(str(tmp_path / "lstm"))
    measured = measure(victim, read_rows(data)[0], bare=True)
    assert measured.padding is not None
    assert measured.padding < 0.1
    assert measured.of_bare_loop is not None
    assert measured.of_bare_loop > 0
    assert measured.parameters == sum(weights.numel() for weights in victim.model.parameters())
    assert measured.megabytes is not None
    assert measured.family == "lstm"
    assert measured.training_seconds is not None


def test_the_command_prints_a_table_and_writes_a_plot_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("skops")
    pytest.importorskip("matplotlib")
    from unfooled.training.trainer import train

    write_csv(tmp_path / "d.csv", sentences(50, seed=5))
    for family in ("naive-bayes", "svm"):
        train(family, Dataset.from_pairs(sentences(60)), tmp_path / family)
    monkeypatch.chdir(tmp_path)
    models = ["naive-bayes", "svm", "fake"]
    printed = run_command(monkeypatch, capsys, "compare", *models, "-d", "d.csv", "-o", "out")
    for part in ("naive-bayes", "svm", "fake", "accuracy", "macro F1", "trained in", "95 % intervals"):
        assert part in printed
    with (tmp_path / "out/compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["family"] for row in rows] == ["naive-bayes", "svm", ""]
    assert float(rows[0]["accuracy"]) > 0.9
    assert int(rows[0]["parameters"]) > 20
    assert (tmp_path / "out/compare.svg").read_text().startswith("<?xml")
    assert (tmp_path / "out/compare.png").read_bytes().startswith(b"\x89PNG")
    write_csv(tmp_path / "o.csv", [(text, label[:3]) for text, label in sentences(20)])
    again = ["compare", "svm", "svm", "-d", "o.csv", "--label-map", "pos=positive,neg=negative", "--json"]
    numbered = json.loads(run_command(monkeypatch, capsys, *again))
    assert [model["name"] for model in numbered] == ["svm", "svm (2)"]
    assert numbered[0]["accuracy"] > 0.9
    asked = json.loads(run_command(monkeypatch, capsys, "compare", *models, "-d", "d.csv", "--json"))
    assert [model["name"] for model in asked] == models


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    from unfooled.cli.app import main

    monkeypatch.setattr(sys, "argv", ["unfooled", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    return capsys.readouterr().out
