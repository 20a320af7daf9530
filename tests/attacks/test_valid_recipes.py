"""Parts that hold a search to valid texts, by hand-made answers; and the recipes, on the real lexicons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.english import (
    GoodGrammar,
    InForm,
    MaxChangedShare,
    ProtectedWords,
    RelatedWords,
)
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.attacks.parts.undoing import UndoingSwap, with_one_undone
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.recipe import load_part, load_recipe
from unfooled.language.english import open_english
from unfooled.language.forms import same_stem
from unfooled.language.oracles import EditEffect, EditOracle, InflectOracle
from unfooled.language.relations import Related
from unfooled.resources import store
from unfooled.text import Text

SYNONYM = Related("synonym", 0, 0)


def verdict(
    related: Related = SYNONYM, *, part: str = "adj", changed: str = "", breaks: int = 0, senses: int = 1
) -> EditEffect:
    return EditEffect(part, frozenset({changed} if changed else set()), breaks, related, senses)  # type: ignore[arg-type]


def edits(table: Mapping[str, EditEffect]) -> Answering:
    return Answering(lambda item: tuple(table[word] for word in item[2]))


def swaps(text: Text, index: int, words: Sequence[str]) -> list[NextText]:
    return [NextText(text.replace(index, word), index) for word in words]


def allowed(constraint: Any, options: Sequence[NextText], oracles: Mapping[str, Any], now: Text) -> list[str]:
    attempt = Attempt(now.root, 1, Untargeted(), key=0, seed=0)
    program = constraint.allow(attempt, Scored(now, np.array([0.1, 0.9]), 0.1, False), options)
    (finished,) = Engine[list[NextText]](oracles).run([(0, program)])
    assert finished.value is not None
    return [option.word for option in finished.value]


# -- protected words -------------------------------------------------------------------------------


def test_protected_words_stay_and_none_comes_in() -> None:
    text = Text("we never saw Alaska")
    assert allowed(ProtectedWords(), swaps(text, 1, ["always"]), {}, text) == []
    assert allowed(ProtectedWords(negations=False), swaps(text, 1, ["always"]), {}, text) == ["always"]
    assert allowed(ProtectedWords(), swaps(text, 3, ["Texas"]), {}, text) == []
    assert allowed(ProtectedWords(), swaps(text, 2, ["met", "two"]), {}, text) == ["met"]
    inserted = [NextText(text.insert(2, word), 2, inserted=True) for word in ("not", "once", "gladly")]
    assert allowed(ProtectedWords(), inserted, {}, text) == ["gladly"]


# -- grammar ---------------------------------------------------------------------------------------


def test_forms_agreement_and_repetition() -> None:
    text = Text("a dull plot with passionate enthusiasms")
    table = {
        "slow": verdict(),
        "slower": verdict(changed="degree"),
        "odd": verdict(breaks=1),
    }
    oracles = {"edit:wordnet": edits(table | {"enthusiastic": verdict(), "keen": verdict()})}
    options = swaps(text, 1, list(table))
    assert allowed(GoodGrammar(), options, oracles, text) == ["slow"]
    assert allowed(GoodGrammar(form=False), options, oracles, text) == ["slow", "slower"]
    assert allowed(GoodGrammar(agreement=False), options, oracles, text) == ["slow", "odd"]
    repeated = swaps(text, 4, ["enthusiastic", "keen"])
    assert allowed(GoodGrammar(), repeated, oracles, text) == ["keen"]
    assert allowed(GoodGrammar(no_repetition=False), repeated, oracles, text) == ["enthusiastic", "keen"]


def test_inserted_words_pass_unasked() -> None:
    text = Text("a dull plot")
    inserted = [NextText(text.insert(1, "very"), 1, inserted=True)]
    for constraint in (GoodGrammar(), RelatedWords()):
        assert allowed(constraint, inserted, {}, text) == ["very"]


def test_words_of_one_stem() -> None:
    assert same_stem("hack", "hacker")
    assert same_stem("Imagery", "imaging")
    assert not same_stem("film", "movie")
    assert not same_stem("great", "grand")


# -- relations -------------------------------------------------------------------------------------

FAR, CLOSE = 2.0, 0.5  # radians: cosines of -0.42 and 0.88


def related(
    word: str, found: EditEffect, *, angle: float, near: Sequence[str] = (), sure: bool = False
) -> bool:
    """Whether the word may stand for "dull", which has these neighbours."""
    text = Text("a dull plot")

    def lookup(item: tuple[str, int, float]) -> tuple[str, ...]:
        return tuple(near) if item[2] < 0.8 or sure else ()

    oracles = {
        "edit:wordnet": edits({word: found}),
        "neighbours:counter-fitted": Answering(lookup),
        "encode:potion": encoder({word: angle}),
    }
    return allowed(RelatedWords(), swaps(text, 1, [word]), oracles, text) == [word]


@pytest.mark.parametrize(
    ("found", "close", "near", "sure", "passes"),
    [
        (verdict(SYNONYM), False, True, True, True),
        (verdict(SYNONYM), False, True, False, False),
        (verdict(SYNONYM), True, False, False, True),
        (verdict(Related("synonym", 3, 1)), True, False, False, True),
        (verdict(Related("synonym", 3, 2)), True, True, True, False),
        (verdict(Related("synonym", 1, 0), part="noun"), True, True, True, False),
        (verdict(Related("synonym", 0, 2), part="noun"), True, False, False, True),
        (verdict(SYNONYM, part="verb", senses=11), True, True, True, False),
        (verdict(Related("similar", 0, 0)), True, False, False, True),
        (verdict(Related("antonym", 0, 0)), True, True, True, False),
        (verdict(Related("co-hyponym", 0, 0)), True, True, True, False),
        (verdict(Related("hypernym", 0, 0)), True, True, True, False),
        (verdict(Related("unknown")), True, True, True, False),
        (verdict(Related("unrelated")), True, True, False, True),
        (verdict(Related("unrelated")), True, False, False, False),
        (verdict(Related("unrelated"), part="noun"), True, True, False, False),
    ],
)
def test_which_words_mean_the_same(
    found: EditEffect, close: bool, near: bool, sure: bool, passes: bool
) -> None:
    angle = CLOSE if close else FAR
    assert related("slow", found, angle=angle, near=["slow"] if near else [], sure=sure) is passes


def test_a_word_of_the_same_stem_is_barred() -> None:
    assert not related("dullish", verdict(), angle=CLOSE, near=["dullish"], sure=True)


# -- share, forms, undoing -------------------------------------------------------------------------


def test_one_change_is_always_allowed() -> None:
    text = Text("one two three four five six")
    options = swaps(text, 0, ["other"])
    assert allowed(MaxChangedShare(0.0), options, {}, text) == ["other"]
    assert allowed(MaxChangedShare(0.2), swaps(text.replace(3, "x"), 0, ["y"]), {}, text) == []
    assert allowed(MaxChangedShare(0.34), swaps(text.replace(3, "x"), 0, ["y"]), {}, text) == ["y"]
    with pytest.raises(ValueError, match="between 0 and 1"):
        MaxChangedShare(1.5)


def test_candidates_take_the_form_of_the_word() -> None:
    forms = {"see": "Saw", "watched": "watched", "eye": ""}
    oracles = {
        "victim": linear({"Watched": 0.4, "Saw": -0.5}),
        "neighbours:toy": neighbours({"watched": ["eye", "see"]}),
        "inflect:inflections": Answering(lambda item: tuple(forms[word.lower()].lower() for word in item[2])),
    }
    search = GreedySwap(
        importance=Deletion(), candidates=InForm(sources=(Neighbours(table="toy"),)), constraints=()
    )
    assert attack_one(toy_recipe(search), oracles, "Watched").perturbed == "Saw"


def test_edits_that_a_success_does_not_need_are_undone() -> None:
    weights = {"good": 0.2, "fine": 0.3, "bad": -0.1, "awful": -0.9}
    oracles = {
        "victim": linear(weights),
        "neighbours:toy": neighbours({"fine": ["bad"], "good": ["awful"]}),
    }
    parts: dict[str, Any] = {
        "importance": Deletion(),
        "candidates": Neighbours(table="toy"),
        "constraints": (),
    }
    plain = attack_one(toy_recipe(GreedySwap(**parts)), oracles, "fine good")
    undone = attack_one(toy_recipe(UndoingSwap(**parts)), oracles, "fine good")
    assert (plain.outcome, undone.outcome) == ("success", "success")
    assert plain.perturbed == "bad awful"
    assert undone.perturbed == "fine awful"
    spent = attack_one(toy_recipe(UndoingSwap(**parts)), oracles, "fine good", budget=plain.asked)
    assert (spent.outcome, spent.perturbed) == ("success", "bad awful")


def test_each_edit_undone_alone() -> None:
    text = Text("a dull old film").replace(1, "slow").insert(3, "and")
    assert [undone.string for undone in with_one_undone(text)] == ["a dull old and film", "a slow old film"]


# -- the recipes -----------------------------------------------------------------------------------


def test_the_plain_names_mean_what_they_meant() -> None:
    assert load_recipe("textfooler").full_name == "textfooler@textattack"
    assert load_recipe("bae-r").full_name == "bae-r@paper"
    assert load_recipe("textfooler@valid").full_name == "textfooler@valid"
    assert {"edit:wordnet", "inflect:inflections", "tag:perceptron-tagger", "encode:potion"} <= set(
        load_recipe("bae-r@valid").oracles()
    )


def test_parts_are_found_by_name() -> None:
    assert load_part("constraint", "max-changed-share:0.1") == MaxChangedShare(0.1)
    assert load_part("constraint", "good-grammar") == GoodGrammar()
    assert load_part("constraint", "related-words") == RelatedWords()
    assert load_part("constraint", "protected-words") == ProtectedWords()


def test_oracles_on_the_real_lexicons() -> None:
    for name in ("perceptron-tagger", "wordnet", "inflections"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    inflect, edit = InflectOracle(open_english()), EditOracle(open_english())
    text = "she watches an old movie ."
    assert inflect([(text, 1, ("see", "view", "film", "of"))]) == [("sees", "views", "films", "")]
    ((film, flicks, season),) = edit([(text, 4, ("film", "flicks", "season"))])
    assert (film.part, film.changed, film.disagreements, film.related) == ("noun", frozenset(), 0, SYNONYM)
    assert (flicks.changed, flicks.disagreements) == (frozenset({"number"}), 1)
    assert season.related.relation == "unrelated"
    ((new,),) = edit([(text, 3, ("new",))])
    assert (new.disagreements, new.related.relation) == (1, "antonym")
