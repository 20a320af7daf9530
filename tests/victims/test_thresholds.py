"""The decision of a deployed classifier: thresholds by class, from the victim to the run file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app
from unfooled.core.recipe import load_recipe
from unfooled.core.result import decided
from unfooled.core.victim_oracle import VictimOracle, is_async, oracle_for
from unfooled.data.dataset import Dataset
from unfooled.errors import UserError, VictimError
from unfooled.people.web.repeating import ModelArguments
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.loading import load_victim
from unfooled.victims.randomness import is_redrawable
from unfooled.victims.thresholds import Thresholded, rescaled


def told(scores: Sequence[float], limits: dict[int, float]) -> list[float]:
    return [round(float(value), 6) for value in rescaled(np.array([scores]), limits)[0]]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        # Odds of 0.8 are 4, the threshold's are 4: one to one.
        ((0.2, 0.8), (0.499996, 0.500004)),
        # Odds of 0.7 are 7/3; 7/12 to 1 is 7/19.
        ((0.3, 0.7), (round(12 / 19, 6), round(7 / 19, 6))),
        # Odds of 0.9 are 9; 9/4 to 1 is 9/13.
        ((0.1, 0.9), (round(4 / 13, 6), round(9 / 13, 6))),
        ((1.0, 0.0), (1.0, 0.0)),
        ((0.0, 1.0), (0.0, 1.0)),
    ],
)
def test_two_classes_by_hand(scores: tuple[float, float], expected: tuple[float, float]) -> None:
    assert told(scores, {1: 0.8}) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("scores", "limits", "decision"),
    [
        ((0.30, 0.45, 0.25), {1: 0.5}, 0),  # the highest, but below its threshold: the best of the others
        ((0.25, 0.45, 0.30), {1: 0.5}, 2),
        ((0.25, 0.50, 0.25), {1: 0.5}, 1),  # at the threshold counts as reached
        ((0.60, 0.15, 0.25), {2: 0.2}, 2),  # a low threshold: reached although another is higher
        ((0.20, 0.45, 0.35), {1: 0.4, 2: 0.3}, 2),  # odds 27/22 of 1, 49/39 of 2 (0.45·0.6/(0.55·0.4) …)
        ((0.10, 0.55, 0.35), {1: 0.4, 2: 0.3}, 1),  # odds 11/6 against 49/39
        ((0.00, 0.50, 0.50), {1: 0.9, 2: 0.9}, 0),  # none is reached: the only class without one
    ],
)
def test_several_classes_by_hand(scores: tuple[float, ...], limits: dict[int, float], decision: int) -> None:
    seen = told(scores, limits)
    assert decided(seen) == decision
    assert sum(seen) == pytest.approx(1.0, abs=5e-6)


def test_order_is_kept_and_a_threshold_of_one_half_changes_nothing() -> None:
    scores = np.linspace(0.001, 0.999, 999)
    pairs = np.stack([1 - scores, scores], axis=1)
    for limit in (0.05, 0.3, 0.8, 0.95):
        seen = rescaled(pairs, {1: limit})[:, 1]
        assert (np.diff(seen) > 0).all()
        assert ((seen > 0.5) == (np.round(scores, 6) >= limit)).all()
    same = rescaled(pairs, {1: 0.5})
    apart = np.abs(pairs[:, 1] - 0.5) > 1e-5
    assert np.allclose(same[apart], pairs[apart], atol=1e-12)


def test_what_cannot_be_a_threshold_is_refused() -> None:
    victim = FakeVictim()
    for wrong, cause in (
        ({"spam": 0.5}, "no class 'spam'"),
        ({"positive": 1.0}, "no score"),
        ({"positive": "high"}, "no score"),
        ({"positive": float("nan")}, "no score"),
        ({"positive": 0.6, "negative": 0.6}, "every class has a threshold"),
    ):
        with pytest.raises(VictimError, match=cause):
            Thresholded(victim, wrong)
    decides = FunctionVictim(lambda texts: ["a"] * len(texts), labels=("a", "b"))
    with pytest.raises(VictimError, match="no score per class"):
        Thresholded(decides, {"a": 0.5})


def test_a_loaded_victim_travels_with_its_thresholds_and_only_they_change_its_fingerprint() -> None:
    plain, strict = load_victim("fake"), load_victim("fake", thresholds={"Positive": "0.8"})
    assert load_victim("fake", thresholds=None).fingerprint() == plain.fingerprint()
    assert strict.fingerprint() != plain.fingerprint()
    assert strict.fingerprint() != load_victim("fake", thresholds={"positive": 0.7}).fingerprint()
    assert strict.name == "fake (positive ≥ 0.8)"
    again = load_victim(strict.spec, **strict.options)  # type: ignore[attr-defined]
    assert again.fingerprint() == strict.fingerprint()
    assert not is_redrawable(strict)
    assert type(oracle_for(strict)) is VictimOracle


def test_an_endpoint_stays_asynchronous() -> None:
    class Remote(FakeVictim):
        concurrency = 3

        async def answer(self, items: Sequence[Any], /) -> Any:
            return np.array([[0.3, 0.7]] * len(items))

    victim = Thresholded(Remote(), {"positive": 0.8})
    assert is_async(victim)
    (row,) = asyncio.run(victim.answer(["a text"]))
    assert decided(row) == 0


def test_success_is_a_change_of_the_deployed_decision(tmp_path: Path) -> None:
    # `great` alone is 0.9 offensive in this toy; misspelt it is 0.7: no flip at 0.5, a flip at 0.8.
    def score(texts: list[str]) -> Any:
        return [[0.1, 0.9] if "great" in text else [0.3, 0.7] for text in texts]

    data = Dataset.from_pairs([("great", "offensive")], labels=("fine", "offensive"))
    plain = FunctionVictim(score, labels=("fine", "offensive"))
    outcomes = {}
    for limit in (None, 0.8, 0.95):
        victim = Thresholded(plain, {"offensive": limit}) if limit else plain
        run = attack(victim, data, "deepwordbug", out=tmp_path / str(limit))
        (result,) = run.results()
        outcomes[limit] = (result.outcome, decided(result.probs), decided(result.perturbed_probs))
    assert outcomes[None] == ("failure", 1, 1)
    assert outcomes[0.8] == ("success", 1, 0)
    assert outcomes[0.95] == ("skipped", 0, 0)  # never flagged as deployed, so there is nothing to break


def test_with_two_classes_an_attack_takes_the_same_steps(tmp_path: Path) -> None:
    # A threshold that no text of this run comes near: the same texts are asked about, in the same number.
    rows = [("a great and moving film", "positive"), ("a fine cast", "positive")]
    asked: dict[str, list[Any]] = {}

    class Listening(FakeVictim):
        def predict(self, texts: Sequence[Any], /) -> Any:
            heard.extend(texts)
            return super().predict(texts)

    for name in ("plain", "strict"):
        heard: list[Any] = []
        victim: Any = Listening()
        victim = Thresholded(victim, {"positive": 0.5}) if name == "strict" else victim
        attack(victim, Dataset.from_pairs(rows, labels=victim.labels), "deepwordbug", out=tmp_path / name)
        asked[name] = heard
    assert asked["plain"] == asked["strict"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_command_line_takes_thresholds(tmp_path: Path, workers: str) -> None:
    rows = ["text,label", *(f"a good film number {n},positive" for n in range(4)), "an awful film,negative"]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    base = ["attack", "--model", "fake", "--data", str(tmp_path / "d.csv"), "--attack", "deepwordbug"]
    options = ["--threshold", "positive=0.99", "--out", str(tmp_path / "r"), "--json", "--workers", workers]
    answer = CliRunner().invoke(app, [*base, *options])
    assert answer.exit_code == 0, answer.output
    summary = json.loads(answer.stdout)
    # No text reaches 0.99, so every positive row is decided negative before any attack.
    assert summary["counts"]["skipped"] == 4
    with closing(RunFile.read(tmp_path / "r")) as file:
        assert file.header["environment"]["victim"] == "fake (positive ≥ 0.99)"
    moved = ["replay", str(tmp_path / "r"), "mine=fake", "--threshold", "positive=high"]
    assert CliRunner().invoke(app, moved).exit_code != 0


def test_transfer_and_replay_decide_by_thresholds(tmp_path: Path) -> None:
    rows = ["text,label", "a good film,positive", "a great film,positive"]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = str(tmp_path / "r")
    attacked = [
        "attack",
        "-m",
        "fake",
        "-d",
        str(tmp_path / "d.csv"),
        "-a",
        "deepwordbug",
        "-o",
        run,
        "--json",
    ]
    assert json.loads(CliRunner().invoke(app, attacked).stdout)["counts"]["success"] > 0
    for threshold, right in (("positive=0.5", True), ("positive=0.999", False)):
        given = ["--threshold", threshold, "--json"]
        found = json.loads(
            CliRunner().invoke(app, ["transfer", "--from", run, "--to", "fake", *given]).stdout
        )
        assert (found[0]["transferred"]["n"] > 0) == right
        shown = ["replay", run, "mine=fake", "-o", str(tmp_path / threshold), *given]
        (row,) = json.loads(CliRunner().invoke(app, shown).stdout)
        assert (row["before"]["value"] == 1.0) == right


def test_a_run_with_thresholds_is_analysed_with_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "d.csv").write_text("text,label\na good film,positive\nan awful film,negative\n")
    run, strict = str(tmp_path / "r"), ["--threshold", "positive=0.6"]
    attacked = ["attack", "-m", "fake", "-d", str(tmp_path / "d.csv"), "-a", "deepwordbug", "-o", run]
    assert CliRunner().invoke(app, [*attacked, *strict]).exit_code == 0
    looked = ["analyse", run, "-m", "fake", "--only", "confusion", "-o", str(tmp_path / "a")]
    without = CliRunner().invoke(app, looked)
    assert isinstance(without.exception, VictimError), without.output
    assert CliRunner().invoke(app, [*looked, *strict]).exit_code == 0


def test_models_are_compared_by_the_deployed_decision(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,label\na good film,positive\nan awful film,negative\n")
    compared = ["compare", "fake", "--data", str(tmp_path / "d.csv"), "--json"]
    for given, accuracy in (([], 1.0), (["--threshold", "positive=0.999"], 0.5)):
        answer = CliRunner().invoke(app, [*compared, *given])
        assert json.loads(answer.stdout)[0]["accuracy"] == accuracy, answer.output


def test_the_playground_repeats_its_thresholds() -> None:
    words = ModelArguments("fake", thresholds=("positive=0.8",)).words()
    assert words == ["--model", "fake", "--threshold", "positive=0.8"]


def test_harden_says_why_it_takes_no_threshold(tmp_path: Path) -> None:
    given = [
        "harden",
        "--method",
        "five",
        "-m",
        "fake",
        "-o",
        str(tmp_path / "h"),
        "--threshold",
        "positive=0.8",
    ]
    answer = CliRunner().invoke(app, given)
    assert isinstance(answer.exception, UserError)
    assert "holds none" in answer.exception.cause
    assert not (tmp_path / "h").exists()


def test_recipes_that_need_scores_still_see_them() -> None:
    victim = Thresholded(FakeVictim(), {"positive": 0.8})
    assert set(load_recipe("textfooler").requires()) <= victim.capabilities
