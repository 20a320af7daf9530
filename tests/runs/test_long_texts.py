"""Long texts: what a model never read is said, and memory grows with the text alone."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfooled
from unfooled.core.engine import Engine
from unfooled.core.program import Program
from unfooled.core.session import LIVE_CHARACTERS, Session
from unfooled.victims.fake import FakeVictim


class Constant:
    """Says the same of every text, and keeps none."""

    batch_size = 64

    def __call__(self, items: Any) -> list[Any]:
        return [np.array([0.25, 0.75])] * len(items)


class TwoForEach:
    """Two candidates for each word, whatever it is."""

    def propose(self, a: Any, text: Any, index: int, /) -> Program[list[str]]:
        return [f"other{index}", f"another{index}"]
        yield


def peak_of_probing(words: int, kind: str) -> int:
    """Bytes at most while the words of one text are ranked."""
    from unfooled.attacks.parts.goals import Untargeted
    from unfooled.attacks.parts.importance import Deletion
    from unfooled.attacks.parts.saliency import WeightedSaliency
    from unfooled.core.attempt import Attempt
    from unfooled.text import Text

    a = Attempt(Text(" ".join(f"word{n}" for n in range(words))), 1, Untargeted(), key=0, seed=0)

    def program() -> Program[int]:
        (start,) = yield from a.score([a.original])
        importance: Any = Deletion() if kind == "deletion" else WeightedSaliency(TwoForEach())
        order = yield from importance.rank(a, start, range(words))
        return len(order)

    engine: Engine[int] = Engine({"victim": Constant()}, cache_size=10)
    tracemalloc.start()
    (finished,) = engine.run([(0, program())])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert finished.value == words
    return peak


@pytest.mark.parametrize("kind", ["deletion", "saliency"])
def test_memory_grows_with_the_text_and_not_with_its_square(kind: str) -> None:
    short, long = peak_of_probing(400, kind), peak_of_probing(1600, kind)
    assert long < 8 * short  # four times the words; their square would be sixteen times as much


def test_of_long_texts_fewer_are_under_way() -> None:
    text = "a superb film " * (LIVE_CHARACTERS // 3 // 14)
    examples = [unfooled.Example(key, (("text", text),), 1, "text") for key in range(8)]
    settings = unfooled.Settings(max_words=None, budget=3)
    session = Session(FakeVictim(), unfooled.load_recipe("deepwordbug"), settings)
    most = 0
    for _ in session.attack(examples):
        most = max(most, session.engine.live)
    assert most <= 3
    assert len({result.key for result in session.attack(examples[:2])}) == 2


def test_what_the_model_never_read_is_said(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tiny_models import tiny

    victim = tiny("bert", classes=2, positions=24)
    texts = ["the film is good", "good " * 43, "bad " * 86]
    labels = [victim.labels[at] for at in victim.predict(texts).argmax(axis=1)]
    rows = list(zip(texts, labels, strict=True))
    settings = unfooled.Settings(budget=20)
    run = unfooled.attack(victim, rows, "deepwordbug", out=tmp_path / "run", settings=settings)
    facts = [dict(result.facts).get("unread") for result in run.results()]
    assert facts == [None, pytest.approx(21 / 45, abs=1e-3), pytest.approx(64 / 88, abs=1e-3)]
    summary = run.summary()
    assert summary.unread is not None
    assert (summary.unread.texts, summary.unread.most) == (2, facts[2])
    told = "2 of 3 texts are longer than the model reads: it never saw 60% of them on average, 73% at most"
    assert told in summary.cautions
    assert summary.to_dict()["unread"]["texts"] == 2
    page = unfooled.report(run.path, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What the model never read" in page
    assert "72.7%" in page
    assert "longer than the model reads" in page


def test_nothing_is_said_where_all_was_read(tmp_path: Path) -> None:
    run = unfooled.attack("fake", [("a superb film", "positive")], "deepwordbug", out=tmp_path / "run")
    summary = run.summary()
    assert summary.unread is None
    assert "What the model never read" not in unfooled.report(run.path, tmp_path / "page.html").read_text()
