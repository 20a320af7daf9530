"""What a person sees of a slow attack while it runs: that it lives, and how much longer it takes."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from reviews import sentences
from unfooled.batching import Meter
from unfooled.core.recipe import load_recipe
from unfooled.core.result import Result
from unfooled.core.session import Life, Session
from unfooled.core.victim import Probabilities, TextValue
from unfooled.data.dataset import Dataset
from unfooled.report.live import LiveObserver, TimeLeft, about
from unfooled.runs.attack import Observer, attack
from unfooled.victims.fake import FakeVictim

LABELS = ("negative", "positive")


class Metered(FakeVictim):
    """Computes a batch text by text, as a large model does, and lets a test look in between."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self.meter = Meter()
        self._look = look

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        rows = []
        for text in texts:
            rows.append(super().predict([text])[0])
            self.meter.add(1, 1, 0, 0.0)
            self._look()
        return np.array(rows).reshape(len(rows), 2)


def test_life_moves_within_one_batch_of_one_example() -> None:
    seen: list[Life] = []
    victim = Metered(lambda: seen.append(session.life()))
    session = Session(victim, load_recipe("deepwordbug"))
    (example,) = Dataset.from_pairs([("a great and charming film", 1)], labels=LABELS)
    (result,) = session.attack([example])
    answered = [life.answered for life in seen]
    assert answered == list(range(1, result.queries + 1)), "every text of a batch is counted at once"
    assert all(life.examples == 1 and life.oldest == 0 for life in seen)
    assert max(life.oldest_asked for life in seen) == result.queries
    assert seen[-1].oldest_answered < seen[-1].oldest_asked
    assert session.life() == Life(answered=result.queries)


class Watching(Observer):
    """Looks from another thread for as long as the attack runs, as the line on the screen does."""

    def __init__(self) -> None:
        self.seen: list[Life] = []
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def working(self, life: Callable[[], Life]) -> None:
        self._thread = threading.Thread(target=self._watch, args=(life,))
        self._thread.start()

    def _watch(self, life: Callable[[], Life]) -> None:
        while not self._end.wait(0.02):
            self.seen.append(life())

    def stop(self) -> None:
        self._end.set()
        assert self._thread is not None
        self._thread.join()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_attack_shows_life_from_any_process(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Dataset.from_pairs([(text, LABELS.index(label)) for text, label in sentences(12)], labels=LABELS)
    watching = Watching()
    try:
        attack(FakeVictim(delay=0.3), data, "deepwordbug", out=tmp_path, workers=workers, observer=watching)
    finally:
        watching.stop()
    assert max(life.examples for life in watching.seen) > 0
    assert max(life.answered for life in watching.seen) > 0
    answered = [life.answered for life in watching.seen]
    assert answered == sorted(answered)


# -- how much longer -----------------------------------------------------------------------------------


def test_examples_that_end_at_once_do_not_make_the_rest_look_short() -> None:
    """As gs-gr on BERT: a quarter is skipped in the first second, the others take eight minutes."""
    estimate = TimeLeft()
    for _ in range(25):
        estimate.finished(1, attacked=False)
    life = Life(examples=75, answered=1000, open=99_000)
    assert estimate.seconds(life, 75, 10.0) == pytest.approx(990.0)
    halfway = Life(examples=75, answered=50_000, open=50_000)
    assert estimate.seconds(halfway, 75, 500.0) == pytest.approx(500.0)


def test_what_finished_examples_took_stands_for_those_to_come() -> None:
    estimate = TimeLeft()
    for _ in range(10):
        estimate.finished(100, attacked=True)
    assert estimate.seconds(Life(examples=10, answered=1500, open=5), 30, 15.0) == pytest.approx(25.0)


def test_the_last_examples_are_not_done_in_a_second_for_minutes() -> None:
    estimate = TimeLeft()
    for _ in range(99):
        estimate.finished(100, attacked=True)
    straggler = Life(examples=1, answered=9900 + 6000, open=10)
    left = estimate.seconds(straggler, 1, 159.0)
    assert left == pytest.approx(30.0)


def test_nothing_is_said_before_there_is_anything_to_go_by() -> None:
    estimate = TimeLeft()
    assert estimate.seconds(Life(), 10, 5.0) is None
    assert estimate.seconds(Life(examples=5, answered=10, open=3), 10, 5.0) is None
    assert estimate.seconds(Life(), 0, 5.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59, "59 s"), (480, "8 min"), (3600, "1 h 00 min"), (9000, "2 h 30 min")],
)
def test_times_are_round(seconds: float, said: str) -> None:
    assert about(seconds) == said


def test_the_line_names_the_questions_and_the_oldest_example() -> None:
    observer = LiveObserver(Console(file=io.StringIO()), title="x")
    observer.started(10, 0)
    try:
        observer.working(lambda: Life(7, 1200, 34, 500, oldest=3, oldest_asked=900, oldest_answered=400))
        assert observer.life() == "7 under way, 1,234 questions (row 3: 400 of 900)"
        assert observer.left() == "left ?"
        observer.finished(Result(0, "failure", 0, (("text", "x"),), 0, "x", queries=150))
        assert observer.left().startswith("left ")
        assert observer.left() != "left ?"
    finally:
        observer.stop()
