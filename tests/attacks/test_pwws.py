"""PWWS on victims whose scores are known by arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.saliency import WeightedSaliency
from unfooled.attacks.parts.search import GreedySwap
from unfooled.attacks.parts.sources import WordNetLemmas
from unfooled.attacks.pwws import RECIPES, BestSwapsInOrder
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe
from unfooled.resources.synonyms import Lemmas
from unfooled.text import Text

# p(true class) is .9. Without a word: .9, .9 and .9 - ln 2; with the word's best synonym: .5, .6 and .65.
P = {
    "one two three": 0.9,
    "[UNK] two three": 0.9,
    "one [UNK] three": 0.9,
    "one two [UNK]": 0.9 - math.log(2),
    "uno two three": 0.5,
    "eins two three": 0.7,
    "one dos three": 0.6,
    "one two tres": 0.65,
}
SYNONYMS = {"one": ("eins", "uno"), "two": ("dos",), "three": ("tres",)}


def victim(text: Any) -> np.ndarray:
    p = P.get(text, 0.55)
    return np.array([1 - p, p])


def oracles() -> dict[str, Any]:
    def lemmas(item: Lemmas) -> tuple[str, ...]:
        return SYNONYMS.get(item.word, ())

    return {"victim": Answering(victim), "wordnet:wordnet": Answering(lemmas)}


def order(importance: WeightedSaliency) -> list[int]:
    a = Attempt(Text("one two three"), 1, Untargeted(), key=0, seed=0)

    def program() -> Any:
        (start,) = yield from a.score([a.original])
        return (yield from importance.rank(a, start, range(3)))

    (finished,) = Engine[list[int]](oracles()).run([(0, program())])
    assert finished.value is not None, finished.error
    return finished.value


def test_saliency_times_gain() -> None:
    # softmax(0, 0, ln 2) is 1/4, 1/4, 1/2; times .4, .3, .25 is .1, .075, .125.
    assert order(WeightedSaliency(WordNetLemmas())) == [2, 0, 1]


def test_textattack_ranks_by_scores_in_place_of_gains() -> None:
    # Scores with the best synonyms are .5, .4, .35: .125, .1, .175. Without replacements a word is worth 0.
    assert order(WeightedSaliency(WordNetLemmas(), worth="score")) == [2, 0, 1]
    # With gains .4 and .25 the first and the third would come the other way round for softmax .38, .24, .38.
    P["one two [UNK]"], P["[UNK] two three"] = 0.45, 0.45
    try:
        assert order(WeightedSaliency(WordNetLemmas())) == [0, 2, 1]
    finally:
        P["one two [UNK]"], P["[UNK] two three"] = 0.9 - math.log(2), 0.9


def attack(search: Any) -> tuple[Any, list[str]]:
    recipe = Recipe(name="toy", version="1", summary="s", paper="p", goal=Untargeted(), search=search)
    asked = oracles()
    result = attack_one(recipe, asked, "one two three")
    return result, asked["victim"].asked


def test_the_paper_puts_in_what_was_best_alone_even_if_it_hurts() -> None:
    # After tres (.65) comes uno beside it: .55, then dos beside both: .55, which is no better, and stays.
    result, asked = attack(BestSwapsInOrder(importance=WeightedSaliency(WordNetLemmas())))
    assert result.perturbed == "uno dos tres"
    assert asked[-2:] == ["uno two tres", "uno dos tres"]
    assert [edit.position for edit in sorted(result.edits, key=lambda edit: edit.step)] == [2, 0, 1]
    assert result.queries == 1 + 3 + 4 + 2


def test_textattack_chooses_anew_and_keeps_improvements_only() -> None:
    search = GreedySwap(
        importance=WeightedSaliency(WordNetLemmas(), worth="score"),
        candidates=WordNetLemmas(),
        constraints=(),
        ties="text",
        stopwords="none",
    )
    result, asked = attack(search)
    assert result.perturbed == "eins two tres"  # equal to uno there, and first by the alphabet
    assert "eins dos tres" in asked


@pytest.mark.parametrize("version", list(RECIPES))
def test_it_keeps_the_rules_of_attacks(version: str) -> None:
    check_recipe(RECIPES[version])


def test_scored_is_what_best_gives() -> None:
    a = Attempt(Text("one six"), 1, Untargeted(), key=0, seed=0)

    def program() -> Any:
        (start,) = yield from a.score([a.original])
        return (yield from WeightedSaliency(WordNetLemmas()).best(a, start, range(2)))

    (finished,) = Engine[dict[int, Scored | None]](oracles()).run([(0, program())])
    assert finished.value is not None
    assert finished.value[1] is None, "six has no synonym"
