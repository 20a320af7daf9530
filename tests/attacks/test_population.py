"""Genetic search, swarm and differential evolution: their formulas by hand, and searches on toy victims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, linear, neighbours
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.genetic import RECIPES as GENETIC
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.levy import levy_draw, levy_within
from unfooled.attacks.parts.population import (
    Genetic,
    Swarm,
    evolve,
    mixed,
    new_speeds,
    parent_chances,
    sigmoid,
    taken_from_second,
)
from unfooled.attacks.swarms import RECIPES as SWARMS
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result
from unfooled.text import Text

# The best is the sum of two edits: each alone is not enough.
WEIGHTS = {"good": 0.2, "fine": 0.0, "film": 0.2, "reel": -0.05, "so": 0.0}
NEAR = {"good": ["fine"], "film": ["reel"]}


def attacked(search: Any, text: str = "so good a film", **settings: Any) -> tuple[Result, Answering]:
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    victim = linear(WEIGHTS, 0.03)
    oracles = {"victim": victim, "neighbours:counter-fitted": neighbours(NEAR)}
    return attack_one(recipe, oracles, text, **settings), victim


def test_parents_are_drawn_by_their_scores() -> None:
    # e^(.6 / .3) is 7.389: 1 to 7.389.
    assert parent_chances([0.1, 0.7], 0.3, "best") == pytest.approx([0.1192, 0.8808], abs=1e-4)
    assert parent_chances([0.1, 0.7], 0.3, "worst") == pytest.approx([0.8808, 0.1192], abs=1e-4)


class Drawing:
    """A generator that gives what it is told to."""

    def __init__(self, *drawn: Any) -> None:
        self.drawn = list(drawn)

    def random(self, size: int) -> np.ndarray:
        return np.array(self.drawn.pop(0))

    def integers(self, high: int) -> int:
        return int(self.drawn.pop(0))


def test_crossover_takes_each_word_with_one_half_or_all_from_a_place_on() -> None:
    rng: Any = Drawing([0.4, 0.6, 0.5, 0.1])
    assert taken_from_second(4, "uniform", rng).tolist() == [True, False, False, True]
    rng = Drawing(2)
    assert taken_from_second(4, "one-point", rng).tolist() == [False, False, True, True]
    text = Text("a b c d")
    child = mixed(text.replace(0, "x"), text.replace(3, "y"), np.array([True, True, False, True]))
    assert (child.string, child.changes) == ("a b c y", 1)


def test_speeds_grow_where_a_word_differs_from_the_bests() -> None:
    now, best = Text("good film"), Text("fine film")
    speeds = new_speeds(np.zeros(2), 0.8, now, best, best, 3.0)
    assert speeds == pytest.approx([1.2, -1.2])
    assert sigmoid(speeds)[0] == pytest.approx(0.769, abs=1e-3)
    other = new_speeds(np.ones(2), 0.5, now, best, now, 3.0)
    assert other == pytest.approx([0.5, -2.5]), "pulled both ways the speed halves"


_PARTS: dict[str, Any] = {"candidates": Neighbours(), "constraints": (), "size": 6}


@pytest.mark.parametrize(
    "search",
    [
        Genetic(**_PARTS),
        Genetic(**_PARTS, persistent=True, least_weight=1, parents="worst"),
        Genetic(**_PARTS, start="each-word", crossover="one-point", times=5, repeat=True),
        Swarm(**_PARTS),
        Swarm(**_PARTS, mutation="drawn-best", mirrored=True),
        Swarm(**_PARTS, mutation="best", flight="levy", mirrored=True),
    ],
)
def test_two_edits_that_succeed_together_are_found(search: Any) -> None:
    result, victim = attacked(search)
    assert (result.outcome, result.perturbed) == ("success", "so fine a reel")
    assert len(victim.asked) == len(set(victim.asked)) == result.queries
    again, _ = attacked(search)
    assert again == result


def test_a_generation_is_one_ask() -> None:
    class Counting(Answering):
        batch_size = 1000
        calls = 0

        def __call__(self, items: Any) -> list[Any]:
            self.calls += 1
            return super().__call__(items)

    search = Genetic(candidates=Neighbours(), constraints=(), size=20, generations=3)
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    victim = Counting(lambda _: np.array([0.1, 0.9]))
    near = {word: ["x", "y", "z"] for word in "abcdefgh"}
    oracles = {"victim": victim, "neighbours:counter-fitted": neighbours(near)}
    attack_one(recipe, oracles, "b c d e f g h")
    assert victim.calls <= 1 + 1 + 2 * 3, (
        "the original, the start, and children and mutations of each generation"
    )


def test_the_elite_survives() -> None:
    # Only "fine" helps: whatever is bred, what was reached stays.
    search = Genetic(candidates=Neighbours(), constraints=(), size=4, generations=5, parents="worst")
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    oracles = {
        "victim": linear({"good": 0.2, "fine": 0.1}),
        "neighbours:counter-fitted": neighbours({"good": ["fine"], "film": ["reel"]}),
    }
    assert attack_one(recipe, oracles, "good film").perturbed.startswith("fine")


def evolved(answer: Any, **settings: Any) -> tuple[Scored, Attempt]:
    a = Attempt(Text("a b"), 1, Untargeted(), key=0, seed=3)

    def render(vector: np.ndarray) -> Text:
        first, second = (round(value) for value in vector.tolist())
        return a.original.replace(0, str(first)).replace(1, str(second))

    def program() -> Any:
        (start,) = yield from a.score([a.original])
        return (yield from evolve(a, start, [(0, 9), (0, 9)], render, **settings))

    (finished,) = Engine[Scored]({"victim": Answering(answer)}).run([(0, program())])
    assert finished.value is not None, finished.error
    return finished.value, a


def test_evolution_finds_a_corner_and_stops_there() -> None:
    def answer(text: str) -> np.ndarray:
        numbers = [int(word) if word.isdigit() else 0 for word in text.split()]
        p = 0.95 - 0.05 * sum(numbers) / 2  # 9 and 9 give .5, which is a tie: 0.9 does not flip
        return np.round(np.array([1 - p, p]), 6)

    found, a = evolved(answer, size=8, generations=40)
    assert found.text.string == "9 9"
    assert a.queries <= 101


def test_evolution_stops_when_all_are_alike_and_at_success() -> None:
    _, a = evolved(lambda _: np.array([0.1, 0.9]), size=5, generations=100)
    assert a.asked == 1 + 10, "the scores do not differ"
    found, a = evolved(
        lambda text: np.array([0.1, 0.9] if "a" in text else [0.9, 0.1]), size=5, generations=100
    )
    assert (found.success, a.asked) == (True, 1 + 10)


def test_levy_draws_leap_now_and_then() -> None:
    rng = np.random.default_rng(0)
    draws = np.array([levy_draw(rng) for _ in range(4000)])
    assert abs(np.median(draws)) < 0.1
    assert 0.005 < (np.abs(draws) > 10).mean() < 0.1, "a normal distribution would have none"
    assert all(0.5 <= levy_within(rng, 0.5, 0.8) <= 0.8 for _ in range(50))


@pytest.mark.parametrize("name", [*GENETIC, *SWARMS])
def test_they_keep_the_rules_of_attacks(name: str) -> None:
    check_recipe((GENETIC | SWARMS)[name])
