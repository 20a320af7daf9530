"""One cap for a whole test of a filter: its attacks, the honest texts and the cure, over all commands."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_server import ChatServer
from command_line import unfooled as typed
from unfooled.checks.guard import guard
from unfooled.checks.mending import mend
from unfooled.checks.paying import Paying
from unfooled.checks.stress import stress
from unfooled.checks.suites import Suite, SuiteAttack
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.errors import CapReachedError, RunFileError, UserError, VictimError
from unfooled.runs.caps import Caps
from unfooled.runs.purse import FILE, Purse
from unfooled.runs.workers.where import Workers
from unfooled.victims.filtering import Filter
from unfooled.victims.function import FunctionVictim
from unfooled.victims.http.openai import OpenAIVictim, TokenUsage

LABELS = ("fine", "abuse")
ROWS = [
    *[(f"you are vile, said number {n}", "abuse") for n in range(12)],
    *[(f"a nice day, said number {n}", "fine") for n in range(12)],
]
SUITE = Suite(
    name="toy",
    version="1",
    summary="",
    attacks=(SuiteAttack("leetspeak@plain"), SuiteAttack("smuggle-zero-width@space")),
    wave=8,
)


def answer(texts: Sequence[str]) -> list[list[float]]:
    bad = ["vile" in text or "v1l3" in text for text in texts]
    return [[0.1, 0.9] if found else [0.9, 0.1] for found in bad]


class Listener:
    """A filter that keeps what it hears, in small batches."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.largest = 24  # a question of the checks is as long as there are rows
        inner = FunctionVictim(self.said, labels=LABELS, batch_size=5, name="toy")
        self.filter = Filter(inner, ["abuse"])
        self.data = relabelled(Dataset.from_pairs(ROWS, labels=LABELS), self.filter)
        assert inner.capabilities  # this and the fingerprint of a function ask questions of their own, once
        inner.fingerprint()
        self.heard.clear()

    def said(self, texts: Sequence[str]) -> list[list[float]]:
        self.heard.extend(texts)
        return answer(texts)


def test_a_cap_over_all_of_a_test_is_never_exceeded_and_ends_with_the_same_result(tmp_path: Path) -> None:
    free = Listener()
    whole = guard(free.filter, free.data, out=tmp_path / "free", suite=SUITE)
    mended = mend(free.filter, free.data, whole, out=tmp_path / "free", suite=SUITE)
    assert mended is not None
    paid = Listener()
    stops = 0
    for most in range(300, 4000, 300):  # each command looks at the model again before it goes on
        options: dict[str, Any] = {"suite": SUITE, "caps": Caps(per_query=1.0, max_cost=most)}
        try:
            found = guard(paid.filter, paid.data, out=tmp_path / "paid", **options)
            again = mend(paid.filter, paid.data, found, out=tmp_path / "paid", **options)
            break
        except CapReachedError:
            stops += 1
        spent = Purse(tmp_path / "paid", Caps()).spent().texts  # over all commands so far
        assert most - paid.largest <= spent <= most
        assert len(paid.heard) <= spent
    assert stops > 1
    assert again is not None
    assert found.fell_at == whole.fell_at
    assert again.result.fell_at == mended.result.fell_at
    assert [rung.queries for rung in found.rungs] == [rung.queries for rung in whole.rungs]
    elsewhere = Purse(tmp_path / "paid", Caps()).spent().texts - len(paid.heard)
    assert 0 <= elsewhere <= 2 * 64  # what a fresh process was asked, which no list here can hear


def test_stress_has_the_same_cap(tmp_path: Path) -> None:
    paid = Listener()
    with pytest.raises(CapReachedError, match="of 40 "):
        stress(paid.filter, paid.data, SUITE, out=tmp_path, caps=Caps(per_query=1.0, max_cost=40))
    assert 40 - paid.largest <= len(paid.heard) <= 40


def test_workers_pay_from_the_same_purse(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    lines = [f"a superb film number {n},positive" for n in range(40)]
    data.write_text("\n".join(["text,label", *lines, "so bad,negative"]), encoding="utf-8")
    command = ["guard", "--model", "fake", "--data", "reviews.csv", "--flag", "positive", "--out", "run"]
    command += ["--without", "textfooler@textattack", "--without", "bae-r@textattack", "--workers", "2"]
    command += ["--price-per-query", "0.01"]
    stopped = typed(*command, "--max-cost", "0.5", code=5, cwd=tmp_path)
    assert "(--max-cost)" in stopped.stderr
    assert Purse(tmp_path / "run", Caps()).spent().texts <= 50
    done = typed(*command, "--max-cost", "500", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["passed"]["value"] == 1.0


def test_tokens_are_those_that_the_model_counts(tmp_path: Path) -> None:
    server = ChatServer()
    try:
        with_prompt = OpenAIVictim("m", server.url, labels=["negative", "positive"], backoff=0.01)
        purse = Purse(tmp_path, Caps(per_token=1.0, max_cost=51 * 10))
        victim = Paying(with_prompt, purse)
        victim.predict(["a superb film", "so bad"])
        assert purse.spent() == (2, 51 * 3)  # with the question that found out what the server understands
        victim.predict([f"film {n}" for n in range(7)])
        with pytest.raises(CapReachedError):
            victim.predict(["one more"])
        assert purse.spent() == (9, 51 * 10)
        with_prompt.close()
    finally:
        server.stop()


class Metered:
    """Counts ten tokens for each answer; `boom` is none, after the texts before it were answered."""

    def __init__(self) -> None:
        self.usage = TokenUsage()
        self.met = threading.Barrier(2, timeout=60)
        self.failed = threading.Event()

    def predict(self, texts: Sequence[str]) -> Any:
        if "slow" in texts:
            self.met.wait()
        for text in texts:
            if text in ("boom", "meet"):
                if text == "meet":
                    self.met.wait()
                raise VictimError("no answer")
            self.usage.add({"prompt_tokens": 9, "completion_tokens": 1})
        if "slow" in texts:
            assert self.failed.wait(60)
        return np.array(answer(texts))


def test_a_batch_that_failed_stays_paid(tmp_path: Path) -> None:
    model: Any = Metered()
    purse = Purse(tmp_path, Caps(per_token=1.0))
    victim = Paying(model, purse)
    victim.predict(["one", "two"])
    assert purse.spent() == (2, 20)
    with pytest.raises(VictimError):
        victim.predict(["three", "four", "boom"])  # two of them were answered
    assert purse.spent() == (5, 50)
    victim.predict(["five"])  # pays for itself alone
    assert purse.spent() == (6, 60)
    other = threading.Thread(target=victim.predict, args=(["slow"],))
    other.start()
    with pytest.raises(VictimError):
        victim.predict(["meet"])  # while another is out
    model.failed.set()
    other.join(60)
    assert purse.spent() == (8, 80)


def test_what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    listener, caps = Listener(), Caps(per_query=1.0, max_cost=5)
    with pytest.raises(UserError, match="several machines"):
        stress(listener.filter, listener.data, SUITE, out=tmp_path, caps=caps, workers=Workers(engine="ray"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE).write_text("no database, but long enough to be looked at", encoding="utf-8")
    with pytest.raises(RunFileError, match="cannot be counted"):
        stress(listener.filter, listener.data, SUITE, out=tmp_path / "b", caps=caps)
    with pytest.raises(CapReachedError, match="max-hours"):
        stress(listener.filter, listener.data, SUITE, out=tmp_path / "c", caps=Caps(max_hours=0.0))
    assert listener.heard == []
