"""A classifier as a filter: what is blocked, and what an attack on it counts as success."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import unfooled
from unfooled.attacks.parts.goals import only_class
from unfooled.core.recipe import load_recipe
from unfooled.core.result import decided
from unfooled.core.victim_oracle import is_async
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.errors import DataError, VictimError
from unfooled.runs.attack import Run, attack
from unfooled.victims.fake import FakeVictim
from unfooled.victims.filtering import Filter, flagged, parse_goal
from unfooled.victims.function import FunctionVictim
from unfooled.victims.loading import load_victim
from unfooled.victims.thresholds import Thresholded

THREE = ("fine", "hate", "offensive")


def says(*scores: float) -> FunctionVictim:
    return FunctionVictim(lambda texts: np.array([scores] * len(texts)), labels=THREE)


@pytest.mark.parametrize(
    ("scores", "blocked"),
    [
        ((0.4, 0.3, 0.3), False),  # the two together are likelier, but the filter decides for fine
        ((0.2, 0.5, 0.3), True),
        ((0.2, 0.3, 0.5), True),
        ((0.45, 0.55, 0.0), True),
    ],
)
def test_the_decision_is_the_classifiers_own(scores: tuple[float, ...], blocked: bool) -> None:
    (row,) = Filter(says(*scores), ["hate", "offensive"]).predict(["a"])
    assert decided(row) == int(blocked)
    assert row.sum() == pytest.approx(1.0)


def test_of_two_classes_the_scores_stay() -> None:
    plain = FakeVictim()
    texts = ["a superb film", "dull", "a film"]
    assert np.allclose(Filter(plain, ["positive"]).predict(texts), plain.predict(texts), atol=1e-6)
    turned = Filter(plain, ["negative"]).predict(texts)
    assert np.allclose(turned, plain.predict(texts)[:, ::-1], atol=1e-6)


def test_thresholds_per_class_hold() -> None:
    for scores, blocked in (((0.3, 0.6, 0.1), False), ((0.15, 0.75, 0.1), True), ((0.6, 0.0, 0.4), True)):
        victim = Thresholded(says(*scores), {"hate": 0.7, "offensive": 0.3})
        (row,) = Filter(victim, ["hate", "offensive"]).predict(["a"])
        assert decided(row) == int(blocked), scores


def test_a_filter_that_only_says_yes_or_no() -> None:
    victim = Filter(FunctionVictim(lambda texts: ["b"] * len(texts), labels=("a", "b")), ["b"])
    assert victim.predict(["x"]).tolist() == [[0.0, 1.0]]
    assert "probabilities" not in victim.capabilities


def test_what_cannot_be_flagged_is_refused() -> None:
    with pytest.raises(VictimError, match="no class 'spam'"):
        flagged(["spam"], THREE)
    with pytest.raises(VictimError, match="nothing can pass"):
        flagged(THREE, THREE)
    with pytest.raises(VictimError, match="no class is named"):
        flagged([" "], THREE)
    assert flagged(["Offensive", "HATE"], THREE) == ("hate", "offensive")


def test_goals_as_they_are_typed() -> None:
    assert parse_goal("evade:spam") == (["spam"], {})
    assert parse_goal("evade:hate,offensive@0.8") == (
        ["hate", "offensive"],
        {"hate": "0.8", "offensive": "0.8"},
    )
    assert parse_goal("evade:hate@0.5,offensive@0.8")[1] == {"hate": "0.5", "offensive": "0.8"}
    for wrong in ("spam", "evade:", "reach:spam"):
        with pytest.raises(DataError, match="no goal"):
            parse_goal(wrong)


def test_one_blocked_class_for_another_is_no_success() -> None:
    """`vile` is hate; misspelt it is still offensive; only without both words does a text pass."""

    def score(texts: Sequence[str]) -> list[list[float]]:
        return [
            [0.1, 0.8, 0.1] if "vile" in text else [0.2, 0.1, 0.7] if "scum" in text else [0.9, 0.05, 0.05]
            for text in texts
        ]

    model = FunctionVictim(score, labels=THREE)
    rows = [("vile scum", "hate"), ("scum", "hate"), ("a nice day", "fine")]
    victim = Filter(model, ["hate", "offensive"])
    data = relabelled(Dataset.from_pairs(rows, labels=THREE), victim)
    run = attack(victim, data, only_class(load_recipe("deepwordbug"), "blocked"))
    found = {result.key: result for result in run.results()}
    # The second row is caught, though not as what it is; the third is none of the attacker's business.
    assert [found[key].outcome for key in range(3)] == ["success", "success", "skipped"]
    assert len(found[0].edits) == 2
    plain = attack(
        model, Dataset.from_pairs(rows, labels=THREE), only_class(load_recipe("deepwordbug"), "hate")
    )
    assert next(len(result.edits) for result in plain.results()) == 1  # hate became offence: no evasion


def test_data_without_a_row_to_block_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to block"):
        relabelled(Dataset.from_pairs([("dull", "negative")]), Filter(FakeVictim(), ["positive"]))


def test_it_can_be_loaded_again_and_stays_asynchronous() -> None:
    victim: Any = load_victim("fake", thresholds={"positive": 0.8}, flag=["positive"])
    assert victim.name == "fake (positive ≥ 0.8): positive"
    again = load_victim(victim.spec, **victim.options)
    assert again.fingerprint() == victim.fingerprint()
    assert again.fingerprint() != load_victim("fake", flag=["positive"]).fingerprint()

    class Remote(FakeVictim):
        concurrency = 3

        async def answer(self, items: Sequence[Any], /) -> Any:
            return self.predict(items)

    remote: Any = Filter(Remote(), ["positive"])
    assert is_async(remote)
    assert not is_async(Filter(FakeVictim(), ["positive"]))
    assert asyncio.run(remote.answer(["superb"])).shape == (1, 2)


def test_the_goal_of_the_attack_command(tmp_path: Path) -> None:
    data = tmp_path / "posts.csv"
    data.write_text("text,label\na superb film,positive\nso dull,negative\na wonderful film,positive\n")
    typed = ["attack", "--model", "fake", "--data", str(data), "--attack", "deepwordbug", "--json"]
    done = unfooled(*typed, "--goal", "evade:positive@0.6", "--out", str(tmp_path / "run"))
    assert json.loads(done.stdout)["attacked"] == 2
    results = Run(tmp_path / "run").results()
    assert [result.outcome for result in results] == ["success", "skipped", "success"]
    wrong = unfooled(*typed, "--goal", "evade:positive", "--only-label", "positive", code=2, cwd=tmp_path)
    assert "contradicts" in wrong.stderr
