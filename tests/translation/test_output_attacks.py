"""seq2sick and morpheus: their goals by hand, their searches on writers whose output is known."""

from __future__ import annotations

import math
from typing import Any

import pytest

from toys import Answering, tags
from unfooled.attacks.checks import check_recipe
from unfooled.core.attempt import live
from unfooled.core.engine import Engine
from unfooled.core.questions import Asked, Written
from unfooled.core.recipe import load_recipe
from unfooled.core.result import Example, Result
from unfooled.language.oracles import FormsOracle
from unfooled.resources.inflections import InflectionTable
from unfooled.translation.attacks.output_goals import plain_bleu

TABLE = InflectionTable(
    {
        ("run", "verb"): {"VBD": ("ran",), "VBN": ("run",), "VBG": ("running",), "VBZ": ("runs",)},
        ("run", "noun"): {"NNS": ("runs",)},
        ("dog", "noun"): {"NNS": ("dogs",)},
    }
)


def attack(name: str, text: str, reference: str, oracles: dict[str, Any]) -> Result:
    recipe = load_recipe(name)
    example = Example(0, (("text", text),), 0, "text", reference=reference)
    program = live(recipe.goal.attempt_on(example, key=0, seed=0, budget=None), recipe.search)
    (finished,) = Engine[Result](oracles).run([(0, program)])
    assert finished.value is not None, finished.error
    return finished.value


def writer(table: dict[str, str]) -> Answering:
    def answer(asked: Asked) -> Written:
        return Written(" ".join(table.get(word, word) for word in asked.text.split()))

    return Answering(answer)


@pytest.mark.parametrize(
    "name", ["seq2sick@textattack", "morpheus@paper", "morpheus@textattack", "morpheus@classes"]
)
def test_they_keep_the_rules_of_attacks(name: str) -> None:
    check_recipe(load_recipe(name))


def test_all_forms_of_the_lemma() -> None:
    forms = FormsOracle(TABLE)
    assert forms([("runs", "verb")]) == [("run", "ran", "running")]
    assert forms([("runs", "noun"), ("cat", "noun")]) == [("run",), ()]


def test_plain_bleu_needs_four_words_in_a_row() -> None:
    words = list("abcde")
    assert plain_bleu(words, words) == 1.0
    assert plain_bleu(list("abcxe"), words) == 0.0
    # a b c d: all rows are in the reference, and it is one word of five too short.
    assert plain_bleu(words[:4], words) == pytest.approx(math.exp(1 - 5 / 4), abs=1e-6)
    assert plain_bleu(words, words[:4]) == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25, abs=1e-6)
    assert plain_bleu([], words) == 0.0


def test_seq2sick_changes_the_words_of_all_places() -> None:
    oracles = {
        "victim": writer({"good": "bom", "film": "filme", "fine": "belo", "reel": "rolo", "[UNK]": "bom"}),
        "neighbours:counter-fitted": Answering(lambda item: {"good": ("fine",), "film": ("reel",)}[item[0]]),
    }
    result = attack("seq2sick", "good film", "bom filme", oracles)
    assert (result.outcome, result.perturbed, result.perturbed_output) == (
        "success",
        "fine reel",
        "belo rolo",
    )


def morphed(name: str, table: dict[str, str]) -> tuple[Result, list[str]]:
    victim = writer(table)
    oracles = {
        "victim": victim,
        "tag:perceptron-tagger": tags({"runs": "VERB", "the": "DET", "now": "ADV"}),
        "forms:inflections": FormsOracle(TABLE),
    }
    result = attack(name, "the dog runs now", "the dog runs now", oracles)
    return result, [asked.text for asked in victim.asked]


def test_morpheus_goes_from_left_to_right_and_back() -> None:
    # The output is the text itself, but most forms do no harm: only running is written as it stands.
    harmless = {"dogs": "dog", "run": "runs", "ran": "runs"}
    result, asked = morphed("morpheus", harmless)
    assert (result.outcome, result.perturbed) == ("success", "the dog running now")
    assert asked == [
        "the dog runs now",
        "the dogs runs now",
        "the dog run now",
        "the dog ran now",
        "the dog running now",
    ]
    failed, asked = morphed("morpheus", harmless | {"running": "runs"})
    assert (failed.outcome, failed.edits) == ("failure", ())
    assert len(asked) == 5, "the way back asks about the same texts, which cost nothing"


def test_textattacks_way_moves_on_where_nothing_is_better() -> None:
    harmless = {"dogs": "dog", "run": "runs", "ran": "runs", "running": "runs"}
    result, _ = morphed("morpheus@textattack", harmless)
    assert result.outcome == "failure"
    assert result.perturbed == "the dogs ran now", "the first by the alphabet, then the best of what is left"
