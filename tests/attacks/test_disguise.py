"""Rewrites in other characters: each can be undone, is asked once, and hides nothing from the numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfooled
from reviews import write_csv
from toys import Answering, attack_one
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.disguise import CARRIER, DISGUISES, HIDDEN, INVISIBLE, LEET, Rewrite, backwards
from unfooled.attacks.smuggle import RECIPES as SMUGGLED
from unfooled.attacks.typos import RECIPES as TYPOS
from unfooled.attacks.viper import RECIPES as VIPER
from unfooled.attacks.viper import accented
from unfooled.core.recipe import Recipe, load_recipe, with_setting
from unfooled.report.tables import summary_rows
from unfooled.resources.look_alikes import LookAlike, open_look_alikes

WORDS = ("word", "A", "isn't", "Ⅷ7", "naïve", "cafe\u0301", "x-ray")


def shown(stored: str) -> str:
    """What a reader sees of words inside isolated overrides, by the rules for these controls alone."""
    return re.sub("\u2066\u202e(.*?)\u202c\u2069", lambda inside: inside[1][::-1], stored)


def stripped(characters: str) -> Callable[[str], str]:
    return lambda word: "".join(letter for letter in word if letter not in characters)


def from_selectors(word: str) -> str:
    codes = [ord(letter) for letter in word]
    return bytes(code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16 for code in codes).decode()


UNDO: dict[str, Callable[[str], str]] = {
    **{name: stripped(character) for name, character in INVISIBLE.items()},
    "backwards": shown,
    "tags": lambda word: "".join(chr(ord(c) - 0xE0000) if ord(c) >= 0xE0000 else c for c in word),
    "selectors": from_selectors,
    "stroke": stripped("\u0336"),
    "dotted": stripped("."),
    "spaced": stripped(" "),
}


@pytest.mark.parametrize("kind", sorted(UNDO))
@pytest.mark.parametrize("word", WORDS)
def test_what_is_disguised_can_be_undone(kind: str, word: str) -> None:
    disguised = DISGUISES[kind](word)
    assert UNDO[kind](disguised) == word
    assert disguised != word or len(word) == 1 or not word.isascii()


@pytest.mark.parametrize("kind", ["full-width", "mathematical"])
def test_normal_forms_undo_what_is_another_form_of_a_letter(kind: str) -> None:
    for word in ("word", "Word7", "ABC"):
        assert DISGUISES[kind](word) != word
        assert unicodedata.normalize("NFKC", DISGUISES[kind](word)) == word


def test_marks_and_leet_by_hand() -> None:
    assert DISGUISES["acute"]("ab7") == "a\u0301b\u03017"
    assert DISGUISES["leet"]("Toasties") == "70457135"
    assert "least".translate(LEET) == "l3457"


def test_words_of_other_directions_are_shown_as_before() -> None:
    assert backwards("שלום") == "\u2066\u202dםולש\u202c\u2069"  # shown as it was by an override
    assert backwards("كان") == "كان"  # letters that join stay
    assert backwards("aש") == "aש"


def blind(value: str) -> Any:
    """A victim that sees letters of ASCII only, and calls a text positive in which it reads "good"."""
    read = "".join(letter for letter in value if ord(letter) < 128)
    return np.array([0.1, 0.9] if "good" in read else [0.8, 0.2])


def attack(recipe: Recipe, text: str) -> Any:
    asked: dict[str, Any] = {"victim": Answering(blind)}
    for name in recipe.oracles():
        asked[name] = open_look_alikes(name.partition(":")[2])
    return attack_one(recipe, asked, text)


def test_one_rewrite_one_query() -> None:
    result = attack(load_recipe("smuggle-width"), "A good film!")
    assert (result.outcome, result.perturbed, result.queries) == ("success", "Ａ ｇｏｏｄ ｆｉｌｍ!", 2)
    assert [edit.after for edit in result.edits] == ["Ａ", "ｇｏｏｄ", "ｆｉｌｍ"]
    assert attack(load_recipe("leetspeak"), "A good film!").perturbed == "4 g00d f1lm!"
    assert attack(load_recipe("spacing@dots"), "A good film!").perturbed == "A g.o.o.d f.i.l.m!"


def test_a_victim_that_does_not_see_it_is_told_from_one_that_withstands_it() -> None:
    result = attack(load_recipe("smuggle-zero-width"), "A good film!")
    assert result.perturbed == "A g\u2060o\u2060o\u2060d f\u2060i\u2060l\u2060m!"
    assert (result.outcome, dict(result.facts)) == ("failure", {"unseen": 1})
    assert "may not see" in result.note


@pytest.mark.parametrize("name", ["smuggle-tags", "smuggle-emoji"])
def test_what_nobody_can_read_is_never_a_success(name: str) -> None:
    result = attack(load_recipe(name), "A good film!")
    assert (result.outcome, result.perturbed, result.edits) == ("failure", "A good film!", ())
    assert dict(result.facts) == {"unreadable": 1, "unreadable_flips": 1}
    assert (result.queries, result.tried) == (2, 0)
    assert result.perturbed_probs == result.probs  # nor is it in the accuracy under attack
    assert load_recipe(name).search.disguise.kind in HIDDEN  # type: ignore[attr-defined]


def test_the_emoji_stands_once_and_a_share_is_drawn() -> None:
    victim = Answering(blind)
    attack_one(load_recipe("smuggle-emoji"), {"victim": victim}, "A good film!")
    assert victim.asked[-1].count(CARRIER) == 1
    half = with_setting(load_recipe("leetspeak"), "search.share", "0.5")
    result = attack(half, "good good good good")
    assert len(result.edits) == 2
    with pytest.raises(ValueError, match="share"):
        Rewrite(disguise=half.search.disguise, share=0.0)  # type: ignore[attr-defined]


def test_viper_exchanges_the_share_of_letters_that_it_should() -> None:
    text = " ".join(["goodness", "banana", "letters"] * 100)
    letters = sum(letter.isalpha() for letter in text)
    for version in ("eces", "dces"):
        result = attack(VIPER[version], text)
        changed = sum(old != new for old, new in zip(text, result.perturbed, strict=True))
        # 0.3 within three standard deviations: 3 * sqrt(0.21 / 2100) = 0.03
        assert abs(changed / letters - 0.3) < 0.03, version
        assert result.queries <= 2
    assert [accented(letter) for letter in "aBq7"] == ["â", "Ḃ", "q", "7"]


def test_viper_draws_the_nearer_the_likelier_and_again_where_told() -> None:
    near = {"look-alikes:names": Answering(lambda letter: (LookAlike("é", 3.0), LookAlike("ó", 1.0)))}
    victim = {"victim": Answering(lambda value: np.array([0.1, 0.9]))}
    sure = with_setting(VIPER["dces"], "search.probability", "1")
    result = attack_one(sure, near | victim, "o" * 2000)
    # 3 : 1, within three standard deviations of 2,000 draws
    assert abs(result.perturbed.count("é") / 2000 - 0.75) < 0.03
    again = with_setting(VIPER["eces"], "search.draws", "5")
    assert attack_one(again, victim, "a good and longer text").asked == 6


def test_typos_are_made_or_taken_from_a_list() -> None:
    def exact(value: str) -> Any:
        return np.array([0.1, 0.9] if "great" in value else [0.8, 0.2])

    result = attack_one(TYPOS["keyboard"], {"victim": Answering(exact)}, "a great film")
    assert result.outcome == "success"
    # 1 + 2 deletions ("a" is a stop word), then swaps of inner letters and neighbours of every letter.
    assert [edit.before for edit in result.edits] == ["great"]
    assert result.perturbed == "a gerat film"


@pytest.mark.parametrize("name", [*SMUGGLED, *(f"viper@{v}" for v in VIPER), *(f"typos@{v}" for v in TYPOS)])
def test_conformance(name: str) -> None:
    check_recipe(load_recipe(name))


def test_a_run_of_unreadable_texts_says_so_and_breaks_nothing(tmp_path: Path) -> None:
    rows = [(f"superb and funny film {number}", "positive") for number in range(6)]
    write_csv(tmp_path / "d.csv", rows)
    run = unfooled.attack("fake", tmp_path / "d.csv", "smuggle-tags", out=tmp_path / "run")
    summary = run.summary()
    assert (summary.success_rate.value, summary.accuracy_under_attack.value) == (0.0, 1.0)
    assert (summary.unreadable.value, summary.unreadable.n) == (1.0, 6)
    named = {row.name: row for row in summary_rows(summary)}
    assert named["other decision, text unreadable (no success)"].n == "6"
    assert any("could try nothing" in caution for caution in summary.cautions)
