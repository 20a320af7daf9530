"""Character edits, counted by hand."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from toys import Answering, attack_one
from unfooled.attacks.parts.candidates import AnyOf
from unfooled.attacks.parts.characters import (
    KEYBOARDS,
    TWINS,
    Kind,
    LookAlikes,
    Misspelling,
    TableName,
    displayed_swapped,
    places,
)
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.recipe import Recipe, load_part
from unfooled.resources.look_alikes import open_look_alikes


def of(word: str, kind: Kind, **settings: object) -> list[str]:
    return Misspelling(kind, **settings).of(word, np.random.default_rng(1))  # type: ignore[arg-type]


def test_inner_edits_of_a_word_of_four_letters() -> None:
    assert of("word", "swap") == ["wrod"]
    assert of("word", "drop") == ["wrd", "wod"]
    assert len(of("word", "add")) == 3 * 26 - 2  # "woord" and "worrd" come about in two ways each
    assert len(of("word", "add", before_last=False)) == 2 * 26 - 1  # "woord"
    assert of("word", "blank") == ["w ord", "wo rd", "wor d"]
    assert of("word", "keyboard", keyboard="grid") == ["wird", "wlrd", "wprd", "woed", "wofd", "wotd"]
    assert of("Word", "drop", inner=False) == ["ord", "Wrd", "Wod", "Wor"]
    assert of("WORD", "keyboard", keyboard="textattack")[:4] == ["WIRD", "WKRD", "WLRD", "WPRD"]


def test_short_words_and_long_ones() -> None:
    assert of("cat", "swap") == of("ab", "drop") == of("a", "blank") == of("", "drop", inner=False) == []
    assert of("ab", "blank") == ["a b"]
    assert of("word", "swap", least=5) == []
    assert len(of("x" * 5000 + "y", "invisible")) < 1000  # of a text without blanks not all


def test_one_edit_is_drawn_or_one_for_each_place() -> None:
    assert len(of("wonderful", "add", pick="one")) == 1
    each = of("wonderful", "add", pick="each-place", before_last=False)
    assert len(each) == 7
    assert {len(word) for word in each} == {10}
    drawn = {Misspelling("drop", "one").of("word", np.random.default_rng(seed))[0] for seed in range(20)}
    assert drawn == {"wrd", "wod"}


def test_what_is_put_in_by_stealth() -> None:
    assert of("ab", "invisible") == ["a\u200bb", "a\u200cb", "a\u200db"]
    assert of("ab", "backspace", letters="x") == ["ax\bb"]
    shown = displayed_swapped("abcd", 1)
    # Stored c before b; the override that shows them as b, c is closed again.
    assert [character for character in shown if character.isalpha()] == ["a", "c", "b", "d"]
    assert shown.count("\u202d") + shown.count("\u202e") == shown.count("\u202c") == 2
    assert shown.count("\u2066") == shown.count("\u2069") == 3
    assert of("abcd", "bidi-swap") == [shown]


def test_places_of_each_kind() -> None:
    assert list(places("word", "swap", inner=False)) == [0, 1, 2]
    assert list(places("word", "add", inner=False)) == [0, 1, 2, 3, 4]
    assert list(places("word", "look-alike", inner=True)) == [1, 2]


def test_tables_hold_what_their_sources_say() -> None:
    assert len(TWINS["intentional"]) == 30
    assert len(TWINS["textbugger"]) == 38
    assert all(len(twin) == 1 for table in TWINS.values() for twin in table.values())
    for letter, twin in TWINS["intentional"].items():
        assert ord(twin) > 127
        assert unicodedata.normalize("NFKC", twin) != letter  # no normal form takes it back
    assert KEYBOARDS["grid"]["g"] == "bfht"
    for name in ("qwerty", "grid"):
        assert all(
            key in KEYBOARDS[name][other] for key, others in KEYBOARDS[name].items() for other in others
        )


def look_alike_recipe(table: TableName) -> Recipe:
    search = GreedySwap(
        importance=Deletion(),
        candidates=AnyOf((LookAlikes(table), Misspelling("drop"))),
        constraints=(),
    )
    return Recipe(name="toy", version="test", summary="", paper="", goal=Untargeted(), search=search)


def test_a_look_alike_is_a_candidate_like_any_other() -> None:
    cyrillic = Answering(lambda text: np.array([0.9, 0.1] if "\u0430" in text else [0.1, 0.9]))
    result = attack_one(look_alike_recipe("intentional"), {"victim": cyrillic}, "a great film")
    assert (result.outcome, result.perturbed) == ("success", "a gre\u0430t film")
    assert LookAlikes("confusables").asks == ("look-alikes:confusables",)
    recipe = look_alike_recipe("names")
    asked = {"victim": cyrillic, "look-alikes:names": open_look_alikes("names")}
    assert attack_one(recipe, asked, "a great film").outcome == "failure"
    assert recipe.oracles() == ["look-alikes:names"]


def test_unicodes_confusables_come_from_their_package() -> None:
    pytest.importorskip("confusable_homoglyphs")
    find = open_look_alikes("confusables")
    (small, capital, em, mark) = find(["a", "I", "m", "\u4e00\u4e00"])
    assert "\u0430" in [found.character for found in small[:3]]  # the Cyrillic twin, before other forms
    assert "\u0406" in [found.character for found in capital[:3]]
    assert em
    assert mark == ()
    assert all(len(found.character) == 1 for found in small)


def test_names_and_pictures_find_what_looks_alike() -> None:
    (found,) = open_look_alikes("names")(["a"])
    assert {"á", "â", "ä"} <= {near.character for near in found}
    assert len(found) == 12
    weights = [near.weight for near in found]
    assert weights == sorted(weights, reverse=True)
    assert open_look_alikes("names")(["7"]) == [()]
    pytest.importorskip("matplotlib")
    (shapes, none) = open_look_alikes("pictures")(["o", "\u4e00"])
    assert {"\u03bf", "\u043e"} <= {near.character for near in shapes[:4]}
    assert len(shapes) == 20
    assert none == ()


def test_parts_by_name() -> None:
    assert load_part("candidates", "misspelling:swap") == Misspelling("swap")
    assert load_part("candidates", "look-alikes:textbugger") == LookAlikes("textbugger")
    with pytest.raises(ValueError, match="kind must be one of"):
        Misspelling("shuffle")  # type: ignore[arg-type]
