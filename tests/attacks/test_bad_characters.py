"""Bad characters: what an edit is, by hand; what evolution finds, on a victim whose answer is known."""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one
from unfooled.attacks.bad_characters import RECIPES, EvolveCharacters, Spot, edited, spots
from unfooled.attacks.checks import check_recipe
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.text import Text


def test_places_of_each_kind() -> None:
    text = Text("a bad, bet")
    assert spots(text, "invisible")[:3] == [Spot(0, 0), Spot(1, 0), Spot(1, 1)]
    assert len(spots(text, "deletions")) == 7
    assert spots(text, "homoglyphs") == [Spot(0, 0), Spot(1, 1), Spot(1, 2), Spot(2, 1)]  # no twin of b and t
    assert spots(text, "reorderings") == [Spot(1, 0), Spot(1, 1), Spot(2, 0), Spot(2, 1)]


def test_edits_of_a_word() -> None:
    assert edited("abc", [(1, "\u200b"), (0, "\u200d")], "invisible") == "\u200da\u200bbc"
    assert edited("abc", [(0, ""), (2, "")], "homoglyphs") == "\u0430b\u0441"
    assert edited("abc", [(1, "x")], "deletions") == "ax\bbc"
    two = edited("abcd", [(0, ""), (2, "")], "reorderings")
    assert [letter for letter in two if letter.isalpha()] == ["b", "a", "d", "c"]
    overlapping = edited("abc", [(0, ""), (1, "")], "reorderings")
    assert [letter for letter in overlapping if letter.isalpha()] == ["a", "c", "b"]


def seen(text: str) -> str:
    """What a reader sees, by the rules for these characters alone."""
    shown = ""
    for character in text:
        if character == "\b":
            shown = shown[:-1]
        elif unicodedata.category(character) != "Cf":
            shown += character
    return shown


@pytest.mark.parametrize("kind", ["invisible", "deletions"])
def test_a_reader_sees_the_same(kind: str) -> None:
    search = EvolveCharacters(kind=kind, edits=5)  # type: ignore[arg-type]
    text = Text("A rather good, old film")
    render = search._renderer(text, spots(text, kind))
    rng = np.random.default_rng(3)
    low, high = np.array(search._bounds(len(spots(text, kind)))).T
    for _ in range(50):
        made = render(low + rng.random(len(low)) * (high - low))
        assert seen(made.string) == text.string
        assert made.changes <= 5


def strict(value: str) -> Any:
    """Reads a word only where it stands as it should; half of the weight is on "good", half on "film"."""
    positive = 0.2 + 0.35 * ("good" in value) + 0.35 * ("film" in value)
    return np.round(np.array([1 - positive, positive]), 6)


def few(kind: str, edits: int) -> Recipe:
    search = EvolveCharacters(kind=kind, edits=edits, size=8)  # type: ignore[arg-type]
    return dataclasses.replace(load_recipe("bad-invisible"), search=search)


@pytest.mark.parametrize("kind", ["invisible", "homoglyphs", "reorderings", "deletions"])
def test_evolution_finds_the_words_that_matter(kind: str) -> None:
    text = "it is a rather good and very long old film of them all"
    single = attack_one(few(kind, 1), {"victim": Answering(strict)}, text)
    assert single.outcome == "failure"
    assert single.perturbed_probs[1] == pytest.approx(0.55)  # one edit breaks one word
    two = attack_one(few(kind, 3), {"victim": Answering(strict)}, text)
    assert two.outcome == "success"
    assert {"good", "film"} <= {edit.before for edit in two.edits}


def test_no_edits_leave_the_text_and_a_blind_victim_is_named() -> None:
    text = "it is a rather good film"
    assert attack_one(few("invisible", 0), {"victim": Answering(strict)}, text).perturbed == text
    blind = Answering(lambda value: strict(seen(value)))
    result = attack_one(few("invisible", 2), {"victim": blind}, text)
    assert (result.outcome, "may not see" in result.note) == ("failure", True)
    assert attack_one(few("homoglyphs", 2), {"victim": Answering(strict)}, "good film").outcome == "success"


def test_textattacks_edit_always_happens() -> None:
    search = load_recipe("bad-deletions@textattack").search
    assert isinstance(search, EvolveCharacters)
    text = Text("good film")
    made = search._renderer(text, spots(text, "deletions"))(np.array([-1.0, 120.0]))
    assert made.string == "x\bgood film"
    assert (
        EvolveCharacters(kind="deletions")._renderer(text, spots(text, "deletions"))(np.array([-1.0, 120.0]))
        == text
    )


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_conformance(name: str) -> None:
    check_recipe(load_recipe(name))


def test_textattacks_name_leads_to_what_its_recipe_edits() -> None:
    assert load_recipe("bad-characters@textattack") is load_recipe("bad-homoglyphs@textattack")
