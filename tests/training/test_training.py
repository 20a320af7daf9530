"""Every family trains, is saved, loads again, goes on after a kill, and says in a line what is wrong."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import SUPPORT
from reviews import sentences, write_csv
from tiny_training import SKLEARN, options_of, singles
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError, ResourceError, UnknownNameError, UserError, VictimError
from unfooled.rates import accuracy, confusion, macro_f1
from unfooled.training.batches import ordered_batches
from unfooled.training.families import Choice, all_families, find_family, settle
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import prepare, stratified
from unfooled.victims.loading import load_victim

WORDS = ("lstm", "bilstm-attention", "word-cnn", "bert-scratch")


def pairs(n: int = 60) -> Dataset:
    rows = [({"premise": text, "hypothesis": f"it is {label}"}, "yes") for text, label in sentences(n // 2)]
    other = {"negative": "positive", "positive": "negative"}
    rows += [
        ({"premise": text, "hypothesis": f"it is {other[label]}"}, "no")
        for text, label in sentences(n // 2, seed=1)
    ]
    return Dataset.from_pairs(rows, name="tiny pairs")


class Seen(TrainObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[int] = []
        self.epochs: list[int] = []
        self.trials: list[dict[str, Any]] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def step(self, done: int, loss: float | None) -> None:
        self.steps.append(done)

    def evaluated(self, epoch: int, metrics: Any) -> None:
        self.epochs.append(epoch)

    def trial(self, number: int, total: int, options: Any) -> None:
        self.trials.append(dict(options))


@pytest.fixture(autouse=True)
def libraries() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("skops")


def trained(family: str, data: Dataset, out: Path, **more: Any) -> Any:
    from unfooled.training.trainer import train

    if family not in SKLEARN:
        pytest.importorskip("torch")
        pytest.importorskip("accelerate")
    return train(family, data, out, **more)


# -- every family ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", ["singles", "pairs"])
@pytest.mark.parametrize("family", [*SKLEARN, *WORDS])
def test_a_family_trains_and_its_folder_is_a_victim(tmp_path: Path, family: str, fields: str) -> None:
    data = singles() if fields == "singles" else pairs()
    seen = Seen()
    result = trained(family, data, tmp_path / "model", options=options_of(family), observer=seen)
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["status"] == "finished"
    assert record["family"] == result.family == family
    assert record["data"]["train"] + record["data"]["valid"] == 60
    assert record["seconds"] == result.seconds > 0
    assert 0 <= result.metrics["valid"]["accuracy"] <= 1
    assert not (tmp_path / "model" / "checkpoints").exists()
    assert seen.steps == sorted(seen.steps)
    assert seen.steps
    victim = load_victim(str(tmp_path / "model"))
    assert victim.name == "model"
    assert sorted(victim.labels) == sorted(data.labels)
    texts = [example.text().value for example in data][:5]
    answers = victim.predict(texts)
    assert answers.shape == (5, 2)
    np.testing.assert_allclose(answers.sum(axis=1), 1)


def word_vectors(folder: Path) -> Path:
    """Random ones, of every word of the test sentences but one."""
    words = sorted({word for example in singles(120) for word in example.text().string.split()})
    rng = np.random.default_rng(0)
    path = folder / "vectors.txt"
    lines = [" ".join([word, *(f"{number:.4f}" for number in rng.normal(size=16))]) for word in words[1:]]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_an_svm_on_mean_vectors_says_what_one_says_that_reads_them(tmp_path: Path) -> None:
    """What is saved reads words, each weighed by its vector: the same as a model of the means."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import SGDClassifier

    from unfooled.resources.vectors import load_word_vectors
    from unfooled.victims.sklearn.pipeline import load_skops

    file = word_vectors(tmp_path)
    options = {"features": "mean", "vectors": str(file), "seed": 3}
    data = singles(120)
    trained("svm", data, tmp_path / "svm", valid=0, options=options)
    words, vectors = load_word_vectors(str(file))
    texts = [example.text().value for example in data]
    counts = CountVectorizer(vocabulary=words).fit_transform(texts).toarray()
    means = counts @ vectors / np.maximum(1, counts.sum(axis=1, keepdims=True))
    model = SGDClassifier(loss="hinge", alpha=1e-4, max_iter=1000, random_state=3)
    expected = model.fit(means, [data.labels[example.label] for example in data]).decision_function(means)
    found = load_skops(tmp_path / "svm" / "model.skops").decision_function(texts)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_the_words_of_the_classes_are_learned(tmp_path: Path) -> None:
    for family, more in (
        ("naive-bayes", {}),
        ("svm", {}),
        ("svm", {"features": "counts"}),
        ("lstm", {"epochs": 12, "hidden": 16, "lr": 0.02, "patience": 12}),
        ("word-cnn", {"epochs": 6, "filters": 8, "lr": 0.02, "widths": "1+2"}),
    ):
        folder = tmp_path / f"{family}-{len(more)}"
        result = trained(family, singles(120), folder, options=options_of(family, **more))
        assert result.metrics["valid"]["accuracy"] > 0.9, family
        victim = load_victim(str(result.path))
        labels = [victim.labels[i] for i in victim.predict(["a superb film", "an awful film"]).argmax(axis=1)]
        assert labels == ["positive", "negative"], family


def tiny_body(folder: Path, labels: int = 2) -> Path:
    """A BERT of eight units with the vocabulary of the test sentences, as if it had been pretrained."""
    transformers = pytest.importorskip("transformers")
    from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer

    tokenizer = build_word_tokenizer((text for text, _ in sentences(50)), max_length=32, bert=True)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, num_labels=labels,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("fields", ["singles", "pairs"])
def test_a_pretrained_body_is_fine_tuned_with_a_new_head(tmp_path: Path, fields: str) -> None:
    body = tiny_body(tmp_path / "body", labels=5)
    data = singles() if fields == "singles" else pairs()
    options = {"body": str(body), "epochs": 1, "max_length": 512}
    trained("bert", data, tmp_path / "model", options=options)
    victim: Any = load_victim(str(tmp_path / "model"))
    assert victim.labels == data.labels
    assert victim.max_length == 32  # no more than the body can read
    assert victim.predict([next(iter(data)).text().value]).shape == (1, 2)


def test_the_default_body_is_the_embedded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ResourceError, match="unfooled resources get minilm"):
        trained("bert", singles(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_vectors_come_from_a_file_and_start_at_random_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "vectors.txt"
    file.write_text("superb 1 2 3\nawful -1 -2 -3\n")
    seen = Seen()
    options = options_of("lstm", vectors=str(file), frozen="yes")
    trained("lstm", singles(), tmp_path / "a", options=options, observer=seen)
    assert any(note.startswith("2 of ") for note in seen.notes)
    victim: Any = load_victim(str(tmp_path / "a"))
    row = victim.tokenizer.convert_tokens_to_ids("superb")
    assert victim.model.get_input_embeddings().weight[row].tolist() == [1, 2, 3]
    seen = Seen()
    trained("lstm", singles(), tmp_path / "b", options=options_of("lstm", vectors="auto"), observer=seen)
    assert any("unfooled resources get glove-6b-50d" in note for note in seen.notes)
    assert json.loads((tmp_path / "b/training.json").read_text())["options"]["vectors"] == "none"
    with pytest.raises(ResourceError, match="glove-6b-50d"):
        trained("lstm", singles(), tmp_path / "c", options={"vectors": "glove-6b-50d"})


# -- the same again --------------------------------------------------------------------------------


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


def same_weights(left: Path, right: Path) -> bool:
    ours, theirs = weights(left), weights(right)
    return ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in ours)


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trained("lstm", singles(), tmp_path / name, options=options_of("lstm", seed=seed))
    assert same_weights(tmp_path / "a", tmp_path / "b")
    assert not same_weights(tmp_path / "a", tmp_path / "c")


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from tiny_training import options_of, singles
from unfooled.training.trainer import train
from unfooled.training.observer import TrainObserver

class Die(TrainObserver):
    def step(self, done, loss):
        if done == 10:
            os.kill(os.getpid(), signal.SIGKILL)

options = options_of("bert-scratch", epochs=4, patience=9)
train("bert-scratch", singles(), sys.argv[1], options=options, observer=Die())
"""


def test_a_killed_training_goes_on_and_ends_with_the_same_weights(tmp_path: Path) -> None:
    options = options_of("bert-scratch", epochs=4, patience=9)
    trained("bert-scratch", singles(), tmp_path / "whole", options=options)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "cut"), str(SUPPORT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -9, done.stderr
    with pytest.raises(VictimError, match="not finished"):
        load_victim(str(tmp_path / "cut"))
    with pytest.raises(UserError, match="--resume goes on"):
        trained("bert-scratch", singles(), tmp_path / "cut", options=options)
    moved = (tmp_path / "cut").rename(tmp_path / "moved")  # the checkpoints name each other by their paths
    # A checkpoint that was cut off while it was written is passed over.
    broken = moved / "checkpoints" / "checkpoint-999"
    broken.mkdir()
    (broken / "trainer_state.json").write_text('{"half')
    seen = Seen()
    result = trained("bert-scratch", singles(), moved, options=options, resume=True, observer=seen)
    assert seen.epochs == [3, 4]
    assert len(result.metrics["history"]) == 4
    assert same_weights(tmp_path / "whole", moved)
    again = trained("bert-scratch", singles(), moved, options=options, resume=True)
    assert again.seconds == result.seconds


def test_the_best_epoch_is_found_where_the_folder_was_moved_to(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from unfooled.training.torch_families import at_home

    checkpoint = tmp_path / "checkpoints" / "checkpoint-8"
    checkpoint.mkdir(parents=True)
    file = checkpoint / "trainer_state.json"
    file.write_text(json.dumps({"best_model_checkpoint": "/elsewhere/checkpoints/checkpoint-4", "epoch": 2}))
    at_home(checkpoint)
    state = json.loads(file.read_text())
    assert state == {"best_model_checkpoint": str(tmp_path / "checkpoints" / "checkpoint-4"), "epoch": 2}


def test_training_stops_early_and_keeps_the_best_epoch(tmp_path: Path) -> None:
    options = options_of("lstm", epochs=30, patience=2, lr=0.05)
    result = trained("lstm", singles(), tmp_path / "model", options=options)
    history = result.metrics["history"]
    best = max(entry["accuracy"] for entry in history)
    assert len(history) == result.metrics["best_epoch"] + 2 < 30
    assert (
        history[result.metrics["best_epoch"] - 1]["accuracy"] == best == result.metrics["valid"]["accuracy"]
    )
    victim = load_victim(str(result.path))
    held = prepare(singles(), 0.1, seed=0).valid
    assert (victim.predict(held.texts).argmax(axis=1) == held.labels).mean() == pytest.approx(best)


def test_a_stop_while_saving_does_not_train_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unfooled.training import torch_families

    options = options_of("lstm", epochs=30, patience=2, lr=0.05)
    trained("lstm", singles(), tmp_path / "whole", options=options)
    with monkeypatch.context() as patch:
        patch.setattr(torch_families, "save_model", lambda *_: sys.exit(1))
        with pytest.raises(SystemExit):
            trained("lstm", singles(), tmp_path / "cut", options=options)
    seen = Seen()
    result = trained("lstm", singles(), tmp_path / "cut", options=options, resume=True, observer=seen)
    assert seen.epochs == []
    assert len(result.metrics["history"]) == result.metrics["best_epoch"] + 2
    assert same_weights(tmp_path / "whole", tmp_path / "cut")


def test_without_validation_every_row_and_epoch_is_used(tmp_path: Path) -> None:
    seen = Seen()
    result = trained(
        "lstm", singles(), tmp_path / "model", valid=0.0, options=options_of("lstm"), observer=seen
    )
    assert "valid" not in result.metrics
    assert result.metrics["epochs"] == 2
    assert json.loads((tmp_path / "model/training.json").read_text())["data"]["train"] == 60
    assert any("no validation rows" in note for note in seen.notes)


def test_tensorboard_reads_the_logs(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    trained("lstm", singles(), tmp_path / "model", options=options_of("lstm"))
    files = list((tmp_path / "model" / "logs").glob("events.out.tfevents.*"))
    assert len(files) == 1
    content = files[0].read_bytes()
    for name in (b"train/loss", b"valid/accuracy", b"valid/macro_f1"):
        assert name in content


# -- mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_named_before_anything_is_written(tmp_path: Path) -> None:
    one_class = Dataset.from_pairs([("a fine day", "good"), ("a finer day", "good")], labels=["good", "bad"])
    out = tmp_path / "model"
    cases: list[tuple[str, Dataset, dict[str, Any], type[UserError], str]] = [
        ("svm", one_class, {}, DataError, "all 2 rows have the label 'good'"),
        ("smv", singles(), {}, UnknownNameError, "did you mean svm"),
        ("svm", singles(), {"options": {"hidden": 3}}, UserError, "svm has no option 'hidden'"),
        ("lstm", singles(), {"options": {"pool": "max"}}, UserError, "last, mean"),
        ("lstm", singles(), {"options": {"dropout": 2}}, UserError, "out of range"),
        ("lstm", singles(), {"options": {"epochs": "many"}}, UserError, "not a whole number"),
        (
            "lstm",
            singles(),
            {"options": {"vectors": "nowhere.txt"}},
            UserError,
            "no word vectors nowhere.txt",
        ),
        ("word-cnn", singles(), {"options": {"widths": "3,4"}}, UserError, "3\\+4\\+5"),
        ("svm", singles(), {"valid": 1.5}, DataError, "validation share"),
        ("svm", singles(), {"valid": pairs()}, DataError, r"\(no, yes\) are not those of the training rows"),
    ]
    for family, data, more, error, message in cases:
        with pytest.raises(error, match=message):
            trained(family, data, out, **more)
        assert not out.exists()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text("{}")
    (foreign / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="not trained here"):
        trained("naive-bayes", singles(), foreign)
    trained("naive-bayes", singles(), foreign, restart=True)
    assert (foreign / "notes.txt").read_text() == "mine"
    assert not (foreign / "config.json").exists()
    with pytest.raises(UserError, match="already holds a trained model"):
        trained("naive-bayes", singles(), foreign)
    with pytest.raises(UserError, match="family naive-bayes instead of svm"):
        trained("svm", singles(), foreign, resume=True)
    with pytest.raises(UserError, match="other data"):
        trained("naive-bayes", singles(30), foreign, resume=True)
    (foreign / "model.skops").unlink()
    with pytest.raises(UserError, match="already holds a trained model"):
        trained("naive-bayes", singles(), foreign)
    trained("naive-bayes", singles(), foreign, resume=True)  # its record alone is no model
    assert (foreign / "model.skops").is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        trained("svm", singles(), tmp_path / "file")


def test_a_body_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for body, message in (("nowhere", "no folder"), ("empty", "cannot be fine-tuned")):
        # Twice: what failed at once is nothing to go on with, and not in the way.
        for _ in range(2):
            with pytest.raises(VictimError, match=message):
                trained("bert", singles(), tmp_path / "model", options={"body": str(tmp_path / body)})


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(VictimError, match=r"no config\.json and no model\.skops"):
        load_victim(str(tmp_path))
    trained("svm", singles(), tmp_path / "model")
    (tmp_path / "model" / "model.skops").unlink()
    with pytest.raises(VictimError, match=r"no config\.json and no model\.skops"):  # but finished
        load_victim(str(tmp_path / "model"))


# -- parts -----------------------------------------------------------------------------------------


def test_the_split_is_stratified_seeded_and_leaves_no_class_empty() -> None:
    labels = np.array([0] * 50 + [1] * 30 + [2])
    taken = stratified(labels, 0.1, seed=3)
    assert np.bincount(labels[taken]).tolist() == [5, 3]
    assert (taken == stratified(labels, 0.1, seed=3)).all()
    assert not np.array_equal(taken, stratified(labels, 0.1, seed=4))
    assert stratified(labels, 0.0, seed=3).size == 0


def test_a_class_without_validation_rows_is_named(tmp_path: Path) -> None:
    seen = Seen()
    data = Dataset.from_pairs([*sentences(20), ("a strange thing", "odd")])
    trained("naive-bayes", data, tmp_path / "model", observer=seen)
    assert any("no validation row is labelled odd" in note for note in seen.notes)


def test_unusable_rows_are_counted_and_left_out() -> None:
    data = Dataset.from_pairs([*sentences(20), ("", "positive")])
    prepared = prepare(data)
    assert prepared.skipped == 1
    assert len(prepared.train) + len(prepared.valid) == 20
    assert prepare(singles(), singles(20)).train.texts == prepare(singles(), 0.0).train.texts


def test_batches_hold_every_row_once_and_little_padding() -> None:
    lengths = np.random.default_rng(0).integers(3, 60, size=500).tolist()
    batches = ordered_batches(lengths, 16, seed=1, epoch=2)
    assert sorted(row for batch in batches for row in batch) == list(range(500))
    padded = sum(max(lengths[i] for i in batch) * len(batch) for batch in batches)
    assert 1 - sum(lengths) / padded < 0.1
    assert batches == ordered_batches(lengths, 16, seed=1, epoch=2)
    assert batches != ordered_batches(lengths, 16, seed=1, epoch=3)


def test_long_texts_in_large_models_are_split_into_passes() -> None:
    pytest.importorskip("torch")
    from types import SimpleNamespace

    from unfooled.training.torch_families import micro_batch

    base = SimpleNamespace(num_hidden_layers=12, hidden_size=768, num_attention_heads=12)
    size, passes = micro_batch(32, 512, base)
    assert size * passes >= 32
    assert 1 <= size < 16
    assert micro_batch(32, 40, base) == (32, 1)


def test_metrics_agree_with_scikit_learn() -> None:
    from sklearn.metrics import accuracy_score, f1_score

    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    table = confusion(true, predicted, 4)
    assert float(accuracy(table)) == pytest.approx(accuracy_score(true, predicted))
    assert float(macro_f1(table)) == pytest.approx(f1_score(true, predicted, average="macro"))


def test_every_default_and_range_is_allowed_and_listed() -> None:
    from typer.testing import CliRunner

    from unfooled.cli.app import app

    helped, listed = (CliRunner().invoke(app, ["train", option]).output for option in ("--help", "--list"))
    for family in all_families():
        assert family.name in helped
        assert f"{family.name}:" in listed
        assert settle(family, dict(family.defaults)) == dict(family.defaults)
        assert set(family.ranges) <= set(family.defaults)
        assert all(family.option(name).help for name in family.defaults)
        for name, drawn in family.ranges.items():
            ends = drawn.values if isinstance(drawn, Choice) else (drawn.low, drawn.high)
            for value in ends:
                assert settle(find_family(family.name), {name: value})[name] == value


# -- sweeps ----------------------------------------------------------------------------------------


def sweep_of(out: Path, **more: Any) -> Any:
    pytest.importorskip("optuna")
    from unfooled.training.sweep import sweep

    return sweep("naive-bayes", singles(), out, **{"trials": 4, **more})


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_sweep_keeps_the_best_and_goes_on_as_if_never_stopped(tmp_path: Path, sampler: str) -> None:
    whole, cut = Seen(), Seen()
    result = sweep_of(tmp_path / "whole", sampler=sampler, observer=whole)
    record = json.loads((result.path / "training.json").read_text())
    assert len(record["trials"]) == len(whole.trials) == 4
    best = max(trial["valid"]["accuracy"] for trial in record["trials"])
    assert result.metrics["valid"]["accuracy"] == best
    assert all(1 <= trial["ngrams"] <= 3 and 0.01 <= trial["alpha"] <= 10 for trial in whole.trials)
    assert load_victim(str(result.path)).predict(["superb"]).shape == (1, 2)
    sweep_of(tmp_path / "cut", sampler=sampler, trials=2, observer=cut)
    sweep_of(tmp_path / "cut", sampler=sampler, resume=True, observer=cut)
    assert cut.trials == whole.trials
    sweep_of(tmp_path / "cut", sampler=sampler, resume=True, observer=cut)
    assert len(cut.trials) == 4


def test_a_sweep_draws_only_what_is_not_fixed_and_minds_the_time(tmp_path: Path) -> None:
    seen = Seen()
    sweep_of(tmp_path / "a", options={"alpha": 0.5}, minutes=0, observer=seen)
    assert [set(trial) for trial in seen.trials] == [{"ngrams", "min_count"}]
    assert any("time is up" in note for note in seen.notes)
    with pytest.raises(UserError, match="every range"):
        sweep_of(tmp_path / "b", options={"alpha": 0.5, "ngrams": 1, "min_count": 1})
    with pytest.raises(UserError, match="validation rows"):
        sweep_of(tmp_path / "c", valid=0.0)


DAMAGE: dict[str, str | bytes] = {
    "no database": b"not a database at all" * 300,
    "half of it": "",
    "a value": "UPDATE trial_values SET value = 0.123 WHERE trial_id = 1",
    "what was drawn": "UPDATE trial_params SET param_value = param_value + 1 WHERE trial_id = 1",
    "a measurement": "UPDATE trial_user_attributes SET value_json = '1' WHERE key = 'seconds'",
    "no JSON": "UPDATE trial_user_attributes SET value_json = '{' WHERE key = 'metrics'",
    "a trial that is gone": "DELETE FROM trials WHERE trial_id = 1",
    "another state": "UPDATE trials SET state = 'NONE'",
    "a table that is gone": "DROP TABLE trial_values",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_sweep_is_told_and_begun_again(tmp_path: Path, damage: str) -> None:
    sweep_of(tmp_path / "s", trials=2)
    file, done = tmp_path / "s" / "sweep.sqlite", DAMAGE[damage]
    if isinstance(done, bytes):
        file.write_bytes(done)
    elif not done:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(file)) as database, database:
            assert database.execute(done).rowcount != 0
    with pytest.raises(UserError, match=r"sweep\.sqlite is damaged") as told:
        sweep_of(tmp_path / "s", trials=3, resume=True)
    assert "--restart" in told.value.remedy
    assert sweep_of(tmp_path / "s", trials=1, restart=True).metrics["valid"]["accuracy"] > 0


def test_a_sweep_whose_best_model_is_gone_says_so(tmp_path: Path) -> None:
    sweep_of(tmp_path / "s", trials=2)
    shutil.rmtree(tmp_path / "s" / "trials" / "best")
    with pytest.raises(UserError, match="best model of the sweep is gone"):
        sweep_of(tmp_path / "s", trials=2, resume=True)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def unfooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Run the command line here, which is faster than a process for each; returns what it wrote."""
    from unfooled.cli.app import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["unfooled", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        written = capsys.readouterr()
        assert (left.value.code or 0) == code, written
        return written.out, written.err

    return run


def test_the_command_trains_and_says_what_to_mend(
    tmp_path: Path, unfooled: Callable[..., tuple[str, str]]
) -> None:
    write_csv(tmp_path / "d.csv", sentences(60))
    arguments = ["train", "--model", "svm", "--data", "d.csv", "--out", "m"]
    out, err = unfooled(*arguments, "--set", "ngrams=2")
    assert "svm trained in" in out
    advice = (
        "try next: unfooled attack --model m --data TEST_FILE --limit 100  # TEST_FILE: rows that the model"
    )
    assert f"{advice} was not trained on\n" in out
    assert "validation accuracy" in out
    assert "epoch 1: validation accuracy" in err
    out, _ = unfooled(*arguments, "--restart", "--text-column", "text", "--clean", "links")
    assert "--data TEST_FILE --text-column text --clean links --limit 100" in out
    facts = json.loads(unfooled(*arguments, "--restart", "--json")[0])
    assert facts["family"] == "svm"
    for wrong, message in (
        ([*arguments, "--set", "ngrams=2"], "ngrams 1 instead of 2"),
        (["train", "--model", "svm"], "--data is missing"),
        (["train", "-m", "lsmt", "-d", "d.csv", "-o", "x"], "did you mean lstm"),
        ([*arguments, "--set", "ngrams"], "name=value"),
        ([*arguments, "--resume", "--restart"], "contradict"),
        ([*arguments, "--sweep", "3", "--sampler", "grid"], "tpe, random"),
    ):
        err = unfooled(*wrong, code=2)[1]
        assert err.startswith("error: ")
        assert message in err


def test_validation_rows_may_be_a_file_or_a_split(
    tmp_path: Path, unfooled: Callable[..., tuple[str, str]]
) -> None:
    write_csv(tmp_path / "d.csv", sentences(60))
    write_csv(tmp_path / "v.csv", sentences(12, seed=4))
    unfooled("train", "-m", "naive-bayes", "-d", "d.csv", "--valid", "v.csv", "-o", "m")
    held = json.loads((tmp_path / "m/training.json").read_text())["data"]
    assert (held["train"], held["valid"]) == (60, 12)
    folder = tmp_path / "named"
    folder.mkdir()
    (folder / "labels.json").write_text('["negative", "positive"]')
    for split, n in (("train", 40), ("dev", 10)):
        lines = (json.dumps({"text": text, "label": label}) for text, label in sentences(n))
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    unfooled("train", "-m", "naive-bayes", "-d", "named", "--valid", "dev", "-o", "n")
    held = json.loads((tmp_path / "n/training.json").read_text())["data"]
    assert (held["train"], held["valid"], held["labels"]) == (40, 10, ["negative", "positive"])


def test_families_are_listed_with_their_ranges(unfooled: Callable[..., tuple[str, str]]) -> None:
    listed = json.loads(unfooled("train", "--list", "--json")[0])
    assert [family["name"] for family in listed] == [family.name for family in all_families()]
    ranges = {family["name"]: family["ranges"] for family in listed}
    assert ranges["naive-bayes"]["alpha"] == "0.01–10 (log)"
    assert "word-cnn" in unfooled("train", "--list")[0]
    assert "2+3+4 | 3+4+5" in unfooled("train", "--list")[0]


def test_the_python_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "train.md").read_text(encoding="utf-8")
    write_csv(tmp_path / "reviews.csv", sentences(60))
    write_csv(tmp_path / "test.csv", sentences(20, seed=8))
    trained("bilstm-attention", singles(), tmp_path / "models/bilstm", options=options_of("bilstm-attention"))
    monkeypatch.chdir(tmp_path)
    shown: list[tuple[Any, ...]] = []
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(code, "models.md", "exec"), {"print": lambda *values: shown.append(values)})
    assert shown[0][0] > 0.9
    assert [word for word, *_ in shown[1:6]] == ["a", "superb", "and", "moving", "film"]
    assert sum(share for _, _, share in shown[1:6]) == pytest.approx(1.0, abs=1e-5)
    assert shown[6] == ((5, 16), (1, 16))


def test_a_sweep_on_too_few_rows_says_so(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from unfooled.training.sweep import sweep

    rows = [("good film", "p"), ("bad play", "n"), ("fine story", "p"), ("dull scene", "n")]
    with pytest.raises(UserError, match="no trial of the sweep could be trained: no word is left") as told:
        sweep("svm", rows, tmp_path / "model", trials=2, options={"min_count": 3})
    assert "add rows" in str(told.value)
