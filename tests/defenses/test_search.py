"""Random search: repeatable draws, a stop that loses nothing, the best kept as a model."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import sentences, write_csv
from unfooled.core import session
from unfooled.data.dataset import Dataset
from unfooled.defenses import search as searching
from unfooled.defenses.five import FiveVictim
from unfooled.defenses.search import search
from unfooled.errors import DataError, UnknownNameError, UserError
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import LabelledTexts
from unfooled.victims.loading import load_victim

pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    from unfooled.training.trainer import train

    out = tmp_path_factory.mktemp("base") / "lstm"
    options = {"epochs": 1, "vectors": "none", "hidden": 8, "batch": 16}
    train("lstm", Dataset.from_pairs(sentences(60), name="tiny"), out, options=options)
    return str(out)


def rows(n: int, seed: int = 1) -> LabelledTexts:
    found = sentences(n, seed=seed)
    labels = np.array([int(label == "positive") for _, label in found], dtype=np.int64)
    return LabelledTexts([text for text, _ in found], labels)


SMALL: dict[str, Any] = {"clean": rows(12), "premade": rows(8, seed=2)}


class Stop(TrainObserver):
    def __init__(self, after: int) -> None:
        self.after = after

    def trial(self, number: int, total: int, options: Any) -> None:
        if number > self.after:
            raise KeyboardInterrupt


def test_a_search_keeps_the_best_as_a_model(base: str, tmp_path: Path) -> None:
    found = search("five", base, tmp_path / "s", trials=4, fixed={"words": "2"}, **SMALL)
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    assert found.best.value == max(trial.value for trial in found.trials)
    for trial in found.trials:
        assert trial.value == pytest.approx(0.5 * trial.clean + 0.5 * trial.premade)
        assert trial.settings["words"] == "2"
        assert 0.02 <= trial.settings["sigma"] <= 10
        assert 2 <= trial.settings["copies"] <= 15
    assert len({trial.settings["sigma"] for trial in found.trials}) == 4
    # The model lies elsewhere, so it is named again: a folder may only name what is below or beside it.
    victim = load_victim(str(found.path), model=base)
    assert isinstance(victim, FiveVictim)
    assert victim.settings.copies == found.best.settings["copies"]
    decided = victim.predict(SMALL["clean"].texts).argmax(axis=1)
    assert float(np.mean(decided == SMALL["clean"].labels)) == pytest.approx(found.best.clean)
    record = json.loads((tmp_path / "s" / "search.json").read_text())
    assert record["best"]["settings"] == dict(found.best.settings)
    assert record["base"].keys() == {"clean", "premade"}
    for name in ("history.png", "importance.png"):
        assert (tmp_path / "s" / name).read_bytes()[:4] == b"\x89PNG"


def test_a_search_judges_by_the_deployed_decision(base: str, tmp_path: Path) -> None:
    # No score reaches the threshold, so every text is decided negative, with the defence and without.
    share = float(np.mean(SMALL["clean"].labels == 0))
    strict = {"positive": 0.9999}
    found = search("five", base, tmp_path / "s", trials=1, thresholds=strict, **SMALL)
    assert found.base["clean"] == pytest.approx(share)
    assert found.best.clean == pytest.approx(share)
    with pytest.raises(UserError, match="other settings: model"):
        search("five", base, tmp_path / "s", trials=2, resume=True, **SMALL)
    assert len(search("five", base, tmp_path / "s", trials=2, thresholds=strict, resume=True, **SMALL).trials)


def test_a_stopped_search_goes_on_as_if_it_had_not_been(base: str, tmp_path: Path) -> None:
    whole = search("five", base, tmp_path / "whole", trials=3, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        search("five", base, tmp_path / "cut", trials=3, observer=Stop(1), **SMALL)
    with pytest.raises(UserError, match="already holds a search"):
        search("five", base, tmp_path / "cut", trials=3, **SMALL)
    on = search("five", base, tmp_path / "cut", trials=3, resume=True, **SMALL)
    assert [dict(trial.settings) for trial in on.trials] == [dict(trial.settings) for trial in whole.trials]
    assert [trial.value for trial in on.trials] == [trial.value for trial in whole.trials]
    more = search("five", base, tmp_path / "cut", trials=4, resume=True, **SMALL)
    assert len(more.trials) == 4
    with pytest.raises(UserError, match="other settings: balance"):
        search("five", base, tmp_path / "cut", trials=4, resume=True, balance=0.9, **SMALL)
    again = search("five", base, tmp_path / "cut", trials=1, restart=True, **SMALL)
    assert len(again.trials) == 1


def test_a_damaged_search_is_told(base: str, tmp_path: Path) -> None:
    out = tmp_path / "s"
    search("five", base, out, trials=2, **SMALL)
    with closing(sqlite3.connect(out / "search.sqlite")) as database, database:
        assert database.execute("UPDATE trial_values SET value = 1.0").rowcount == 2
    with pytest.raises(UserError, match="checksum of trial 1 does not fit"):
        search("five", base, out, trials=3, resume=True, **SMALL)
    search("five", base, out, trials=1, restart=True, **SMALL)
    shutil.rmtree(out / "best")
    with pytest.raises(UserError, match="best model of the search is gone"):
        search("five", base, out, trials=1, resume=True, **SMALL)
    (out / "search.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UserError, match="no record of a search"):
        search("five", base, out, trials=1, resume=True, **SMALL)


def test_time_is_up(base: str, tmp_path: Path) -> None:
    found = search("five", base, tmp_path / "s", trials=50, minutes=0, **SMALL)
    assert len(found.trials) == 1


def test_settings_that_do_not_fit_cost_one_trial(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unfooled.defenses.saving import wrap

    calls: list[Any] = []

    def sometimes(method: str, model: Any, settings: Any) -> Any:
        calls.append(settings)
        if len(calls) == 1:
            raise UserError("these do not fit")
        return wrap(method, model, settings)

    monkeypatch.setattr(searching, "wrap", sometimes)
    found = search("five", base, tmp_path / "s", trials=2, **SMALL)
    assert [trial.number for trial in found.trials] == [1]


def test_fact_is_searched_by_training(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reviews import BAD, GOOD
    from toys import encoder, neighbours, tags
    from unfooled.plugins import registry

    near = {word: [other for other in group if other != word] for group in (GOOD, BAD) for word in group}
    made: dict[str, Any] = {"neighbours": neighbours(near), "tag": tags({}), "encode": encoder()}
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda kind, name: (lambda _: made[name]) if kind == "oracle" else load(kind, name)
    )
    monkeypatch.setattr(session, "missing_resources", lambda names: [])
    data = Dataset.from_pairs(sentences(40), name="tiny")
    found = search(
        "fact", base, tmp_path / "s", trials=2, data=data, fixed={"epochs": 1, "alternatives": 1}, **SMALL
    )
    assert len(found.trials) == 2
    assert load_victim(str(found.path)).predict(["great"]).shape == (1, 2)
    assert not list((tmp_path / "s" / "trials").iterdir())


def test_mistakes_are_named(base: str, tmp_path: Path) -> None:
    out = tmp_path / "s"
    with pytest.raises(UserError, match="no ranges"):
        search("retune", base, out, **SMALL)
    with pytest.raises(UnknownNameError, match="no defense called"):
        search("fivee", base, out, **SMALL)
    with pytest.raises(DataError, match="no pre-made samples"):
        search("five", base, out, clean=rows(3), premade=rows(0))
    with pytest.raises(UserError, match="nothing to train on"):
        search("fact", base, out, **SMALL)
    with pytest.raises(UserError, match="has no setting"):
        search("five", base, out, fixed={"sgima": 1}, **SMALL)
    assert not out.exists()


def test_the_command_line(base: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from unfooled.cli.app import app

    data = write_csv(tmp_path / "rows.csv", sentences(40, seed=3))
    command = ["search", "--method", "five", "--model", base, "--data", str(data), "--limit", "20"]
    command += ["--attack", "deepwordbug", "--out", str(tmp_path / "s"), "--set", "copies=2"]
    done = CliRunner().invoke(app, [*command, "--trials", "2"])
    assert done.exit_code == 0, done.output
    assert "best of 2 trials" in done.stdout
    assert (tmp_path / "s" / "premade" / "run.sqlite").is_file()
    done = CliRunner().invoke(app, [*command, "--trials", "3", "--resume", "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["trials"]) == 3
    other = ["deepwordbug@paper" if word == "deepwordbug" else word for word in command]
    refused = CliRunner().invoke(app, [*other, "--trials", "1"])
    assert "--restart" in str(refused.exception)
    done = CliRunner().invoke(app, [*other, "--trials", "1", "--restart"])  # the samples are made again, too
    assert done.exit_code == 0, done.output
