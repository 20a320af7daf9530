"""A filter behind an endpoint that fails: the results of a healthy one, nothing counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx")

from chat_server import ChatServer
from unfooled.checks.guard import FilterTest, guard
from unfooled.checks.suites import Suite, SuiteAttack
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.runs.caps import Caps
from unfooled.runs.purse import Purse
from unfooled.victims.filtering import Filter
from unfooled.victims.loading import load_victim

LABELS = ("negative", "positive")
PRAISE = ("superb", "wonderful", "great", "brilliant", "moving")
ROWS = [
    *[(f"a {word} film number {n}", "positive") for n, word in enumerate(PRAISE * 3)],
    *[(f"a {word} film number {n}", "negative") for n, word in enumerate(("dull", "awful", "bad") * 3)],
]
SUITE = Suite(
    name="toy",
    version="1",
    summary="",
    attacks=(
        SuiteAttack("leetspeak@plain"),
        SuiteAttack("smuggle-bidi@words"),
        SuiteAttack("typos@random"),
    ),
    wave=8,
)


@pytest.fixture
def servers() -> Iterator[list[ChatServer]]:
    begun: list[ChatServer] = []
    yield begun
    for server in begun:
        server.stop()


def climb(server: ChatServer, out: Path, **more: Any) -> FilterTest:
    victim = load_victim(
        f"openai:m@{server.url}", labels=LABELS, flag=["positive"], backoff=0.01, concurrency=4, **more
    )
    assert isinstance(victim, Filter)
    data = relabelled(Dataset.from_pairs(ROWS, labels=LABELS), victim)
    caps = Caps(per_query=1.0, per_token=1.0)
    return guard(victim, data, out=out, suite=SUITE, look_alikes=["a great bore"], caps=caps)


def plain(result: FilterTest) -> dict[str, Any]:
    """All but what was measured by the clock, and where the server listens."""
    told = result.to_dict()
    for rung in told["rungs"]:
        del rung["seconds"]
    for cure in [*told["cures"], told["best"] or {}]:
        cure.pop("milliseconds", None)
    for name in ("fingerprint", "victim", "date"):
        del told[name]
    return told


@pytest.mark.parametrize("gives", ["logprobs", "words"])
def test_a_faulty_endpoint_gives_what_a_healthy_one_gives(
    servers: list[ChatServer], tmp_path: Path, gives: str
) -> None:
    healthy, faulty = ChatServer(gives), ChatServer(gives, faulty=0.3, slow=3.0)
    servers += [healthy, faulty]
    good = climb(healthy, tmp_path / "good")
    bad = climb(faulty, tmp_path / "bad", timeout=1.0)
    assert good.undecided == good.unanswered == 0
    assert good.passed.value > 0
    assert plain(bad) == plain(good)
    questions = {json.dumps(asked["messages"]) for asked in faulty.asked}
    assert len(faulty.faults) > 0.25 * len(questions)  # a question fails on its first tries, if at all
    assert {"429", "500", "503", "cut", "no JSON", "hang up", "slow"} <= set(faulty.faults)
    # What was lost and asked again is paid for once; what came too late was answered all the same.
    spent = [Purse(tmp_path / name, Caps()).spent() for name in ("good", "bad")]
    assert spent[0] == spent[1]
