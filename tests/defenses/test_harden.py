"""Hardening trains real small models: heads move, batches grow, stops lose nothing, mistakes are named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import BAD, GOOD, sentences, write_csv
from toys import encoder, neighbours, tags
from unfooled.core import session
from unfooled.data.dataset import Dataset
from unfooled.defenses import fact
from unfooled.defenses.adversarial_training import AttackInLoop
from unfooled.defenses.harden import Hardened, harden
from unfooled.defenses.methods import all_methods, find_method
from unfooled.defenses.row_log import RowLog
from unfooled.defenses.switch import Switch, as_text
from unfooled.defenses.switching import Switcher, alternatives_of_rows
from unfooled.errors import DataError, UnknownNameError, UserError, VictimError
from unfooled.plugins import registry
from unfooled.resources import store
from unfooled.training.batches import add_extras, pad
from unfooled.training.course import Extra, weighted_loss
from unfooled.training.observer import TrainObserver
from unfooled.victims.loading import load_victim
from waiting import eventually

pytest.importorskip("torch")
pytest.importorskip("accelerate")

TINY: dict[str, Any] = {
    "epochs": 1,
    "vectors": "none",
    "hidden": 8,
    "layers": 1,
    "batch": 16,
    "max_length": 24,
}
NEAR = {word: [other for other in group if other != word] for group in (GOOD, BAD) for word in group}
SWITCH: dict[str, Any] = {"words": 2, "alternatives": 2, "similarity": "none"}


class Seen(TrainObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.work: list[tuple[str, int, int]] = []
        self.epochs: list[int] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def working(self, what: str, done: int, total: int) -> None:
        self.work.append((what, done, total))

    def evaluated(self, epoch: int, metrics: Any) -> None:
        self.epochs.append(epoch)


@pytest.fixture(autouse=True)
def words_by_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours, tags and encoder that need no files; gradients and training are real."""
    made: dict[str, Any] = {"neighbours": neighbours(NEAR), "tag": tags({}), "encode": encoder()}
    load = registry.load

    def opened(kind: str, name: str) -> Any:
        return (lambda _variant: made[name]) if kind == "oracle" else load(kind, name)

    monkeypatch.setattr(registry, "load", opened)
    monkeypatch.setattr(session, "missing_resources", lambda names: [])
    monkeypatch.setattr(store, "fingerprint", lambda name: "")


def singles(n: int = 60) -> Dataset:
    return Dataset.from_pairs(sentences(n), name="tiny")


def pairs(n: int = 60) -> Dataset:
    rows = [({"premise": text, "hypothesis": f"a {text}"}, label) for text, label in sentences(n)]
    return Dataset.from_pairs(rows, name="tiny pairs")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Small trained models: one of self-attention, one recurrent, one for pairs."""
    from unfooled.training.trainer import train

    root = tmp_path_factory.mktemp("base")
    for name, family, data in (
        ("attention", "bert-scratch", singles()),
        ("lstm", "lstm", singles()),
        ("pairs", "bert-scratch", pairs()),
    ):
        known = find_family(family).defaults
        options = {key: value for key, value in TINY.items() if key in known}
        train(family, data, root / name, options=options)
    return {name: str(root / name) for name in ("attention", "lstm", "pairs")}


def find_family(name: str) -> Any:
    from unfooled.training import families

    return families.find_family(name)


def weights(folder: str | Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return dict(load_file(Path(folder) / "model.safetensors"))


# -- batches ---------------------------------------------------------------------------------------


def test_added_texts_stand_behind_their_row_with_its_label(base: dict[str, str]) -> None:
    tokenizer = load_victim(base["attention"]).tokenizer  # type: ignore[attr-defined]
    rows = [{"input_ids": [5, 6, 7], "labels": 1}, {"input_ids": [8], "labels": 0}]
    add_extras(rows, {0: [Extra("the film is great", 0.5), Extra("awful")]}, tokenizer)
    batch = pad(rows, 0)
    assert batch["labels"].tolist() == [1, 1, 1, 0]
    assert batch["weights"].tolist() == [1.0, 0.5, 1.0, 1.0]
    assert batch["input_ids"][0].tolist()[:3] == [5, 6, 7]
    assert batch["attention_mask"].sum(dim=1).tolist()[3] == 1
    add_extras(rows, {1: [Extra("dull")]}, tokenizer)
    assert pad(rows, 0)["labels"].tolist() == [1, 0, 0]


def test_the_weighted_loss_by_hand() -> None:
    import torch

    class Fixed:
        def __call__(self, input_ids: Any, attention_mask: Any) -> Any:
            logits = torch.stack([input_ids[:, 0].float(), torch.zeros(len(input_ids))], dim=1)
            return type("Answer", (), {"logits": logits})

    inputs = {
        "input_ids": torch.tensor([[2, 1, 1], [0, 0, 0], [1, 1, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]]),
        "labels": torch.tensor([0, 0, 1]),
        "weights": torch.tensor([1.0, 0.5, 2.0]),
    }
    losses = [np.log(1 + np.exp(-2)), np.log(2), np.log(1 + np.exp(1))]
    expected = (losses[0] + 0.5 * losses[1] + 2 * losses[2]) / 3.5
    for parts in (1, 2, 3, 7):
        assert float(weighted_loss(Fixed(), inputs, parts)) == pytest.approx(expected, rel=1e-5)


# -- methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention", "lstm"])
def test_fact_trains_the_whole_model_head_included(base: dict[str, str], name: str, tmp_path: Path) -> None:
    seen = Seen()
    out = tmp_path / "fact"
    options = {**SWITCH, "epochs": 1, "lr": 1e-3, "keep": "last"}
    hardened = harden(base[name], singles(), method="fact", out=out, options=options, observer=seen)
    assert hardened.trained is not None
    before, after = weights(base[name]), weights(out)
    assert before.keys() == after.keys()
    heads = [key for key in after if key.startswith("classifier")]
    assert heads
    moved = {key: not np.array_equal(before[key], after[key]) for key in after}
    assert all(moved[key] for key in heads)
    assert np.mean(list(moved.values())) > 0.9
    record = json.loads((out / "training.json").read_text())
    assert record["hardened"]["method"] == "fact"
    assert record["options"]["words"] == 2
    assert record["data"]["train"] == 53
    assert ("SWITCH", 53, 53) in seen.work
    assert not (out / "checkpoints").exists()
    victim = load_victim(str(out))
    assert victim.predict(["a great film"]).shape == (1, 2)


def test_fact_differs_from_the_retuned_control(base: dict[str, str], tmp_path: Path) -> None:
    options = {"epochs": 1, "lr": 1e-3}
    harden(base["lstm"], singles(), method="retune", out=tmp_path / "retuned", options=options)
    harden(base["lstm"], singles(), method="fact", out=tmp_path / "fact", options=options | SWITCH)
    again = harden(base["lstm"], singles(), method="retune", out=tmp_path / "again", options=options)
    first, second, same = (weights(tmp_path / name) for name in ("retuned", "fact", "again"))
    assert any(not np.array_equal(first[key], second[key]) for key in first)
    assert all(np.array_equal(first[key], same[key]) for key in first)
    assert again.method == "retune"


def test_pairs_keep_their_premise(
    base: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[Any] = []
    ordinary = alternatives_of_rows

    def watched(*args: Any, **more: Any) -> Any:
        found = ordinary(*args, **more)
        added.append((args[1], found))
        return found

    monkeypatch.setattr(fact, "alternatives_of_rows", watched)
    harden(base["pairs"], pairs(), method="fact", out=tmp_path / "fact", options={**SWITCH, "epochs": 1})
    ((texts, found),) = added
    assert sum(map(len, found.values())) > len(texts)
    for n, others in found.items():
        assert all(other[0] == texts[n][0] and other[1] != texts[n][1] for other in others)


def test_fresh_alternatives_differ_between_epochs_and_use_the_first_plans(
    base: dict[str, str], tmp_path: Path
) -> None:
    victim = load_victim(base["lstm"])
    seen: list[Any] = []
    oracle = registry.load("inside", "gradients")(victim, "loss")

    def counted(items: Sequence[Any]) -> Any:
        seen.extend(items)
        return oracle(items)

    counted.batch_size = 100  # type: ignore[attr-defined]
    switch = Switch(**SWITCH)
    oracles: dict[str, Any] = {
        "neighbours:counter-fitted": neighbours(NEAR),
        "tag:perceptron-tagger": tags({}),
        "gradients:loss": counted,
    }
    switcher = Switcher(switch, victim, oracles=oracles)
    texts = [text for text, _ in sentences(12)]
    first = alternatives_of_rows(switcher, texts, tmp_path, Seen())
    asked = len(seen)
    second = alternatives_of_rows(switcher, texts, tmp_path, Seen(), draw=1)
    assert asked == len(seen) == 12
    assert first != second
    assert alternatives_of_rows(switcher, texts, tmp_path, Seen(), draw=1) == second
    for n, others in second.items():
        for other in others:
            assert as_text(other).gaps == as_text(texts[n]).gaps


def test_fresh_fact_trains(base: dict[str, str], tmp_path: Path) -> None:
    options = {**SWITCH, "epochs": 2, "fresh": "true"}
    done = harden(base["lstm"], singles(), method="fact", out=tmp_path / "fact", options=options)
    assert done.settings["fresh"] is True


def test_augment_adds_alternatives_as_rows(base: dict[str, str], tmp_path: Path) -> None:
    seen = Seen()
    options = {**SWITCH, "epochs": 1}
    done = harden(
        base["lstm"], singles(), method="augment", out=tmp_path / "more", options=options, observer=seen
    )
    assert done.trained is not None
    # 53 rows and about twice as many alternatives, 16 in a batch.
    assert 2 * 53 / 16 < done.trained.metrics["steps"] <= -(-3 * 53 // 16)


def test_augment_with_samples(base: dict[str, str], tmp_path: Path) -> None:
    seen = Seen()
    samples: list[tuple[Any, int]] = [("an odd grate film", 1), ("a teribble film", 0)]
    done = harden(
        base["lstm"],
        singles(),
        method="augment",
        out=tmp_path / "more",
        options={"epochs": 1},
        samples=samples,
        observer=seen,
    )
    assert done.trained is not None
    assert any("2 samples join 53 training rows" in note for note in seen.notes)
    with pytest.raises(DataError, match="2 fields, the data 1"):
        harden(base["lstm"], singles(), method="augment", out=tmp_path / "x", samples=[(("a", "b"), 0)])
    with pytest.raises(DataError, match="no text that fooled"):
        harden(base["lstm"], singles(), method="augment", out=tmp_path / "x", samples=[])
    with pytest.raises(UserError, match="takes no samples"):
        harden(base["lstm"], singles(), method="retune", out=tmp_path / "x", samples=samples)


def harden_by_attack(model: str, out: Path, options: dict[str, Any], seen: Seen) -> Hardened:
    return harden(model, singles(), method="adversarial-training", out=out, options=options, observer=seen)


def test_adversarial_training_attacks_the_model_of_the_moment(
    base: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fooled: list[dict[int, Any]] = []
    ordinary = AttackInLoop.extras

    def watched(self: AttackInLoop, epoch: int, model: Any, tokenizer: Any) -> Any:
        before = {name: value.clone() for name, value in model.state_dict().items()}
        found = ordinary(self, epoch, model, tokenizer)
        assert all(bool((before[name] == value).all()) for name, value in model.state_dict().items())
        fooled.append(dict(found))
        return found

    monkeypatch.setattr(AttackInLoop, "extras", watched)
    seen = Seen()
    options = {"attack": "deepwordbug", "share": 0.5, "budget": 60, "epochs": 2}
    done = harden_by_attack(base["lstm"], tmp_path / "at", options, seen)
    assert done.trained is not None
    assert len(fooled) == 2
    assert any(fooled)
    texts = {text for text, _ in sentences(60)}
    assert all(extra.text not in texts for found in fooled for extras in found.values() for extra in extras)
    assert [note for note in seen.notes if "of 26 attacked texts fooled the model" in note]


def test_adversarial_training_fits_its_attack_to_the_model(base: dict[str, str], tmp_path: Path) -> None:
    # gs-gr draws its words from the model's own vocabulary, which it only knows once it is fitted.
    seen = Seen()
    options = {"attack": "gs-gr", "share": 0.3, "budget": 200, "epochs": 1}
    harden_by_attack(base["lstm"], tmp_path / "at", options, seen)
    lines = (tmp_path / "at").rglob("attacked-0.jsonl")
    assert not [line for path in lines for line in path.read_text().splitlines() if '"error"' in line]
    (note,) = [note for note in seen.notes if "attacked texts fooled the model" in note]
    assert "ended in an error" not in note


def test_a_training_that_adds_no_text_stops_and_says_so(base: dict[str, str], tmp_path: Path) -> None:
    # Without a single query left no attack finds anything.
    options = {"attack": "deepwordbug", "share": 0.3, "budget": 1, "epochs": 1}
    with pytest.raises(UserError, match="fooled the model with none of"):
        harden(base["lstm"], singles(), method="adversarial-training", out=tmp_path / "at", options=options)


def test_freelb_steps_change_the_weights(base: dict[str, str], tmp_path: Path) -> None:
    options = {"epochs": 1, "lr": 1e-3, "steps": 2}
    harden(
        base["attention"],
        singles(),
        method="retune",
        out=tmp_path / "retuned",
        options={"epochs": 1, "lr": 1e-3},
    )
    harden(base["attention"], singles(), method="freelb", out=tmp_path / "freelb", options=options)
    plain, moved = weights(tmp_path / "retuned"), weights(tmp_path / "freelb")
    assert any(not np.array_equal(plain[key], moved[key]) for key in plain)
    assert all(np.isfinite(value).all() for value in moved.values())


def test_freelb_moves_along_the_gradient_and_stays_within_its_radius() -> None:
    import torch

    from unfooled.defenses.freelb import FreeLB

    course = FreeLB(Path("x"), step_size=3.0, radius=1.0)
    shift = torch.zeros(1, 1, 2)
    slope = torch.tensor([[[0.0, 4.0]]])
    assert course._moved(shift, slope).tolist() == [[[0.0, 1.0]]]
    free = FreeLB(Path("x"), step_size=3.0, radius=0.0)
    assert free._moved(shift, slope).tolist() == [[[0.0, 3.0]]]


def test_starting_from_the_body_begins_anew(base: dict[str, str], tmp_path: Path) -> None:
    options = {"epochs": 1, "start": "body"}
    harden(base["lstm"], singles(), method="retune", out=tmp_path / "new", options=options)
    assert load_victim(str(tmp_path / "new")).predict(["great"]).shape == (1, 2)


# -- stops -----------------------------------------------------------------------------------------


def test_a_ledger_survives_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with RowLog(path) as ledger:
        ledger.add(0, text="a")
        ledger.add(7, text="b\n")
    with path.open("ab") as file:
        file.write(b'{"row": 8, "te')
    with RowLog(path) as ledger:
        assert sorted(ledger.rows) == [0, 7]
        ledger.add(8, text="c")
    with RowLog(path) as ledger:
        assert [ledger.rows[n]["text"] for n in (0, 7, 8)] == ["a", "b\n", "c"]


def test_alternatives_made_before_a_stop_are_not_made_again(base: dict[str, str], tmp_path: Path) -> None:
    victim = load_victim(base["lstm"])
    texts = [text for text, _ in sentences(9)]

    class Stop(TrainObserver):
        def working(self, what: str, done: int, total: int) -> None:
            if done == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alternatives_of_rows(Switcher(Switch(**SWITCH), victim), texts, tmp_path, Stop())
    seen = Seen()
    found = alternatives_of_rows(Switcher(Switch(**SWITCH), victim), texts, tmp_path, seen)
    assert seen.work[0] == ("SWITCH", 5, 9)
    assert found == alternatives_of_rows(Switcher(Switch(**SWITCH), victim), texts, tmp_path / "new", Seen())


class Stopping(TrainObserver):
    """Stops the training after its first epoch, as Ctrl-C does."""

    def evaluated(self, epoch: int, metrics: Any) -> None:
        self.epoch = epoch

    def step(self, done: int, loss: float | None) -> None:
        if getattr(self, "epoch", 0) == 1 and done > 4:
            raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["fact", "adversarial-training"])
def test_going_on_ends_with_the_same_weights(base: dict[str, str], tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {"epochs": 2, "lr": 1e-3, "keep": "last"}
    options |= SWITCH if method == "fact" else {"attack": "deepwordbug", "share": 0.3, "budget": 40}
    whole = tmp_path / "whole"
    harden(base["lstm"], singles(), method=method, out=whole, options=options)
    with pytest.raises(KeyboardInterrupt):
        harden(
            base["lstm"], singles(), method=method, out=tmp_path / "cut", options=options, observer=Stopping()
        )
    with pytest.raises(UserError, match="unfinished training"):
        harden(base["lstm"], singles(), method=method, out=tmp_path / "cut", options=options)
    with pytest.raises(VictimError, match="was not finished"):
        load_victim(str(tmp_path / "cut"))
    harden(base["lstm"], singles(), method=method, out=tmp_path / "cut", options=options, resume=True)
    first, second = weights(whole), weights(tmp_path / "cut")
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_finished_is_finished(base: dict[str, str], tmp_path: Path) -> None:
    options = {"epochs": 1}
    first = harden(base["lstm"], singles(), method="retune", out=tmp_path / "x", options=options)
    with pytest.raises(UserError, match="already holds a trained model"):
        harden(base["lstm"], singles(), method="retune", out=tmp_path / "x", options=options)
    again = harden(base["lstm"], singles(), method="retune", out=tmp_path / "x", options=options, resume=True)
    assert first.trained is not None
    assert again.trained is not None
    assert again.trained.seconds == first.trained.seconds
    with pytest.raises(UserError, match="other settings"):
        harden(base["lstm"], singles(), method="fact", out=tmp_path / "x", options=options, resume=True)


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("fact", {"wrods": 2}, "fact has no setting 'wrods'"),
        ("fact", {"words": "two"}, "words=two is not a whole number"),
        ("fact", {"words": 0}, "words=0 makes no sense"),
        ("fact", {"weight": -1}, "weight=-1"),
        ("fact", {"fresh": "perhaps"}, "fresh=perhaps"),
        ("retune", {"epochs": 0}, "epochs=0"),
        ("retune", {"keep": "first"}, "keep=first"),
        ("adversarial-training", {"share": 2}, "share=2"),
        ("freelb", {"steps": 0}, "steps=0"),
    ],
)
def test_mistakes_in_settings_are_named(
    base: dict[str, str], tmp_path: Path, method: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        harden(base["lstm"], singles(), method=method, out=tmp_path / "x", options=options)
    assert not any(tmp_path.rglob("*.safetensors"))


def test_mistakes_are_named(base: dict[str, str], tmp_path: Path) -> None:
    data, out = singles(), tmp_path / "x"
    with pytest.raises(UnknownNameError, match="no defense called 'fackt'"):
        harden(base["lstm"], data, method="fackt", out=out)
    with pytest.raises(UnknownNameError, match="no attack called"):
        harden(base["lstm"], data, method="adversarial-training", out=out, options={"attack": "nothing"})
    with pytest.raises(UserError, match="nothing to train on"):
        harden(base["lstm"], method="fact", out=out)
    with pytest.raises(VictimError, match="trains torch models"):
        harden("fake", data, method="fact", out=out)
    with pytest.raises(UserError, match="is the model to harden"):
        harden(base["lstm"], data, method="retune", out=base["lstm"])
    other = Dataset.from_pairs([("a b", "spam"), ("c d", "ham")] * 9, name="mail")
    with pytest.raises(DataError, match=r"spam|ham") as mismatch:
        harden(base["lstm"], other, method="retune", out=out)
    assert "--label-map" not in str(mismatch.value)  # harden has no such option
    assert not any(out.glob("*.safetensors"))


def test_the_table_is_complete() -> None:
    from unfooled.cli.harden import Harden

    for name, method in all_methods().items():
        assert find_method(name) is method
        assert f"{name}: {method.summary}" in Harden.EPILOG
        assert set(method.ranges) <= set(method.defaults)


# -- command line ----------------------------------------------------------------------------------


def run(*arguments: str, code: int = 0) -> str:
    """In this process, so that the words by heart are seen."""
    from typer.testing import CliRunner

    from unfooled.cli.app import app

    done = CliRunner().invoke(app, [*arguments])
    if isinstance(done.exception, UserError):
        assert code == 2, done.exception
        return str(done.exception)
    assert done.exit_code == code, done.output
    return done.stdout


def test_the_command_line(base: dict[str, str], tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "rows.csv", sentences(60))
    common = ["harden", "--model", base["lstm"], "--data", str(rows), "--epochs", "1"]
    out = tmp_path / "fact"
    text = run(*common, "--method", "fact", "--out", str(out), "--words", "2", "--alternatives", "1")
    assert "validation accuracy" in text
    assert f"unfooled attack --model {out}" in text
    found = json.loads(run(*common, "--method", "retune", "--out", str(tmp_path / "retuned"), "--json"))
    assert found["method"] == "retune"
    assert found["metrics"]["steps"] == 4
    guarded = tmp_path / "five"
    text = run("harden", "--method", "five", "--model", str(out), "--out", str(guarded), "--sigma", "0.5")
    assert "of the mean embedding norm" in text
    assert load_victim(str(guarded)).predict(["a great film"]).shape == (1, 2)


def test_samples_of_a_run_are_read(base: dict[str, str], tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "rows.csv", sentences(60))
    attack = ["attack", "-m", base["lstm"], "-d", str(rows), "-a", "deepwordbug", "-n", "20"]
    run(*attack, "-o", str(tmp_path / "run"), "--json")
    common = ["harden", "--method", "augment", "--model", base["lstm"], "--data", str(rows)]
    common += ["--samples", str(tmp_path / "run"), "--epochs", "1"]
    found = json.loads(run(*common, "--out", str(tmp_path / "more"), "--json"))
    assert found["method"] == "augment"
    from unfooled.checks.replay import fooling_texts
    from unfooled.runs.attack import Run

    samples = fooling_texts(tmp_path / "run", ("positive", "negative"))
    successes = [result for result in Run(tmp_path / "run").results() if result.outcome == "success"]
    assert len(samples) == len(successes) > 0
    assert sorted(text for text, _ in samples) == sorted(success.perturbed for success in successes)
    with pytest.raises(DataError, match="none of the model's"):
        fooling_texts(tmp_path / "run", ("ham", "spam"))


def test_mistakes_on_the_command_line(base: dict[str, str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "x")]
    assert "--method is missing" in run("harden", "--model", base["lstm"], *out, code=2)
    assert "--data is missing" in run("harden", "--method", "fact", "--model", base["lstm"], *out, code=2)
    both = ["--resume", "--restart"]
    wrong = run("harden", "--method", "five", "--model", base["lstm"], *out, *both, code=2)
    assert "contradict" in wrong
    wrong = run("harden", "--method", "five", "--model", base["lstm"], *out, "--set", "sigma", code=2)
    assert "has no '='" in wrong
    rows = write_csv(tmp_path / "rows.csv", sentences(20))
    augment = ["harden", "--method", "augment", "--model", base["lstm"], "--data", str(rows)]
    assert "there is no run" in run(*augment, *out, "--samples", str(tmp_path / "none"), code=2)
    listed = run("harden", "--list")
    assert all(name in listed for name in all_methods())
    assert {method["name"] for method in json.loads(run("harden", "--list", "--json"))} == set(all_methods())


@pytest.mark.slow
def test_a_killed_hardening_goes_on(base: dict[str, str], tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "rows.csv", sentences(400))
    command = [sys.executable, "-m", "unfooled", "harden", "--method", "retune", "--model", base["lstm"]]
    command += ["--data", str(rows), "--epochs", "60", "--set", "keep=last", "--json"]
    out = tmp_path / "cut"
    process = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL)

    def under_way() -> bool:
        assert process.poll() is None, "it ended before it could be killed"
        return bool(list((out / "checkpoints").glob("checkpoint-*/trainer_state.json")))

    eventually(under_way)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert not (out / "config.json").exists()
    done = subprocess.run(
        [*command, "--out", str(out), "--resume"], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["epochs"] == 60
