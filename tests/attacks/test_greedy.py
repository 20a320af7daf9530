"""The one loop of the greedy attacks, and that there is no other."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toys import linear
from unfooled.attacks.parts.constraints import MaxCharacterEdits, NextText
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.search import (
    Keep,
    Stop,
    exploring,
    greedy,
    keep_highest,
    keep_most_similar,
    keep_newest,
)
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.program import Program
from unfooled.text import Text

ROOT = Path(__file__).parents[2] / "src" / "unfooled"
WEIGHTS = {"good": 0.1, "fine": 0.08, "fair": 0.05, "bad": -0.7}
# Searches that are other algorithms, as their docstrings say, and the loop itself.
OTHER = {
    "beam.py",
    "importance.py",
    "jsma.py",
    "keyword_search.py",
    "population.py",
    "replacement.py",
    "search.py",
    "together.py",
    "typos.py",
    "undoing.py",
}


def scored(text: str, score: float, *, success: bool = False, similarity: float | None = None) -> Scored:
    return Scored(Text(text), Any, score, success, similarity)  # type: ignore[arg-type]


def search(
    text: str, words: dict[int, list[str]], keep: Keep, stop: Stop | None = None, **settings: Any
) -> tuple[str, list[str], int]:
    """The text that comes out, the texts that each step began with, and the queries."""
    begun: list[str] = []
    a = Attempt(Text(text), 1, Untargeted(), key=0, seed=0)

    def propose(now: Scored, index: int) -> Program[list[NextText]]:
        begun.append(now.text.string)
        return [NextText(now.text.replace(index, word), index) for word in words[index]]
        yield

    def program() -> Program[Scored]:
        (start,) = yield from a.score([a.original])
        explore = exploring(a, propose, **settings)
        return (yield from greedy(start, list(words), explore, keep=keep, stop=stop))

    (finished,) = Engine[Scored]({"victim": linear(WEIGHTS)}).run([(0, program())])
    assert finished.value is not None, finished.error
    return finished.value.text.string, begun, a.queries


def test_each_step_begins_with_what_the_steps_before_it_left() -> None:
    words = {1: ["good", "fair"], 0: ["fine", "fair"], 2: ["fair"]}
    end, begun, queries = search("good good good", words, keep_most_similar)
    assert begun == ["good good good", "good fair good", "fair fair good"]
    assert (end, queries) == ("fair fair fair", 5)


def test_success_ends_the_search() -> None:
    end, begun, _ = search("good good", {0: ["bad"], 1: ["bad"]}, keep_most_similar)
    assert (end, begun) == ("bad good", ["good good"])


def test_a_stop_is_asked_after_each_step_with_what_was_explored() -> None:
    seen: list[tuple[str, int]] = []

    def stop(now: Scored, found: Sequence[Scored]) -> bool:
        seen.append((now.text.string, len(found)))
        return now.text.changes >= 1

    end, begun, _ = search("good good", {0: [], 1: ["fair", "fine"]}, keep_most_similar, stop)
    assert seen == [("good good", 0), ("good fair", 2)]
    assert (end, len(begun)) == ("good fair", 2)


def test_unseen_options_cost_no_query_and_respect_constraints() -> None:
    words = {0: ["goad"], 1: ["goat"], 2: ["gold"]}
    end, _, queries = search(
        "good good good",
        words,
        keep_newest,
        lambda now, found: not found,
        constraints=[MaxCharacterEdits(2)],
        unseen=True,
    )
    assert (end, queries) == ("goad good good", 1)


def test_what_is_kept() -> None:
    now, start = scored("now", 0.5), scored("start", 0.2)
    worse, better = scored("worse", 0.4), scored("better", 0.6)
    near = scored("near", 0.7, success=True, similarity=0.9)
    far = scored("far", 0.9, success=True, similarity=0.8)
    assert keep_most_similar(now, [far, near, better]) is near
    assert keep_most_similar(now, [worse]) is now
    assert keep_most_similar(now, [worse], start) is worse
    assert keep_most_similar(now, []) is now
    assert keep_highest(now, [near, far]) is far
    assert keep_highest(now, [scored("equal", 0.5)]) is now
    assert keep_newest(now, [worse]) is worse
    assert keep_newest(now, []) is now


@pytest.mark.parametrize("folder", ["attacks", "translation/attacks"])
def test_no_other_loop_asks_the_victim_about_words(folder: str) -> None:
    loops = [
        f"{path.name}:{call.lineno}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name not in OTHER
        for loop in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(loop, ast.For | ast.While)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("a.score", "best_step")
    ]
    assert loops == []
