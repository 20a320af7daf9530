"""Beam search on victims whose scores are sums: what goes on, what comes out, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from toys import Answering, attack_one, linear, neighbours
from unfooled.attacks.parts.beam import BeamSwap
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.selection import InOrder
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result

WEIGHTS = {"good": 0.2, "fine": 0.15, "fair": 0.19, "film": 0.1, "reel": 0.3}


def attacked(
    text: str, near: Mapping[str, Sequence[str]], weights: Mapping[str, float] = WEIGHTS, **settings: Any
) -> tuple[Result, Answering]:
    search = BeamSwap(candidates=Neighbours(), constraints=(), stopwords="none", **settings)
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    victim = linear(weights)
    oracles = {"victim": victim, "neighbours:counter-fitted": neighbours(near)}
    return attack_one(recipe, oracles, text), victim


def test_width_one_moves_on_even_if_every_option_is_worse_and_returns_the_last() -> None:
    # good -> fine lowers p from .8 to .75; then film -> reel raises it to .95, and is taken all the same.
    near = {"good": ["fine"], "film": ["reel"]}
    result, victim = attacked("good film", near)
    assert (result.perturbed, result.outcome) == ("fine reel", "failure")
    assert victim.asked == ["good film", "fine film", "good reel", "fine reel"]
    best, _ = attacked("good film", near, result="best")
    assert best.perturbed == "fine film"
    better, _ = attacked("good film", near, accept="better")
    assert better.perturbed == "fine film"


def test_members_of_a_wider_beam_may_lead_to_the_same_text() -> None:
    # Both members of the second step lead to the same text.
    near = {"good": ["fine"], "film": ["reel"], "reel": [], "fine": []}
    weights = {"good": 0.2, "fine": 0.1, "film": 0.1, "reel": 0.09}

    def answer(text: str) -> Any:
        together = -0.3 if text == "fine reel" else 0.0
        return linear({**weights, "reel": weights["reel"] + together})([text])[0]

    search = BeamSwap(candidates=Neighbours(), constraints=(), stopwords="none", width=2)
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    victim = Answering(answer)
    result = attack_one(
        recipe, {"victim": victim, "neighbours:counter-fitted": neighbours(near)}, "good film"
    )
    assert (result.perturbed, result.outcome) == ("fine reel", "success")
    assert victim.asked.count("fine reel") == 1, "a text that two members lead to is asked once"


def test_a_wider_beam_keeps_the_second_best_whose_child_wins() -> None:
    # fine (.7) beats fair (.75), but only beside fair is the word reel (.75 - .3) enough.
    near = {"good": ["fine", "fair"], "film": ["reel"]}

    def answer(text: str) -> Any:
        reel = -0.2 if text == "fair reel" else 0.1
        return linear({"good": 0.2, "fine": 0.1, "fair": 0.15, "film": 0.1, "reel": reel})([text])[0]

    for width, outcome in ((1, "failure"), (2, "success")):
        search = BeamSwap(candidates=Neighbours(), constraints=(), stopwords="none", width=width)
        recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
        oracles = {"victim": Answering(answer), "neighbours:counter-fitted": neighbours(near)}
        assert attack_one(recipe, oracles, "good film").outcome == outcome


def test_most_edits_bounds_the_steps_and_a_given_order_keeps_the_members() -> None:
    near = {"good": ["fine"], "film": ["reel"]}
    once, victim = attacked("good film", near, most_edits=1)
    assert (once.perturbed, once.queries) == ("fine film", 3)
    ordered, victim = attacked("film good", near, order=InOrder(), accept="better", width=2)
    # At "film" both texts go on, at "good" both are tried: the unchanged film leads to the best.
    assert victim.asked == ["film good", "reel good", "film fine", "reel fine"]
    assert ordered.perturbed == "film fine"


def test_equal_scores_fall_to_the_text_that_sorts_first_or_to_the_nearest_word() -> None:
    near = {"good": ["zest", "fine"]}
    weights = {"good": 0.2, "zest": 0.1, "fine": 0.1}
    assert attacked("good", near, weights)[0].perturbed == "fine"
    assert attacked("good", near, weights, ties="nearest")[0].perturbed == "zest"


def test_settings_that_would_never_end_are_refused() -> None:
    with pytest.raises(ValueError, match="need most_edits"):
        BeamSwap(candidates=Neighbours(), constraints=(), repeat=True)
    with pytest.raises(ValueError, match="width is at least 1"):
        BeamSwap(candidates=Neighbours(), constraints=(), width=0)
