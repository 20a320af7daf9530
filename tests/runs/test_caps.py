"""What a run may cost: told before, bounded while it goes on, and the same run in the end."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import unfooled
from command_line import unfooled as run_command
from reviews import sentences, write_csv
from unfooled.core.result import Example
from unfooled.core.session import Life
from unfooled.errors import CapReachedError, UserError
from unfooled.runs.caps import SPENT, Caps, Spending, tokens_of
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "d.csv", sentences(60))


class CountingVictim(FakeVictim):
    """Knows how many texts it was asked, which is what its owner would bill."""

    billed = 0

    def predict(self, texts: Any, /) -> Any:
        self.billed += len(texts)
        return super().predict(texts)


def digest(run: Path) -> str:
    with closing(RunFile.read(run)) as file:
        return file.content_digest()


def attack(data: Path, out: Path, **more: Any) -> unfooled.Run:
    settings = unfooled.Settings(window=4)
    return unfooled.attack(
        more.pop("victim", "fake"), data, "deepwordbug", out=out, settings=settings, **more
    )


def test_a_run_stops_before_it_costs_more_and_goes_on_under_a_higher_cap(tmp_path: Path, data: Path) -> None:
    victim = CountingVictim()
    attack(data, tmp_path / "whole", victim=FakeVictim())
    caps = Caps(per_query=0.01, max_cost=2.0)
    with pytest.raises(CapReachedError, match=r"(?s)stopped at .* of 2 .*higher --max-cost to go on"):
        attack(data, tmp_path / "run", victim=victim, caps=caps)
    looks = 60 + 8 + 8 + 1 + 1  # at the victim, before the attack
    assert looks < victim.billed <= 200 + 12  # the last batch of questions is asked as a whole
    with closing(RunFile.read(tmp_path / "run")) as file:
        done = sum(file.count().values())
        assert 0 < done < 60
        spent = file.counters()[SPENT]["queries"]
    assert spent == victim.billed
    asked = victim.billed
    with pytest.raises(CapReachedError, match=r"of 2 \(--max-cost\) are spent, and to look"):
        attack(data, tmp_path / "run", victim=victim, caps=caps)  # nothing is left of it, not even a look
    assert victim.billed == asked
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert sum(file.count().values()) == done
    attack(data, tmp_path / "run", caps=Caps(per_query=0.01, max_cost=1000.0))
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_what_is_spent_is_known_after_a_kill(tmp_path: Path) -> None:
    """Examples that were under way are begun again: what they cost is in no result."""
    with RunFile.open(tmp_path / "run", {"identity": {}, "environment": {}}) as file:
        spending = Spending(Caps(per_query=0.01, max_cost=100.0), file, [])
        spending.working(lambda: Life(answered=70))
        spending.check()
        assert file.counters()[SPENT] == {"queries": 70}
        spending.working(lambda: Life(answered=80))
        spending.check()  # not every answer is worth a write
        assert file.counters()[SPENT] == {"queries": 70}


def test_looking_at_what_is_not_read_costs_nothing() -> None:
    class Cutting(FakeVictim):
        def unread(self, texts: Any, /) -> list[float]:
            return [0.25] * len(texts)

    session = unfooled.Session(Cutting(), unfooled.load_recipe("deepwordbug"))
    examples = [Example(key, (("text", f"a superb film {key}"),), 1, "text") for key in range(5)]
    results = list(session.attack(examples))
    assert [dict(result.facts)["unread"] for result in results] == [0.25] * 5
    assert session.life().answered == session.engine.traffic["victim"].computed


def test_the_same_in_several_processes(tmp_path: Path, data: Path) -> None:
    attack(data, tmp_path / "whole")
    with pytest.raises(CapReachedError):
        attack(data, tmp_path / "run", caps=Caps(per_query=0.01, max_cost=1.0), workers=2)
    attack(data, tmp_path / "run", caps=Caps(per_query=0.01, max_cost=1000.0), workers=2)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_no_hours_are_no_examples(tmp_path: Path, data: Path) -> None:
    with pytest.raises(CapReachedError, match=r"(?s)--max-hours.*repeat the command to go on"):
        attack(data, tmp_path / "run", caps=Caps(max_hours=0.0))
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert file.count() == {}
    attack(data, tmp_path / "run", caps=Caps(max_hours=100.0))
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert sum(file.count().values()) == 60


def test_prices_count_tokens_of_four_characters() -> None:
    assert tokens_of((("premise", "12345678"), ("hypothesis", "9"))) == 3
    assert Caps(per_query=1.0, per_token=0.5).price(3) == 2.5


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_cost": 3.0}, "no price"),
        ({"per_query": -1.0}, "at least 0"),
        ({"max_hours": -1.0}, "at least 0"),
        ({"max_hours": math.nan}, "at least 0"),
        ({"per_query": 1.0, "max_cost": math.nan}, "at least 0"),
        ({"per_token": math.inf}, "without end"),
    ],
)
def test_caps_that_make_no_sense(given: dict[str, float], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Caps(**given)


def test_the_commands(tmp_path: Path, data: Path) -> None:
    common = [*("attack", "--model", "fake", "--data", str(data), "--attack", "deepwordbug")]
    common += ["--out", str(tmp_path / "run"), "--price-per-query", "0.01"]
    said = run_command(*common, "--dry-run", "--workers", "2").stdout
    assert "examples  60" in said
    assert "money     about" in said
    assert "with 2 workers" in said
    assert not (tmp_path / "run").exists()
    told = json.loads(run_command(*common, "--dry-run", "--json", "--pilot", "30").stdout)
    run_command(*common, "--max-cost", "1.5", code=5)
    left = json.loads(run_command(*common, "--dry-run", "--json").stdout)
    assert 0 < left["finished"] < 60
    assert left["left"] == 60 - left["finished"]
    stopped = run_command(*common, "--max-cost", "1.5", code=5).stderr
    assert "nothing in" in stopped
    assert "of 0 examples" not in stopped
    assert "higher --max-cost" in stopped
    run_command(*common, "--max-cost", "50")
    asked = sum(result.queries for result in unfooled.Run(tmp_path / "run").results())
    assert told["queries"]["low"] <= asked <= told["queries"]["high"]
    assert told["cost"]["value"] == pytest.approx(0.01 * told["queries"]["value"])
    part = json.loads(run_command(*common, "--dry-run", "--json", "--limit", "40", "--shard", "2/3").stdout)
    assert part["examples"] == 13
    assert "no price" in run_command(*common[:-2], "--max-cost", "3", code=2).stderr


def test_what_a_surrogate_is_fitted_on_is_paid_as_well(tmp_path: Path, data: Path) -> None:
    victim = CountingVictim()
    fit: dict[str, Any] = {"surrogate": "auto", "surrogate_queries": 300}
    with pytest.raises(
        CapReachedError,
        match=r"(?s)300 answers would cost 3, after a look .*more than 2 .*--surrogate-queries",
    ):
        attack(data, tmp_path / "run", victim=victim, caps=Caps(per_query=0.01, max_cost=2.0), **fit)
    assert victim.billed <= 2 * 60 + 60  # looked at before the attack; nothing was fitted
    assert not (tmp_path / "run").exists()
    with pytest.raises(CapReachedError, match=r"stopped at [34]\.?\d* of 4 "):
        attack(data, tmp_path / "run", caps=Caps(per_query=0.01, max_cost=4.0), **fit)
    with closing(RunFile.read(tmp_path / "run")) as file:
        counted = file.counters()
        assert counted["fitting"]["asked"] > 200
        assert counted["fitting"]["asked"] + 77 <= counted[SPENT]["queries"] <= 400


def test_a_surrogate_of_very_few_answers_is_refused_before_it_costs(tmp_path: Path, data: Path) -> None:
    victim = CountingVictim()
    with pytest.raises(UserError, match=r"(?s)3 answers .* too few.*--surrogate-queries of at least 50"):
        attack(data, tmp_path / "run", victim=victim, surrogate="auto", surrogate_queries=3)
    assert victim.billed <= 2 * 60 + 60


def test_a_dry_run_tells_what_the_surrogate_and_the_order_add(tmp_path: Path, data: Path) -> None:
    run = ("attack", "--model", "fake", "--data", str(data), "--attack", "deepwordbug")
    common = (*run, "--dry-run", "--out", str(tmp_path / "run"))
    said = run_command(*common, "--surrogate", "auto", "--surrogate-queries", "300").stdout
    assert "surrogate up to 300 queries more" in said
    assert "cannot ask the victim first" in run_command(*common, "--order", "victim-first", code=2).stderr
    assert not (tmp_path / "run").exists()
