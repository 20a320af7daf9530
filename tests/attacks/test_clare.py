"""CLARE on toys: each move alone, places that shift, and what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from toys import Answering, attack_one, encoder, linear, tags
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.clare import RECIPES
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result
from unfooled.resources.fillmask import FillIn, MaskItem


@pytest.mark.parametrize("version", list(RECIPES))
def test_it_keeps_the_rules_of_attacks(version: str) -> None:
    check_recipe(RECIPES[version])


def filling(table: Mapping[tuple[str, str], Sequence[tuple[str, float]]]) -> Callable[[MaskItem], Any]:
    def fill(item: MaskItem) -> tuple[FillIn, ...]:
        found = table.get((item.left, item.right), ())
        return tuple(FillIn(word, math.log(chance)) for word, chance in found)

    return fill


def attacked(
    version: str, text: str, table: Any, weights: Mapping[str, float], **settings: Any
) -> tuple[Result, list[str]]:
    recipe: Any = RECIPES[version]
    changed: Recipe = replace(recipe, search=replace(recipe.search, **settings))
    victim = linear(weights)
    oracles = {
        "victim": victim,
        "fill:masked-lm": Answering(filling(table)),
        "encode:minilm": encoder({"vile": 1.5}),
        "tag:perceptron-tagger": tags({"good": "ADJ", "film": "NOUN", "is": "VERB"}),
    }
    return attack_one(changed, oracles, text), victim.asked


WEIGHTS = {"good": 0.2, "fine": 0.1, "film": 0.2, "treat": 0.1, "rather": -0.1, "vile": -1.0}


def test_each_move_alone() -> None:
    table = {
        ("", " film"): [("fine", 0.1), ("rare", 0.0001)],
        ("", " good film"): [("rather", 1e-9)],
        ("good ", " film"): [("good", 0.5), ("film", 0.4)],
        ("", ""): [("treat", 0.01), ("flick", 0.004)],
    }
    _, asked = attacked("textattack", "good film", table, WEIGHTS, moves=("replace",), most_edits=1)
    assert asked == ["good film", "fine film"], "rare is less likely than 0.0005"
    _, asked = attacked("textattack", "good film", table, WEIGHTS, moves=("left",), most_edits=1)
    assert sorted(asked[1:]) == ["good good film", "rather good film"], (
        "no least chance; film is the word itself"
    )
    _, asked = attacked("textattack", "good film", table, WEIGHTS, moves=("merge",), most_edits=1)
    assert asked[1:] == ["treat"], "an adjective and a noun become one; flick is too unlikely"


def test_what_stands_between_merged_words_stays_before_the_model_too() -> None:
    table = {("", " , is fine"): [("treat", 0.01)], ("", " is fine"): [("flick", 0.01)]}
    _, asked = attacked("textattack", "good , film is fine", table, WEIGHTS, moves=("merge",), most_edits=1)
    assert asked[1:] == ["treat , is fine"]


def test_what_stands_behind_a_merge_or_an_insertion_is_found_again() -> None:
    # Merge good film into treat, then replace the word behind it; insert before the first one.
    table = {
        ("so ", " is fine"): [("treat", 0.01)],
        ("so treat is ", ""): [("cold", 0.1)],
        ("", " so treat is cold"): [("rather", 0.1)],
    }
    weights = {"good": 0.2, "film": 0.2, "treat": 0.3, "fine": 0.1, "cold": 0.05, "rather": -0.1}
    result, _ = attacked("textattack", "so good film is fine", table, weights)
    assert result.perturbed == "rather so treat is cold"
    assert [(edit.kind, edit.position) for edit in result.edits] == [
        ("insert", 0),
        ("replace", 1),
        ("delete", 2),
        ("replace", 4),
    ]


def test_the_word_behind_a_new_one_counts_as_changed() -> None:
    """As in TextAttack, where an insertion replaces a word by two."""
    table = {
        ("", " good film"): [("rather", 0.1)],
        ("rather ", " film"): [("fine", 0.1)],
        ("rather ", " good film"): [("so", 0.1)],
        ("rather good ", ""): [("flick", 0.1)],
    }
    result, asked = attacked(
        "textattack", "good film", table, WEIGHTS | {"film": 0.3}, moves=("replace", "left")
    )
    assert asked[1:] == ["rather good film", "rather good flick"]
    assert result.perturbed == "rather good flick"


def test_the_paper_orders_once_and_does_one_thing_at_a_place() -> None:
    table = {
        ("", " film"): [("fine", 0.1)],
        ("", " good film"): [("rather", 0.1)],
        ("good ", ""): [("reel", 0.1)],
        ("rather good ", ""): [("reel", 0.1)],
        ("rather ", " film"): [("fine", 0.1)],
        ("", ""): [("treat", 0.01)],
        ("rather ", ""): [("treat", 0.01)],
    }
    weights = {"good": 0.25, "fine": 0.2, "film": 0.25, "reel": 0.24, "rather": -0.2, "treat": 0.45}
    result, asked = attacked("paper", "good film", table, weights)
    # The insertion gains most (.2) and is made; good has had its turn; film is looked up again behind it.
    assert sorted(asked[1:5]) == ["fine film", "good reel", "rather good film", "treat"]
    assert asked[5:] == ["rather good reel"]
    assert result.perturbed == "rather good reel"
    careful, _ = attacked("paper", "good film", table, weights, least_gain=0.02)
    assert careful.perturbed == "rather good film", "reel gains .01 only"


def test_a_text_that_is_not_similar_is_no_option() -> None:
    table = {("", " film"): [("vile", 0.9)]}
    result, asked = attacked("paper", "good film", table, WEIGHTS)
    assert (result.outcome, asked) == ("failure", ["good film"])
