"""What a plan will take, said before anything is run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toy_plan import REVIEWS, TEST, TRAIN, plan
from unfooled.cli.app import app
from unfooled.papers.forecast import forecast
from unfooled.papers.plans import NAMES, find_paper
from unfooled.papers.runner import StageRunner
from unfooled.papers.stages import AttackStage, Model, ShowStage, TrainStage, settings


def test_what_is_finished_takes_no_time(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    runner = StageRunner(tmp_path)
    before = forecast(plan(), runner)
    assert (before.left, before.stages) == (4, 4)
    assert before.hours > 0
    runner.carry_out(plan()[:3])
    after = forecast(plan(), runner)
    assert (after.left, set(after.seconds)) == (1, {"attack"})


def test_more_rows_draws_and_epochs_take_longer(tmp_path: Path) -> None:
    bert = TrainStage(name="bert", family="bert", data=TRAIN, options=settings(epochs=3))
    attack = AttackStage(name="a", model=Model(stage="bert"), data=TEST, attack="textfooler@code", limit=10)
    show = ShowStage(name="s", model=Model(stage="bert"), samples="a", draws=5)

    def seconds(*stages: object) -> dict[str, float]:
        return forecast((REVIEWS, *stages), StageRunner(tmp_path)).seconds  # type: ignore[arg-type]

    plain = seconds(bert, attack, show)
    longer = seconds(replace(bert, options=settings(epochs=6)), replace(attack, limit=20), show)
    assert longer["train"] == pytest.approx(2 * plain["train"])
    assert longer["attack"] == pytest.approx(2 * plain["attack"])
    voting = Model(stage="bert", defence="five", options=settings(copies=10))
    assert seconds(bert, replace(attack, model=voting))["attack"] > 5 * plain["attack"]
    averaged = replace(voting, draws=8)
    assert seconds(bert, replace(attack, model=averaged))["attack"] > 80 * plain["attack"]


def test_what_two_plans_share_is_counted_once(tmp_path: Path) -> None:
    counted: set[str] = set()
    runner = StageRunner(tmp_path)
    assert forecast(plan(), runner, counted=counted).left == 4
    assert forecast(plan(limit=9), runner, counted=counted).left == 1
    renamed = (REVIEWS, replace(plan()[1], name="bayes"))
    assert forecast(renamed, runner, counted=counted).left == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_full_protocol_is_forecast_without_a_network(name: str, tmp_path: Path) -> None:
    """Nothing of the hub is read."""
    stages = find_paper(name).plan("paper").stages
    here = tuple(stage for stage in stages if not stage.name.startswith("translation-"))
    found = forecast(here, StageRunner(tmp_path), gpu=True)
    assert found.left == found.stages
    assert found.hours > 0.1
    sources = {rows.source for stage in here if (rows := getattr(stage, "data", None))}
    told = {download.removeprefix("data set ") for download in found.downloads if "data set" in download}
    assert told == {source.removeprefix("hf:") for source in sources}
    assert not list(tmp_path.iterdir())


def test_the_command_runs_nothing(tmp_path: Path) -> None:
    arguments = ["reproduce", "lstm-jsma", "--scale", "smoke", "--dry-run", "--work", str(tmp_path / "work")]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["lstm-jsma"]
    assert told["left"] == told["stages"] > 10
    assert told["of"] == "core"
    plain = CliRunner().invoke(app, arguments)
    assert "stages to do, about" in plain.stdout
    assert not list(tmp_path.iterdir())
