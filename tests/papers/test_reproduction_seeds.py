"""Models trained with several seeds: what is done again, and intervals that cover rows and seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toy_plan import REVIEWS, TEST, TRAIN, plan
from unfooled.papers.claims import AtLeast, Claim, More
from unfooled.papers.crossed import crossed_interval
from unfooled.papers.findings import Findings, Quantity, interval_of_enough
from unfooled.papers.runner import StageRunner
from unfooled.papers.seeds import with_seeds
from unfooled.papers.stages import (
    AttackStage,
    ChosenStage,
    HardenStage,
    Model,
    Stage,
    TrainStage,
    TransferStage,
    WordsStage,
    settings,
)

SVM = TrainStage(name="svm", family="svm", data=TRAIN, options=settings(epochs=3))
BAYES = TrainStage(name="nb", family="naive-bayes", data=TRAIN)


def attack(name: str, model: str) -> AttackStage:
    changes = settings(**{"search.words": "{words}"})
    return AttackStage(
        name=name, model=Model(stage=model), data=TEST, attack="strongest-words@3", changes=changes
    )


def test_what_stands_on_a_model_is_done_again_with_each_seed() -> None:
    stages: tuple[Stage, ...] = (
        REVIEWS,
        SVM,
        BAYES,
        WordsStage(name="words", data=TRAIN),
        attack("svm-3", "svm"),
        attack("nb-3", "nb"),
        TransferStage(name="nb-to-svm", run="nb-3", model=Model(stage="svm")),
        ChosenStage(name="rows", models=(Model(stage="svm"), Model(stage="nb")), data=TEST, n=2, of=9),
        replace(attack("svm-few", "svm"), rows="rows"),
        HardenStage(name="fact", method="fact", model="svm", data=TRAIN),
    )
    made: dict[str, Any] = {stage.name: stage for stage in with_seeds(stages, {"svm": 3}, once=("svm-few",))}
    assert set(made) == {stage.name for stage in stages} | {
        f"{name}~{number}" for name in ("svm", "svm-3", "nb-to-svm", "fact") for number in (1, 2)
    }
    assert dict(made["svm~2"].options) == {"epochs": 3, "seed": 2}
    assert dict(made["fact~1"].options) == {"seed": 1}
    assert (made["fact~1"].method, made["fact~1"].model) == ("fact", "svm~1")
    assert made["svm-3~1"].model.stage == "svm~1"
    assert made["svm-3~1"].changes == made["svm-3"].changes  # the words are nobody's model
    assert (made["nb-to-svm~1"].run, made["nb-to-svm~1"].model.stage) == ("nb-3", "svm~1")
    assert [model.stage for model in made["rows"].models] == ["svm", "nb", "svm~1", "svm~2"]
    assert with_seeds(stages, {"svm": 1}) == tuple(with_seeds(stages, {}))


def test_figures_are_of_all_seeds(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    stages = (*plan(), SVM, replace(attack("svm-3", "svm"), limit=8))
    done = StageRunner(tmp_path).carry_out(with_seeds(stages, {"svm": 2}))
    found = Findings(done)
    assert done["svm"].fingerprint != done["svm~1"].fingerprint
    estimate = found.estimate(Quantity("svm-3", "after"))
    assert (estimate.n, estimate.seeds) == (8, 2)
    assert found.estimate(Quantity("swapped", "after")).seeds == 1
    # The one trained once stands beside each of the two.
    rule = More(Quantity("swapped", "lost"), Quantity("svm-3", "lost"), paired=True)
    judged = Claim("x", "s", "p", "h", rule).judge(found)
    assert "n = 8, 2 seeds" in judged.measured
    assert "n = 8, 2 seeds" in AtLeast(Quantity("svm-3", "after"), 0.5).judge(found).measured


def test_a_run_that_was_not_done_with_a_seed_leaves_that_seed_out(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    again = replace(attack("svm-again", "svm"), rows="svm-3")
    stages = (*plan()[:3], SVM, replace(attack("svm-3", "svm"), limit=8), again)
    found = Findings(StageRunner(tmp_path).carry_out(with_seeds(stages, {"svm": 2}, once=("svm-again",))))
    assert len(found.by_seed(Quantity("svm-3"))) == 2
    assert len(found.by_seed(Quantity("svm-3", also=("svm-again",)))) == 1


def covered(rng: np.random.Generator, rows: int, seeds: int, spread: float, tries: int) -> float:
    """How often the interval of a crossed sample holds the truth, 0; `spread` is that of the seeds."""
    hits = 0
    for _ in range(tries):
        values = rng.normal(size=(rows, 1)) + rng.normal(size=(rows, seeds))
        values += rng.normal(scale=spread, size=(1, seeds))
        by_seed = [dict(enumerate(column)) for column in values.T]
        low, high = crossed_interval(by_seed, interval_of_enough, 0.95)
        hits += low <= 0.0 <= high
    return hits / tries


@pytest.mark.parametrize(("seeds", "least"), [(2, 0.87), (3, 0.91)])
@pytest.mark.parametrize("spread", [0.0, 0.2, 0.8])
def test_intervals_cover_rows_and_seeds(seeds: int, least: float, spread: float) -> None:
    """Two seeds tell little of their own spread: the worst is there, with 89 of 100 in long simulations."""
    assert covered(np.random.default_rng(0), 60, seeds, spread, tries=400) > least


def test_rows_alone_would_not_cover_seeds() -> None:
    rng = np.random.default_rng(0)
    assert covered(rng, 60, 1, 0.8, tries=400) < 0.5


def test_seeds_that_agree_leave_the_interval_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    rows = dict(enumerate(rng.normal(size=40)))
    alone = crossed_interval([rows], interval_of_enough, 0.95)
    assert crossed_interval([rows, dict(rows)], interval_of_enough, 0.95) == pytest.approx(alone)
