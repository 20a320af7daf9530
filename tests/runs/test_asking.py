"""How a run puts its questions: chosen once, written down, and kept by whoever goes on with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import unfooled
from command_line import attack_fake
from reviews import sentences, write_csv
from toys import encoder
from unfooled.attacks.parts.constraints import SentenceSimilarity
from unfooled.core.recipe import Recipe, load_recipe, with_constraint
from unfooled.core.session import Settings
from unfooled.errors import CapReachedError, DataError, UnfooledError, UnknownNameError, UserError
from unfooled.plugins import registry
from unfooled.report.tables import footnotes
from unfooled.runs import order as order_module
from unfooled.runs.attack import Observer, Run, attack
from unfooled.runs.file import RunFile
from unfooled.runs.surrogate import FILE
from waiting import eventually

LABELS = ("negative", "positive")


class Notes(Observer):
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, message: str) -> None:
        self.told.append(message)


class Unasked(Observer):
    """What the user mistyped is said before the victim is asked anything."""

    def checked(self, report: Any) -> None:
        raise AssertionError("the victim was asked")


@pytest.fixture
def data(tmp_path: Path) -> Any:
    return unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(120)))


def header(run: Run) -> dict[str, Any]:
    with closing(RunFile.read(run.path)) as file:
        return file.header


def digest(path: Path) -> str:
    with closing(RunFile.read(path)) as file:
        return file.content_digest()


# -- the order -------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Misspellings under a similarity constraint whose encoder is a toy."""
    own = registry.load

    def load(kind: str, name: str) -> Any:
        return (lambda variant: encoder()) if (kind, name) == ("oracle", "encode") else own(kind, name)

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr("unfooled.core.session._fingerprint", lambda name, variant: "toy")
    similar = SentenceSimilarity(
        threshold=0.5, scale="cosine", window=None, encoder="toy", published_for="toy"
    )
    return with_constraint(load_recipe("deepwordbug"), similar)


def costing(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(order_module, "_seconds", lambda name, texts, opened: seconds)


def test_the_costs_decide_once_and_a_run_that_goes_on_keeps_the_order(
    tmp_path: Path, data: Any, measured: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    costing(monkeypatch, 60.0)
    notes = Notes()
    run = attack("fake", data, measured, out=tmp_path / "run", order="auto", limit=20, observer=notes)
    assert any(line.startswith("order: victim first (a text costs the victim") for line in notes.told)
    assert header(run)["environment"]["attack"].endswith("+victim-first")
    costing(monkeypatch, 0.0)
    attack("fake", data, measured, out=tmp_path / "run", order="auto", limit=40)
    attack("fake", data, measured, out=tmp_path / "named", order="victim-first", limit=40)
    assert digest(tmp_path / "run") == digest(tmp_path / "named")
    plain = attack("fake", data, measured, out=tmp_path / "plain", order="auto", limit=40)
    assert "asking" not in header(plain)["identity"]["recipe"]
    default = attack("fake", data, measured, out=tmp_path / "default", limit=40)
    assert digest(plain.path) == digest(default.path)
    texts = [[(result.outcome, result.perturbed) for result in each.results()] for each in (run, plain)]
    assert texts[0] == texts[1]
    with pytest.raises(UnfooledError, match="other settings"):
        attack("fake", data, measured, out=tmp_path / "run", limit=40)


def test_an_order_that_cannot_be_says_why(tmp_path: Path, data: Any) -> None:
    with pytest.raises(UnknownNameError, match="asks no model"):
        attack("fake", data, "deepwordbug", order="victim-first")
    with pytest.raises(UserError, match="constraints-first, victim-first, auto"):
        attack("fake", data, "deepwordbug", order="fastest", observer=Unasked())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="each choose another order"):
        attack("fake", data, "deepwordbug", order="auto", shard="1/2")
    notes = Notes()
    attack("fake", data, "deepwordbug", order="auto", limit=5, observer=notes)
    assert any("constraints first, since" in line for line in notes.told)


def test_what_a_text_costs_is_measured(data: Any) -> None:
    toy = encoder()
    texts = [example.text() for example in data][:5]
    assert order_module._seconds("encode:toy", texts, {"encode:toy": toy}) > 0
    assert len(toy.asked) == 6, "one to load it, then all"


def queries_of_successes(run: Run) -> float:
    """No misspelling makes the fake victim call a text positive, so every other row withstands."""
    asked = [result.queries for result in run.results() if result.outcome == "success"]
    return sum(asked) / len(asked)


# -- the surrogate ---------------------------------------------------------------------------------


def guided(data: Any, out: Path | None, **more: Any) -> Run:
    return attack("fake", data, "deepwordbug", out=out, surrogate="auto", surrogate_queries=400, **more)


def test_it_asks_less_and_counts_what_the_fit_asked(tmp_path: Path, data: Any) -> None:
    notes = Notes()
    run = guided(data, tmp_path / "run", observer=notes)
    plain = attack("fake", data, "deepwordbug", out=tmp_path / "plain")
    summary, before = run.summary(), plain.summary()
    assert queries_of_successes(run) < queries_of_successes(plain) / 2
    assert summary.queries.value < before.queries.value
    assert summary.success_rate.value == before.success_rate.value
    assert 300 < summary.fitting <= 400
    assert before.fitting == 0
    assert summary.to_dict()["fitting_queries"] == summary.fitting
    assert any("more fitted the surrogate" in line for line in footnotes(summary))
    assert any(line.startswith("surrogate: fitted on") for line in notes.told)
    facts = json.loads((tmp_path / "run" / FILE).read_text())["facts"]
    assert facts["queries"] == summary.fitting
    identity = header(run)["identity"]
    assert identity["recipe"]["asking"]["surrogate"] == "auto"
    assert len(identity["resources"]["surrogate:auto"]) == 64


def test_workers_window_limit_and_memory_change_nothing(tmp_path: Path, data: Any) -> None:
    whole = guided(data, tmp_path / "whole")
    guided(data, tmp_path / "two", workers=2)
    guided(data, tmp_path / "narrow", settings=Settings(window=3))
    guided(data, tmp_path / "grown", limit=30)
    guided(data, tmp_path / "grown")
    assert {digest(tmp_path / name) for name in ("two", "narrow", "grown")} == {digest(whole.path)}
    assert list(guided(data, None).results()) == list(whole.results())
    one = next(whole.results())
    (alone,) = guided(data, None, keys=[one.key]).results()
    assert alone == one


def test_a_moved_run_goes_on_and_a_lost_surrogate_is_fitted_again(tmp_path: Path, data: Any) -> None:
    whole = guided(data, tmp_path / "whole")
    guided(data, tmp_path / "here", limit=30)
    (tmp_path / "here").rename(tmp_path / "there")
    guided(data, tmp_path / "there", limit=60)
    (tmp_path / "there" / FILE).unlink()
    run = guided(data, tmp_path / "there")
    assert digest(run.path) == digest(whole.path)
    assert run.summary().fitting == whole.summary().fitting, "counted once, however often it was looked at"
    (tmp_path / "there" / FILE).write_text("{}")
    assert digest(guided(data, tmp_path / "there").path) == digest(whole.path)


def test_another_seed_fits_another_one(tmp_path: Path, data: Any) -> None:
    guided(data, tmp_path / "run", limit=10)
    before = (tmp_path / "run" / FILE).read_bytes()
    with pytest.raises(UnfooledError, match="seed"):
        guided(data, tmp_path / "run", limit=10, settings=Settings(seed=1))
    guided(data, tmp_path / "run", limit=10, settings=Settings(seed=1), restart=True)
    assert (tmp_path / "run" / FILE).read_bytes() != before


def test_what_a_run_cannot_use_is_not_paid_for(tmp_path: Path, data: Any) -> None:
    guided(data, tmp_path / "run", limit=10)
    before = (tmp_path / "run" / FILE).read_bytes()
    with pytest.raises(UnfooledError, match="other settings: seed"):
        guided(data, tmp_path / "run", limit=10, settings=Settings(seed=1))
    assert (tmp_path / "run" / FILE).read_bytes() == before, "the run that is there can still go on"
    attack("fake", data, "deepwordbug", out=tmp_path / "plain", limit=10)
    with pytest.raises(UnfooledError, match="without a surrogate"):
        guided(data, tmp_path / "plain", limit=10)
    assert not (tmp_path / "plain" / FILE).exists()


def test_the_fit_is_paid_for_under_the_cap(tmp_path: Path, data: Any) -> None:
    caps = unfooled.Caps(per_query=0.01, max_cost=3.0)
    with pytest.raises(CapReachedError, match=r"(?s)400 answers would cost 4.*--surrogate-queries"):
        guided(data, tmp_path / "dear", caps=caps)
    assert not (tmp_path / "dear").exists()
    caps = unfooled.Caps(per_query=0.01, max_cost=5.0)
    with pytest.raises(CapReachedError, match="stopped at"):
        guided(data, tmp_path / "run", caps=caps)
    with closing(RunFile.read(tmp_path / "run")) as file:
        asked = sum(result.queries for result in file.results())
        fitted = file.counters()["fitting"]["asked"]
    assert fitted + asked <= 500


def test_a_run_in_memory_asks_as_no_other_run_does(
    tmp_path: Path, data: Any, measured: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack("fake", data, measured, out=tmp_path / "run", order="victim-first", limit=5)
    monkeypatch.chdir(tmp_path / "run")
    costing(monkeypatch, 0.0)
    notes = Notes()
    attack("fake", data, measured, order="auto", limit=5, observer=notes)
    assert any(line.startswith("order: constraints first") for line in notes.told)


def test_a_model_of_the_users_own(tmp_path: Path, data: Any) -> None:
    run = attack("fake", data, "deepwordbug", out=tmp_path / "run", surrogate="fake")
    assert run.summary().fitting == 0
    assert header(run)["identity"]["recipe"]["asking"]["surrogate"] == "fake"
    assert queries_of_successes(run) < 6
    guided(data, tmp_path / "fitted")
    again = attack("fake", data, "deepwordbug", surrogate=str(tmp_path / "fitted" / FILE), limit=20)
    assert again.summary().fitting == 0


def test_a_guided_attack_asks_in_the_order_that_costs_least(
    tmp_path: Path, data: Any, measured: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, **more: Any) -> Run:
        return attack(
            "fake", data, measured, out=tmp_path / name, surrogate="auto", surrogate_queries=400, **more
        )

    costing(monkeypatch, 60.0)
    notes = Notes()
    first = run("auto", order="auto", limit=10, observer=notes)
    assert any(line.startswith("order: victim first (a text costs") for line in notes.told)
    assert header(first)["identity"]["recipe"]["asking"]["victim_first"] is True
    costing(monkeypatch, 0.0)
    run("auto", order="auto", limit=30)
    run("named", order="victim-first", limit=30)
    assert digest(tmp_path / "auto") == digest(tmp_path / "named"), "a run that goes on keeps its order"
    plain = run("plain", limit=30)
    assert header(plain)["identity"]["recipe"]["asking"]["victim_first"] is False


def test_the_fit_is_as_large_as_the_attack_has_use_for(tmp_path: Path, data: Any) -> None:
    attack("fake", data, "deepwordbug", out=tmp_path / "run", surrogate="auto", limit=5)
    facts = json.loads((tmp_path / "run" / FILE).read_text())["facts"]
    assert facts["queries"] <= 500, "four options a word, and few words"
    with pytest.raises(UnfooledError, match="asked_for"):
        guided(data, tmp_path / "run", limit=5)


def test_what_cannot_be_guided_says_why(tmp_path: Path, data: Any) -> None:
    with pytest.raises(UnknownNameError, match="cannot be guided"):
        attack("fake", data, "input-reduction", surrogate="auto")
    with pytest.raises(UnknownNameError, match="cannot ask the victim first"):
        attack("fake", data, "deepwordbug", surrogate="auto", order="victim-first")
    with pytest.raises(DataError, match="too few"):
        guided(unfooled.load_data([("a superb film", "positive")]), tmp_path / "few", limit=1)
    with pytest.raises(UserError, match="at least 1"):
        attack("fake", data, "deepwordbug", surrogate="auto", surrogate_queries=0)


def test_killed_and_continued_equals_uninterrupted(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", sentences(300))
    command = attack_fake(tmp_path / "d.csv")
    command += ["--attack", "deepwordbug", "--surrogate", "auto", "--surrogate-queries", "400"]
    command += ["--out", str(tmp_path / "run"), "--window", "8"]
    process = subprocess.Popen(
        [*command, "--victim-option", "delay=0.05"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def written() -> bool:
        assert process.poll() is None
        try:
            with closing(RunFile.read(tmp_path / "run")) as file:
                return sum(1 for _ in file.results()) >= 10
        except UnfooledError:
            return False

    eventually(written)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    again = subprocess.run(
        [*command, "--workers", "2"], capture_output=True, text=True, timeout=120, check=False
    )
    assert again.returncode == 0, again.stderr
    whole = attack(
        "fake",
        tmp_path / "d.csv",
        "deepwordbug",
        out=tmp_path / "whole",
        surrogate="auto",
        surrogate_queries=400,
    )
    assert digest(tmp_path / "run") == digest(whole.path)
