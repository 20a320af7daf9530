"""A surrogate chooses the questions: few of them, the victim's own answers, and the same for any company."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toys import Answering, encoder, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import SentenceSimilarity
from unfooled.attacks.parts.goals import OnlyClass, Targeted, Untargeted
from unfooled.attacks.parts.guided import BySurrogate, margin
from unfooled.attacks.parts.importance import Bisection, Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.attempt import Attempt
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe, recipe_from_json, with_asking
from unfooled.core.result import Example, Result
from unfooled.core.session import Session, Settings
from unfooled.text import Text
from unfooled.victims.fake import FakeVictim

GREEDY = GreedySwap(importance=Deletion(), candidates=Neighbours(), constraints=())
WORDS = ["alpha", "beta", "gamma", "delta"]
TABLE = {word: [f"{word}{letter}" for letter in "xyz"] for word in WORDS}
TEXT = " ".join(WORDS)


def logistic(weights: dict[str, float]) -> Answering:
    """P(class 1): the logistic function of the summed weights, so that edits add up in log-odds."""

    def answer(value: str) -> np.ndarray:
        positive = 1.0 / (1.0 + np.exp(-sum(weights.get(word, 0.0) for word in value.split())))
        return np.round(np.array([1.0 - positive, positive]), 6)

    return Answering(answer)


# Of 2.8 in all: gammay takes 2.0, deltaz 1.5, alphax 0.6; everything else nothing.
WEIGHTS = {"alpha": 1.0, "beta": 0.8, "gamma": 0.5, "delta": 0.5}
WEIGHTS |= {f"{word}{letter}": WEIGHTS[word] for word in WORDS for letter in "xyz"}
WEIGHTS |= {"gammay": -1.5, "deltaz": -1.0, "alphax": 0.4}


def guided(search: Any = GREEDY, **settings: Any) -> Recipe:
    return with_asking(toy_recipe(search), BySurrogate("toy", **settings))


def oracles(victim: dict[str, float], surrogate: dict[str, float], **more: Any) -> dict[str, Any]:
    return {
        "surrogate:toy": logistic(surrogate),
        "neighbours:counter-fitted": neighbours(TABLE),
        **more,
        "victim": logistic(victim),
    }


def attack(
    recipe: Recipe, asked: dict[str, Any], texts: Sequence[str] = (TEXT,), **settings: Any
) -> list[Result]:
    session = Session(FakeVictim(), recipe, Settings(**settings), oracles=asked)
    examples = [Example(key, (("text", text),), 1, "text") for key, text in enumerate(texts)]
    return sorted(session.attack(examples), key=lambda result: result.key)


def test_a_surrogate_that_is_right_needs_one_question_per_swap() -> None:
    asked = oracles(WEIGHTS, WEIGHTS)
    (result,) = attack(guided(), asked)
    assert (result.outcome, result.perturbed) == ("success", "alpha beta gammay deltaz")
    assert asked["victim"].asked == [TEXT, "alpha beta gammay delta", "alpha beta gammay deltaz"]
    (plain,) = attack(toy_recipe(GREEDY), oracles(WEIGHTS, {}))
    assert plain.outcome == "success"
    assert (result.queries, plain.queries) == (3, 17)


def test_answers_of_the_victim_overrule_a_surrogate_that_is_wrong() -> None:
    wrong = WEIGHTS | {"gammay": 0.5, "deltaz": 0.5, "alphay": -1.0, "betax": -1.0}
    (result,) = attack(guided(), oracles(WEIGHTS, wrong))
    assert (result.outcome, result.perturbed) == ("success", "alpha beta gammay deltaz")
    (knows_nothing,) = attack(guided(), oracles(WEIGHTS, {}))
    assert knows_nothing.perturbed == result.perturbed


def test_what_comes_out_was_said_by_the_victim() -> None:
    sure = {word: -9.0 for words in TABLE.values() for word in words}
    stubborn = dict.fromkeys(WEIGHTS, 1.0)
    (result,) = attack(guided(), oracles(stubborn, sure))
    assert result.outcome == "failure"
    assert result.perturbed_probs == result.probs


def test_constraints_are_asked_before_the_victim_from_the_best_guess_down() -> None:
    similar = SentenceSimilarity(threshold=0.9, scale="cosine", window=None)
    far = encoder({"gammay": 2.0})
    asked = oracles(WEIGHTS, WEIGHTS, **{"encode:minilm": far})
    (result,) = attack(guided(replace(GREEDY, constraints=(similar,))), asked)
    assert not any("gammay" in text for text in asked["victim"].asked)
    assert set(far.asked[:2]) == {"alpha beta gammay delta", TEXT}
    assert result.outcome == "failure", "the others take 2.1 of 2.8"


def test_the_victim_first_and_the_encoder_about_what_would_be_taken() -> None:
    similar = SentenceSimilarity(threshold=0.9, scale="cosine", window=None)
    search = replace(GREEDY, constraints=(similar,))
    nothing: dict[str, float] = {}
    for told in (nothing, WEIGHTS):
        far = encoder({"gammay": 2.0})
        asked = oracles(WEIGHTS, told, **{"encode:minilm": far})
        (result,) = attack(guided(search, victim_first=True), asked)
        assert any("gammay" in text for text in asked["victim"].asked)
        assert "gammay" not in result.perturbed, "its answer flips nothing that the encoder refuses"
        assert result.outcome == "failure"
        before = oracles(WEIGHTS, told, **{"encode:minilm": encoder({"gammay": 2.0})})
        attack(guided(search), before)
        assert len(far.asked) <= len(before["encode:minilm"].asked)


def test_a_swap_that_was_not_needed_is_left_out() -> None:
    # deltaz alone would do; the surrogate has the other words first.
    strong = WEIGHTS | {"deltaz": -3.0}
    late = WEIGHTS | {"deltaz": 0.45}
    (result,) = attack(guided(tries=1, optimism=0.0), oracles(strong, late))
    assert (result.outcome, result.perturbed) == ("success", "alpha beta gamma deltaz")


def test_hopeless_examples_are_given_up_only_where_that_is_asked_for() -> None:
    stubborn = dict.fromkeys(WEIGHTS, 1.0) | {"alphax": 0.9}
    knows_nothing: dict[str, float] = {}
    (to_the_end,) = attack(guided(tries=1, spread=20.0, reach=9.0), oracles(stubborn, knows_nothing))
    (given_up,) = attack(
        guided(tries=1, spread=20.0, reach=9.0, give_up=0.5), oracles(stubborn, knows_nothing)
    )
    assert to_the_end.outcome == given_up.outcome == "failure"
    assert to_the_end.note == ""
    assert to_the_end.perturbed == "alphax beta gamma delta", "as far as it came"
    assert "given up" in given_up.note
    assert given_up.queries < to_the_end.queries
    (easy,) = attack(guided(give_up=0.5), oracles(WEIGHTS, WEIGHTS))
    assert easy.outcome == "success"


def test_an_example_is_attacked_alike_in_any_company() -> None:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.permutation(WORDS * 2)[: int(rng.integers(2, 9))].tolist()) for _ in range(40)]
    noisy = {word: weight + float(rng.normal(0, 0.4)) for word, weight in WEIGHTS.items()}
    together = attack(guided(), oracles(WEIGHTS, noisy), texts)
    alone = attack(guided(), oracles(WEIGHTS, noisy), texts, window=1, cache_size=0)
    small = oracles(WEIGHTS, noisy)
    for oracle in small.values():
        oracle.batch_size = 3
    few = attack(guided(), small, texts, window=7)
    assert together == alone == few
    backwards = Session(FakeVictim(), guided(), oracles=oracles(WEIGHTS, noisy))
    examples = [Example(key, (("text", text),), 1, "text") for key, text in enumerate(texts)]
    assert sorted(backwards.attack(examples[::-1]), key=lambda result: result.key) == together


def test_several_options_are_asked_about_at_once() -> None:
    asked = oracles(WEIGHTS, {})
    (result,) = attack(guided(together=3), asked)
    assert result.outcome == "success"
    words = [set(text.split()) - set(WORDS) for text in asked["victim"].asked[1:4]]
    assert len({next(iter(new))[:4] for new in words}) == 3, "of different words"


def test_the_budget_ends_it_with_what_was_found() -> None:
    (result,) = attack(guided(), oracles(WEIGHTS, WEIGHTS), budget=2)
    assert result.queries == 2
    assert (result.outcome, result.perturbed) == ("failure", "alpha beta gammay delta")


def test_the_margin_is_that_of_the_goal() -> None:
    probs = np.array([0.2, 0.5, 0.3])
    assert margin(Untargeted(), probs, 1) == pytest.approx(np.log(0.3 / 0.5))
    assert margin(Targeted(0), probs, 1) == pytest.approx(np.log(0.2 / 0.5))
    assert margin(OnlyClass("x", Targeted(1), 0), probs, 0) == pytest.approx(np.log(0.5 / 0.3))


def test_the_recipe_is_marked_and_can_be_rebuilt() -> None:
    recipe = guided(give_up=0.3)
    assert recipe.full_name == "toy@test+surrogate"
    assert set(recipe.oracles()) == {"neighbours:counter-fitted", "surrogate:toy"}
    assert recipe_from_json(recipe.to_json()) == recipe
    for wrong in ({"tries": 0}, {"spread": 0.0}, {"reach": -1.0}, {"give_up": 1.5}):
        with pytest.raises(ValueError, match=r"is a|at least|above"):
            BySurrogate("toy", **wrong)


# -- importance by bisection -----------------------------------------------------------------------


def ranked(weights: dict[str, float], words: Sequence[str], **settings: Any) -> tuple[list[int], int]:
    a = Attempt(Text(" ".join(words)), 1, Untargeted(), key=0, seed=0)

    def program() -> Any:
        (start,) = yield from a.score([a.original])
        return (yield from Bisection(**settings).rank(a, start, range(len(words))))

    (finished,) = Engine[list[int]]({"victim": logistic(weights)}).run([(0, program())])
    assert finished.value is not None, finished.error
    return finished.value, a.queries


def test_bisection_finds_the_few_words_that_matter_with_few_questions() -> None:
    words = [f"w{n}" for n in range(32)]
    order, queries = ranked({"w5": 2.0, "w20": 1.0}, words, most=0.7)
    assert order[:2] == [5, 20]
    assert sorted(order) == list(range(32))
    assert queries <= 1 + 22
    # Two halves; then the halves of both, and so on: 2 + 4 + 4 + 4 + 4 questions lead to both words.
    order, queries = ranked({"w5": 2.0, "w20": 1.0}, words, most=0.6, together=2)
    assert order[:2] == [5, 20]
    assert queries == 1 + 18


def test_bisection_asks_no_more_than_its_share_and_ranks_what_is_left_by_its_stretch() -> None:
    words = [f"w{n}" for n in range(8)]
    order, queries = ranked({"w6": 2.0}, words, most=0.25)
    assert queries == 1 + 2
    assert order == [4, 5, 6, 7, 0, 1, 2, 3]
    assert ranked({}, ["w"], most=1.0) == ([0], 1)
    with pytest.raises(ValueError, match="share"):
        Bisection(most=0.0)
