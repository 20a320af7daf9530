"""CheckList: each kind of change by hand, and the search on a victim whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one
from unfooled.attacks.checklist import Invariances
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.invariances import (
    CITIES,
    CONTRACTED,
    COUNTRIES,
    EXPANDED,
    FIRST_NAMES,
    LAST_NAMES,
    NATIONALITIES,
    contracted,
    expanded,
    relocated,
    renamed,
    renumbered,
)
from unfooled.core.recipe import load_recipe
from unfooled.text import Text


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_contractions_both_ways() -> None:
    assert [text.string for text in expanded(Text("It isn't good"), 1)] == ["It is not good"]
    assert [text.string for text in expanded(Text("I’m fine"), 0)] == ["I am fine"]
    assert [text.string for text in expanded(Text("WON'T do"), 0)] == ["WILL NOT do"]
    (text,) = contracted(Text("It is not good"), 1)
    assert text.string == "It isn't good"
    assert [edit.kind for edit in text.edits()] == ["replace", "delete"]
    assert contracted(Text("It is, not good"), 1) == []
    assert contracted(Text("I am"), 1) == expanded(Text("cannot"), 0) == []
    assert set(CONTRACTED.values()) <= set(EXPANDED)


def test_names_and_places_keep_their_kind() -> None:
    text = Text("Mary Smith of Paris met the French Smith in France")
    drawn = {index: {new.words[index] for new in renamed(text, index, 3, rng())} for index in range(10)}
    assert [index for index, found in drawn.items() if found] == [0, 1]  # a last name behind a first one
    assert drawn[0] < FIRST_NAMES - {"Mary"}
    assert drawn[1] < LAST_NAMES - {"Smith"}
    moved = {index: {new.words[index] for new in relocated(text, index, 3, rng())} for index in range(10)}
    assert (moved[3] < CITIES, moved[6] < NATIONALITIES, moved[9] < COUNTRIES) == (True, True, True)
    assert all(len(moved[index]) == 3 for index in (3, 6, 9))
    assert relocated(Text("in paris"), 1, 3, rng()) == []


def test_numbers_stay_near() -> None:
    found = {
        int(new.words[0])
        for seed in range(50)
        for new in renumbered(Text("7 films"), 0, 3, np.random.default_rng(seed))
    }
    assert found == set(range(1, 15)) - {7}  # from max(1, 7 - 8) to 7 + 8, which is not among them
    spelled = {new.words[0] for new in renumbered(Text("Ten films"), 0, 20, rng())}
    assert "Twelve" in spelled or "Eleven" in spelled
    assert all(word[0].isupper() for word in spelled)
    for untouched in ("0", "2", "four", "often", "1234567", "٣"):
        assert renumbered(Text(f"{untouched} films"), 0, 3, rng()) == []


def victim(value: str) -> Any:
    positive = 0.9 - 0.25 * ("is not" in value) - 0.25 * ("Mary" not in value) + 0.05 * ("they're" in value)
    return np.round(np.array([1 - positive, positive]), 6)


def test_changes_add_up_until_the_label_flips() -> None:
    result = attack_one(
        load_recipe("checklist"), {"victim": Answering(victim)}, "Mary isn't sure they are right"
    )
    assert result.outcome == "success"
    assert result.perturbed.endswith(" is not sure they are right")
    assert len(result.edits) == 2


def test_only_one_version_goes_on_where_nothing_improves() -> None:
    def stubborn(value: str) -> Any:
        return np.array([0.2, 0.8] if "they are" in value else [0.1, 0.9])

    text = "they are right"
    ours = attack_one(load_recipe("checklist"), {"victim": Answering(stubborn)}, text)
    theirs = attack_one(load_recipe("checklist@textattack"), {"victim": Answering(stubborn)}, text)
    assert (ours.perturbed, theirs.perturbed) == (text, "they're right")
    with pytest.raises(ValueError, match="kinds must be one of"):
        Invariances(kinds=("weather",))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["ours", "textattack"])
def test_conformance(version: str) -> None:
    check_recipe(load_recipe(f"checklist@{version}"))
