"""pruthi, charmer and input-reduction on victims whose right answer is known by arithmetic."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, linear
from unfooled.attacks.charmer import BestCharacters
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.goals import KeepLabel, Margin
from unfooled.core.recipe import Recipe, load_recipe, with_setting
from unfooled.text import Text


def by_letters(weights: dict[str, float]) -> Answering:
    """P(class 1) falls with each such character in the text."""

    def answer(value: Any) -> np.ndarray:
        string = value if isinstance(value, str) else " ".join(value)
        positive = 0.9 - sum(weights.get(letter, 0.0) for letter in string)
        return np.round(np.array([1 - positive, positive]), 6)

    return Answering(answer)


# -- pruthi ----------------------------------------------------------------------------------------


def test_pruthi_finds_the_worst_misspelling_of_all_words() -> None:
    victim = linear({"superb": 0.3, "superv": 0.1, "spuerb": 0.2, "fine": 0.1, "fire": -0.3})
    result = attack_one(load_recipe("pruthi@paper"), {"victim": victim}, "a superb fine film")
    # 0.9 as it stands. Best: "superb" misspelled loses 0.3 (any that is unknown); "fine" → "fire" 0.4: 0.5.
    assert "fire" not in result.perturbed  # r is not beside n on the keyboard
    assert (result.outcome, len(result.edits)) == ("failure", 1)
    assert result.edits[0].before == "superb"
    two = attack_one(load_recipe("pruthi@two"), {"victim": victim}, "a superb fine film")
    assert {edit.before for edit in two.edits} == {"superb", "fine"}


def test_pruthi_leaves_first_and_last_letters_and_stop_words() -> None:
    victim = Answering(lambda value: np.array([0.3, 0.7]))
    attack_one(load_recipe("pruthi@textattack"), {"victim": victim}, "this is great fun")
    for text in victim.asked[1:]:
        before, after = ["this", "is", "great", "fun"], text.split(" ")
        assert (after[0], after[1], after[3]) == (before[0], before[1], before[3])  # stop words, or too short
        assert after[2][0] == "g"
        assert after[2][-1] == "t"
    # 2 swaps + 3 drops + 3 adds + keyboard neighbours of r, e, a (5 each), less what comes about twice
    assert 18 <= len(victim.asked) - 1 <= 2 + 3 + 3 + 15


# -- charmer ---------------------------------------------------------------------------------------


def charmer(**changes: Any) -> Recipe:
    return dataclasses.replace(load_recipe("charmer"), search=BestCharacters(**changes))


def one_edit(string: str, alphabet: str) -> set[str]:
    """Every string one edit away, written down without any of our parts."""
    found = {string[:i] + c + string[i:] for i, c in product(range(len(string) + 1), alphabet)}
    found |= {string[:i] + c + string[i + 1 :] for i, c in product(range(len(string)), ["", *alphabet])}
    return found - {string}


@pytest.mark.parametrize("string", ["ab cd", "abcde"])
def test_with_all_places_charmer_is_brute_force(string: str) -> None:
    weights = {"x": 0.11, "y": 0.1, " ": 0.03, "b": -0.2, "a": 0.05}
    victim = by_letters(weights)
    result = attack_one(charmer(alphabet="xy ", places=1000, most=1), {"victim": victim}, string)
    lowest = min(one_edit(string, "xy "), key=lambda text: victim.answer(text)[1])
    assert victim.answer(result.perturbed)[1] == victim.answer(lowest)[1]
    asked = set(victim.asked) - {string}
    assert asked == one_edit(string, "xy ")


def test_charmer_edits_until_the_label_flips() -> None:
    victim = by_letters({"x": 0.15})
    result = attack_one(charmer(alphabet="xyz", places=2), {"victim": victim}, "good film")
    # 0.9 → 0.45 takes three x
    assert (result.outcome, result.perturbed.count("x")) == ("success", 3)
    few = attack_one(charmer(alphabet="xyz", places=2, most=2), {"victim": victim}, "good film")
    assert (few.outcome, few.perturbed.count("x")) == ("failure", 2)


def test_charmer_joins_words_and_says_so() -> None:
    victim = Answering(lambda value: np.array([0.8, 0.2] if " " not in value else [0.2, 0.8]))
    result = attack_one(charmer(), {"victim": victim}, "good film")
    assert (result.outcome, result.perturbed) == ("success", "goodfilm")
    assert [(edit.kind, edit.before, edit.after) for edit in result.edits] == [
        ("replace", "good", "goodfilm"),
        ("delete", "film", ""),
    ]


def test_charmer_after_pruthi_keeps_to_his_rules() -> None:
    search = load_recipe("charmer@pruthi").search
    assert isinstance(search, BestCharacters)
    places = list(search.spots(Text("a good film")))
    assert {(place.word, place.at) for place in places if place.instead} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert {place.at for place in places if not place.instead} == {1, 2, 3}
    assert [place.word for place in search.spots(Text("a good film").replace(1, "goood"))] == [2] * 5


# -- input reduction -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["textattack", "paper"])
def test_a_text_is_reduced_to_its_one_decisive_word(version: str) -> None:
    victim = linear({"superb": 0.3, "film": 0.1, "dull": -0.1})
    recipe = load_recipe(f"input-reduction@{version}")
    result = attack_one(recipe, {"victim": victim}, "A superb but dull film, really.")
    assert (result.outcome, result.perturbed) == ("success", "superb,.")
    assert dict(result.facts) == {"words_left": 1, "share_left": round(1 / 6, 6)}
    assert result.perturbed_probs == (0.2, 0.8)  # the decision stays
    assert {edit.kind for edit in result.edits} == {"delete"}


def test_reduction_goes_as_far_as_it_can() -> None:
    victim = linear({"fine": 0.2, "good": 0.2}, bias=-0.3)  # both words are needed
    result = attack_one(load_recipe("input-reduction"), {"victim": victim}, "fine good film")
    assert (result.outcome, result.perturbed) == ("failure", "fine good")
    assert dict(result.facts)["words_left"] == 2
    # 1 + 3 deletions; without "film" is known; "fine" and "good" are tried from there.
    assert result.queries == 6
    short = attack_one(load_recipe("input-reduction"), {"victim": victim}, "fine good film", budget=5)
    assert (short.perturbed, short.queries) == ("fine good", 5)
    assert "budget" in short.note


def test_goals_of_these_attacks() -> None:
    probs = np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]])
    assert Margin().judge(probs, 1) == ([-0.2, 0.1], [False, True])
    assert KeepLabel().judge(probs, 1) == ([0.5, -0.7], [False, False])


def test_a_wider_beam_is_a_setting() -> None:
    recipe = with_setting(load_recipe("input-reduction"), "search.width", "2")
    assert recipe.full_name == "input-reduction@textattack+changed"


@pytest.mark.parametrize(
    "name",
    [
        f"{name}@{version}"
        for name, versions in (
            ("pruthi", ("textattack", "paper", "two")),
            ("charmer", ("paper", "pruthi")),
            ("input-reduction", ("textattack", "paper")),
        )
        for version in versions
    ],
)
def test_conformance(name: str) -> None:
    check_recipe(load_recipe(name))
