"""Word-level attacks made of shared parts: what each does on victims whose scores are sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, tags
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.candidates import AnyOf
from unfooled.attacks.parts.goals import Confident
from unfooled.attacks.parts.gradient_importance import GradientSum
from unfooled.core.attempt import Attempt
from unfooled.core.engine import Engine
from unfooled.core.questions import GradientItem, WordVectors
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.resources.fluency import Score
from unfooled.text import Text

NAMES = [
    f"{name}@{version}"
    for name, versions in {
        "kuleshov": ("textattack", "paper"),
        "a2t": ("textattack",),
        "a2t-mlm": ("textattack",),
        "textbugger": ("textattack", "white-box"),
        "textfooler": ("adjusted",),
    }.items()
    for version in versions
]


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_rules_of_attacks(name: str) -> None:
    check_recipe(load_recipe(name))


# -- kuleshov --------------------------------------------------------------------------------------


def held(**changed: Any) -> dict[str, Any]:
    parts = {
        "victim": linear({"good": 0.3, "fine": 0.15, "film": 0.15, "reel": 0.1, "glum": -0.3}),
        "neighbours:counter-fitted": neighbours({"good": ["fine", "glum"], "film": ["reel"]}),
        "vectors:counter-fitted": Answering(lambda word: np.array([float(word == "glum") * 2, 0.0])),
        "fluency:trigram": Answering(lambda text: Score(-9.0 if text.endswith("reel") else -7.5, 2)),
    }
    return parts | changed


def test_kuleshov_stops_below_a_confidence_and_says_that_the_label_stands() -> None:
    # glum would flip the label, but moves the mean of four vectors by 2 / 4: squared, .25 is above .2.
    text = "good film it was"
    result = attack_one(load_recipe("kuleshov"), held(), text)
    assert (result.outcome, result.perturbed) == ("failure", "fine reel it was"), ".75 is not below .7"
    assert result.note == ""
    lower = linear({"good": 0.3, "fine": 0.05, "film": 0.15, "reel": 0.1})
    result = attack_one(load_recipe("kuleshov"), held(victim=lower), text)
    assert (result.outcome, result.perturbed) == ("failure", "fine reel it was"), "fine alone gives .7"
    assert "below 0.7, but the label stands" in result.note
    half = attack_one(load_recipe("kuleshov"), held(), "good film")
    assert half.perturbed == "fine film", "half of the words may change"


def test_kuleshov_refuses_a_loss_of_two_nats() -> None:
    unlikely = Answering(lambda text: Score(-9.5 if text.endswith("reel") else -7.5, 2))
    result = attack_one(load_recipe("kuleshov"), held(**{"fluency:trigram": unlikely}), "good film it was")
    assert result.perturbed == "fine film it was"


def test_kuleshov_of_the_paper_wants_a_sure_mistake() -> None:
    scores, won = Confident(0.7).judge(np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]), 1)
    assert scores == [0.6, 0.7, 0.2, 0.5]
    assert won == [False, True, False, False]


# -- a2t -------------------------------------------------------------------------------------------


def test_a2t_ranks_by_the_sum_of_absolute_gradients() -> None:
    def gradients(item: GradientItem) -> WordVectors:
        vectors = np.array([[3.0, 0.0], [-2.0, 2.0], [0.0, 0.0]], dtype=np.float32)
        return WordVectors(item.text.words, np.array([1, 2, 0]), vectors)

    a = Attempt(Text("one two three"), 1, load_recipe("a2t").goal, key=0, seed=0)

    def program() -> Any:
        (start,) = yield from a.score([a.original])
        return (yield from GradientSum().rank(a, start, range(3)))

    oracles = {"victim": linear({"one": 0.1}), "gradients:loss": Answering(gradients)}
    (finished,) = Engine[list[int]](oracles).run([(0, program())])
    assert finished.value == [1, 0, 2], (
        "3 is longer than 4 only by the Euclidean length; unread words come last"
    )


# -- textbugger ------------------------------------------------------------------------------------


def textbugger(text: str, weights: dict[str, float], kinds: slice = slice(None)) -> tuple[Any, list[str]]:
    recipe: Any = load_recipe("textbugger")
    search = recipe.search
    bugs = AnyOf(search.candidates.sources[kinds])
    changed: Recipe = replace(recipe, search=replace(search, candidates=bugs))
    victim = linear(weights, 0.2)
    oracles = {
        "victim": victim,
        "neighbours:counter-fitted": neighbours({"good": ["fine", "glum"]}),
        "encode:minilm": encoder({"glum": 0.9}),
        "tag:perceptron-tagger": tags({}),
    }
    return attack_one(changed, oracles, text), victim.asked


def test_textbugger_makes_each_kind_of_bug() -> None:
    _, asked = textbugger("good", {"good": 0.2})
    tried = set(asked) - {"good", ""}
    assert {"gοod", "goοd"} & tried or {"gоod", "goоd"} & tried, "look-alikes of the letters"
    assert "fine" in tried
    assert "glum" not in tried, "its angular similarity is 1 - 0.9 / pi = 0.71"
    # Inner letters only: a blank at two places, either o dropped; to swap them changes nothing.
    for kind, possible in ((0, {"g ood", "go od"}), (1, {"god"}), (2, set())):
        _, asked = textbugger("good", {"good": 0.2}, slice(kind, kind + 1))
        tried = set(asked) - {"good", ""}
        assert tried <= possible
        assert len(tried) == min(1, len(possible))


def test_textbugger_takes_the_best_bug_and_later_words_do_not_shift() -> None:
    weights = {"good": 0.2, "fine": 0.1, "film": 0.2}
    result, _ = textbugger("good film", weights, slice(0, 1))
    assert result.perturbed.replace(" ", "") == "goodfilm"
    assert len(result.perturbed.split()) == 4
    assert [edit.position for edit in result.edits] == [0, 1]
