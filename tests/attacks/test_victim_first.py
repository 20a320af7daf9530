"""The victim before the dear constraints: other questions, the same text."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toys import Answering, encoder, linear, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import MaxCharacterEdits, SentenceSimilarity
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.attacks.parts.victim_first import VictimFirst, cannot_turn, split, with_victim_first
from unfooled.core.recipe import Recipe, load_recipe, recipe_from_json
from unfooled.core.result import Example, Result
from unfooled.core.session import Session, Settings
from unfooled.errors import UnknownNameError
from unfooled.victims.fake import FakeVictim

SIMILAR = SentenceSimilarity(threshold=0.9, scale="cosine", window=None)
GREEDY = GreedySwap(
    importance=Deletion(), candidates=Neighbours(), constraints=(MaxCharacterEdits(30), SIMILAR)
)
TABLE = {"good": ["fair", "poor", "weak"], "film": ["reel", "flick"]}
WEIGHTS = {"good": 0.3, "fair": 0.2, "poor": 0.1, "weak": 0.05, "film": 0.1, "reel": 0.05, "flick": 0.0}
# cos 0.5 is .88: a word with that angle does not pass.
ANGLES = {"weak": 0.5, "poor": 0.3, "fair": 0.1, "flick": 0.1}


def parts(**changed: Any) -> dict[str, Any]:
    return {
        "encode:minilm": encoder(ANGLES),
        "neighbours:counter-fitted": neighbours(TABLE),
        "victim": linear(WEIGHTS),
    } | changed


def attack(recipe: Recipe, oracles: dict[str, Any], text: str, **settings: Any) -> Result:
    session = Session(FakeVictim(), recipe, Settings(**settings), oracles=oracles)
    (result,) = session.attack([Example(0, (("text", text),), 1, "text")])
    return result


def both(text: str, oracles: Any = parts, search: Any = GREEDY) -> tuple[Result, Result, Any, Any]:
    plain, turned = oracles(), oracles()
    recipe = toy_recipe(search)
    first = attack(recipe, plain, text)
    second = attack(with_victim_first(recipe), turned, text)
    return first, second, plain["encode:minilm"], turned["encode:minilm"]


def test_the_encoder_is_asked_from_the_best_option_down_until_one_passes() -> None:
    plain, turned, all_asked, few_asked = both("a good film")
    # .5 + .3 + .1 = .9; good goes first. weak (.65) is best, refused; poor (.7) passes. Then flick: .6.
    assert turned.perturbed == plain.perturbed == "a poor flick"
    assert turned.similarity == plain.similarity == pytest.approx(np.cos(0.1), abs=1e-6)
    assert plain.outcome == turned.outcome == "failure"
    assert set(few_asked.asked) == {"a good film", "a weak film", "a poor film", "a poor flick"}
    assert set(all_asked.asked) - set(few_asked.asked) == {"a fair film", "a poor reel"}
    # The original, two words deleted, then 2 and 2 options; asked first, the victim sees weak as well.
    assert (plain.queries, turned.queries) == (7, 8)


def test_of_options_that_flip_the_most_similar_wins() -> None:
    weights = {**WEIGHTS, "poor": -0.4, "fair": -0.3, "weak": -0.5}
    plain, turned, _, few = both("a good film", lambda: parts(victim=linear(weights)))
    assert turned.perturbed == plain.perturbed == "a fair film"
    assert turned.outcome == "success"
    assert len(few.asked) == 4, "all three flips and the text itself"


def test_an_option_that_would_not_be_kept_is_not_checked() -> None:
    weights = {**WEIGHTS, "fair": 0.4, "poor": 0.35, "weak": 0.3, "reel": 0.2, "flick": 0.1}
    plain, turned, _, few = both("a good film", lambda: parts(victim=linear(weights)))
    assert turned.perturbed == plain.perturbed == "a good film"
    assert few.asked == []
    assert (turned.tried, plain.tried) == (5, 4), "weak was asked about, and was never refused"


def test_a_tie_is_an_abstention_only_if_it_passes() -> None:
    tie = {**WEIGHTS, "good": 0.1, "film": 0.0, "fair": 0.2, "poor": 0.0, "weak": 0.2}
    plain, turned, *_ = both("a good film", lambda: parts(victim=linear(tie)))
    assert plain.outcome == turned.outcome == "abstained"
    refused = parts(victim=linear(tie), **{"encode:minilm": encoder({"poor": 2.0})})
    assert attack(with_victim_first(toy_recipe(GREEDY)), refused, "a good film").outcome == "failure"


def test_texts_that_were_not_checked_never_become_the_result() -> None:
    weights = {**WEIGHTS, "fair": -0.5, "poor": -0.4}
    refused = parts(victim=linear(weights), **{"encode:minilm": encoder({"fair": 0.5, "poor": 0.5})})
    result = attack(with_victim_first(toy_recipe(GREEDY)), refused, "a good film", budget=5)
    assert (result.outcome, result.perturbed, result.queries) == ("failure", "a good film", 5)


def test_a_flip_that_the_last_query_paid_for_counts() -> None:
    weights = {**WEIGHTS, "poor": -0.4}
    # The original, two words deleted, fair and poor; weak cannot be paid for.
    for recipe in (toy_recipe(GREEDY), with_victim_first(toy_recipe(GREEDY))):
        result = attack(recipe, parts(victim=linear(weights)), "a good film", budget=5)
        assert (result.outcome, result.perturbed, result.queries) == ("success", "a poor film", 5)


@pytest.mark.parametrize("ties", ["nearest", "text"])
@pytest.mark.parametrize("accept", ["better", "better-than-original"])
def test_the_same_texts_whatever_the_words(ties: Any, accept: Any) -> None:
    rng = random.Random(7)
    search = replace(GREEDY, ties=ties, accept=accept)
    for _ in range(150):
        words = [f"w{n}" for n in range(5)]
        table = {word: [f"{word}{letter}" for letter in "abcd"] for word in words}
        every = [*words, *(other for near in table.values() for other in near)]
        weights = {word: rng.choice([-0.2, -0.1, 0.0, 0.1, 0.2]) for word in every}
        weights |= dict.fromkeys(words, 0.1)
        angles = {word: rng.choice([0.0, 0.2, 0.3, 0.46, 0.9]) for word in every}

        def made(
            weights: dict[str, float] = weights,
            angles: dict[str, float] = angles,
            table: dict[str, list[str]] = table,
        ) -> dict[str, Any]:
            return {
                "encode:minilm": encoder(angles),
                "neighbours:counter-fitted": neighbours(table),
                "victim": linear(weights),
            }

        plain, turned, all_asked, few_asked = both(" ".join(words), made, search)
        same = ("outcome", "perturbed", "similarity", "perturbed_probs", "edits")
        assert [getattr(plain, name) for name in same] == [getattr(turned, name) for name in same]
        assert len(few_asked.asked) <= len(all_asked.asked)


def test_only_dear_constraints_at_the_end_wait_for_the_victim() -> None:
    cheap = MaxCharacterEdits(30)
    assert split((cheap, SIMILAR)) == ((cheap,), (SIMILAR,))
    assert split((SIMILAR, cheap)) == ((SIMILAR, cheap), ())
    assert cannot_turn(load_recipe("textfooler")) == ""
    assert "asks no model" in cannot_turn(load_recipe("deepwordbug"))
    for name in ("deepwordbug", "clare", "jsma"):
        with pytest.raises(UnknownNameError, match="cannot ask the victim first"):
            with_victim_first(load_recipe(name))


def test_the_recipe_says_so_and_others_are_described_as_before() -> None:
    recipe = load_recipe("textfooler")
    turned = with_victim_first(recipe)
    assert turned.full_name == "textfooler@textattack+victim-first"
    assert recipe_from_json(turned.to_json()) == turned
    assert turned.asking == VictimFirst()
    assert "asking" not in recipe.to_json()
    assert recipe_from_json(recipe.to_json()) == recipe


def test_masked_words_too() -> None:
    from unfooled.resources.fillmask import FillIn

    fills = Answering(lambda item: tuple(FillIn(word, -1.0) for word in ("fair", "poor", "weak")))
    oracles = {
        "tag:perceptron-tagger": Answering(lambda item: ("NOUN",) * (1 + len(item[2]))),
        "fill:trigram": fills,
    }
    recipe = load_recipe("bae-r@cosine")
    search: Any = recipe.search
    recipe = replace(recipe, search=replace(search, fill=replace(search.fill, masked_lm="trigram")))
    made = {"encode:minilm": encoder(ANGLES), **oracles, "victim": linear(WEIGHTS)}
    plain = attack(recipe, dict(made), "a good film")
    turned = attack(with_victim_first(recipe), dict(made), "a good film")
    assert (plain.outcome, plain.perturbed) == (turned.outcome, turned.perturbed)
