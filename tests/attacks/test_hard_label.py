"""Attacks by decisions alone, on a victim whose decisions are sums of word weights, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, tags
from unfooled.attacks.decision_learner import descend, reduce_by_halves
from unfooled.attacks.hlbb import breed, mutate
from unfooled.attacks.limeattack import thirds
from unfooled.attacks.parts.belief import Belief, cheapest_flip
from unfooled.attacks.parts.goals import AnotherDecision
from unfooled.attacks.parts.hard_label import Ground, more_similar, reduce
from unfooled.attacks.parts.lime import lime_weights
from unfooled.core.attack_list import list_attacks
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.curve import CurvePoint, best_within, curve_facts, curve_of
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe, all_recipes, load_recipe
from unfooled.core.result import Result
from unfooled.core.session import require_capabilities
from unfooled.core.victim import CLASSIFICATION
from unfooled.errors import CapabilityError
from unfooled.text import Text
from unfooled.victims.function import FunctionVictim

NAMES = (
    "hlbb",
    "texthoaxer",
    "texthacker",
    "hqa",
    "limeattack",
    "decision-learner",
    "decision-learner@quick",
)
TEXT = "fine plot and warm cast with bright songs"
# P(positive) is 0.5 + 0.05 + the weights: the original has 0.55 + 0.3, so flips need a loss above 0.35.
WEIGHTS = {
    "fine": 0.1, "okay": 0.0, "poor": -0.3, "warm": 0.1, "mild": 0.0, "cool": -0.1,
    "bright": 0.1, "light": 0.05, "loud": -0.05, "plot": 0.0, "story": 0.0, "cast": 0.0, "crew": -0.02,
    "songs": 0.0, "tunes": 0.0,
}  # fmt: skip
NEAR = {
    "fine": ["okay", "poor"],
    "warm": ["mild", "cool"],
    "bright": ["light", "loud"],
    "plot": ["story"],
    "cast": ["crew"],
    "songs": ["tunes"],
}
# A text's vector turns by the sum of its words' angles: similarity is the cosine of that sum.
ANGLES = {
    "okay": 0.1, "poor": 0.4, "mild": 0.12, "cool": 0.2, "light": 0.08, "loud": 0.3, "story": 0.15,
    "crew": 0.17, "tunes": 0.11,
}  # fmt: skip
TAGS = {"and": "CONJ", "with": "ADP"}


def oracles() -> dict[str, Answering]:
    def vector(word: str) -> np.ndarray | None:
        return None if word == "tunes" else np.array([WEIGHTS.get(word, 0.0), 1.0], dtype=np.float32)

    return {
        "victim": linear(WEIGHTS, 0.05),
        "neighbours:counter-fitted": neighbours(NEAR),
        "tag:perceptron-tagger": tags(TAGS),
        "encode:minilm": encoder(ANGLES),
        "vectors:counter-fitted": Answering(vector),
    }


def attacked(name: str, text: Any = TEXT, **settings: Any) -> Result:
    return attack_one(load_recipe(name), oracles(), text, **settings)


def lost(words: Sequence[str]) -> float:
    """By how much the sum of these words falls short of the original's."""
    return round(0.3 - sum(WEIGHTS.get(word, 0.0) for word in words), 6)


# -- single steps by hand --------------------------------------------------------------------------


class Scripted:
    """A generator that draws what it is told to."""

    def __init__(self, *drawn: Any) -> None:
        self.drawn = list(drawn)

    def choice(self, *_: Any, **__: Any) -> Any:
        return self.drawn.pop(0)

    integers = permutation = choice

    def random(self, *_: Any) -> Any:
        return np.array(self.drawn.pop(0))


def ground(rng: Any = None, budget: int | None = None) -> Ground:
    a = Attempt(Text(TEXT), 1, AnotherDecision(), key=0, seed=0, budget=budget)
    a.curve = []
    if rng is not None:
        a.__dict__["rng"] = rng
    words = {place: NEAR[word] for place, word in enumerate(a.original.words) if word in NEAR}
    return Ground(a, words, "minilm")


def answered(program: Any) -> Any:
    (finished,) = Engine[Any](oracles()).run([(0, program)])
    assert finished.error is None, finished.error
    return finished.value


def scored(g: Ground, *words: str) -> Scored:
    """The original with these words in the places of those that they are near to."""
    text = g.original
    for word in words:
        place = next(i for i, own in enumerate(text.root.words) if word in NEAR.get(own, ()))
        text = text.replace(place, word)
    (found,) = answered(g.ask([text]))
    assert isinstance(found, Scored)
    return found


def test_reduce_leaves_nothing_that_could_be_put_back() -> None:
    # poor goes first, which restores most similarity: cool, loud and crew still lose .2 + .15 + .02 = .37.
    g = ground()
    found = answered(reduce(g, scored(g, "poor", "cool", "loud", "story", "crew", "tunes")))
    assert found.text.string == "fine plot and cool crew with loud songs"

    # Together .1 + .2 + .15 = .45; without okay .35, which is a tie and no flip; without the others less.
    g = ground()
    found = answered(reduce(g, scored(g, "okay", "cool", "loud", "tunes")))
    assert g.changed(found.text) == [0, 3, 6]
    for place in g.changed(found.text):
        assert answered(g.flips(g.back(found.text, place))) is None


def test_halves_need_fewer_questions() -> None:
    everything = ("poor", "cool", "loud", "story", "crew", "tunes")
    one_by_one, halves = ground(), ground()
    answered(reduce(one_by_one, scored(one_by_one, *everything)))
    found = answered(reduce_by_halves(halves, scored(halves, *everything)))
    # By similarity: poor, loud, cool | crew, story, tunes. The first half cannot go (.02 left), the other
    # can; then poor alone cannot (.35 left), loud can, cool can.
    assert found.text.string == TEXT.replace("fine", "poor")
    assert halves.a.queries == 6
    assert one_by_one.a.queries > 6


def test_a_word_is_improved_by_the_most_similar_that_keeps_the_flip() -> None:
    g = ground()
    now = scored(g, "poor", "loud")  # .4 + .15; loud is not needed
    better = answered(more_similar(g, now, 6))
    assert better.text.string == TEXT.replace("fine", "poor")
    assert (
        answered(more_similar(g, better, 0)) is None
    )  # okay loses .1 only, and the original is the original
    assert answered(descend(g, now)).text == better.text


def test_a_mutation_puts_the_original_word_back_or_takes_the_nearest() -> None:
    g = ground()
    # fine back: .2 + .15 + .02 = .37 > .35 still flips.
    now = scored(g, "okay", "cool", "loud", "crew")
    assert answered(mutate(g, now, 0)).text.words[0] == "fine"
    # warm back loses .2: .4 stays with poor; loud → light: poor alone holds too.
    now = scored(g, "poor", "loud")
    assert answered(mutate(g, now, 6)).text.string == TEXT.replace("fine", "poor")


def test_one_genetic_round_with_a_scripted_generator() -> None:
    """First parent poor + loud, second poor + cool; the child takes the second's words from place 3 on."""
    take = [0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1]  # below one half: the second parent's word
    g = ground(Scripted(0, 1, take))
    members = [scored(g, "poor", "loud"), scored(g, "poor", "cool")]
    (child,) = answered(breed(g, members, 1))
    assert child.text.string == TEXT.replace("fine", "poor").replace("warm", "cool")
    assert child.similarity == pytest.approx(math.cos(0.6), abs=1e-6)

    # A child that is less similar than its first parent is not asked about: the parent stays.
    g = ground(Scripted(1, 0, take))
    members = [scored(g, "poor", "loud"), scored(g, "poor", "cool")]
    asked = g.a.queries
    (child,) = answered(breed(g, members, 1))
    assert child.text == members[1].text
    assert g.a.queries == asked


def test_lime_finds_the_words_that_decide() -> None:
    present = np.ones((9, 8))
    for word in range(8):
        present[word + 1, word] = 0.0
    scores = np.array([0.0, 1.0, 0, 0, 0, 0, 0, 0, 0])  # it flips when the first word is gone
    weights = lime_weights(present, scores, ridge=1e-6)
    assert weights.argmin() == 0
    # One word of eight left out: cosine distance 1 - sqrt(7/8), times 100, over the width of 25.
    assert weights[0] == pytest.approx(-1.0, abs=0.05)


def test_a_beam_of_thirds_is_chosen_by_similarity() -> None:
    g = ground()
    texts = [g.original.replace(0, word) for word in ("a", "b", "c", "d", "e", "f", "g")]
    found = [
        Scored(text, np.array([0.0, 1.0]), 0.0, False, similarity)
        for text, similarity in zip(texts, (0.1, 0.9, 0.3, 0.8, 0.5, 0.7, 0.2), strict=True)
    ]
    kept = thirds(found, 3, Scripted([4, 0, 1, 2, 3]))  # type: ignore[arg-type]
    assert [text.words[0] for text in kept] == ["b", "g", "a"]
    assert len(thirds(found, 10, Scripted())) == 7  # type: ignore[arg-type]


def test_a_belief_moves_towards_what_was_decided() -> None:
    """One weight, mean 0 and variance 1: a flip moves it by phi(0)/Phi(0)/sqrt(2), .5642."""
    belief = Belief(np.zeros(1), np.ones(1))
    belief.learn(np.ones(1), True)
    assert belief.mean[0] == pytest.approx(0.7979 / math.sqrt(2), abs=1e-4)
    assert belief.covariance[0, 0] == pytest.approx(1 - 0.7979**2 / 2, abs=1e-4)
    belief.learn(np.ones(1), False)
    assert belief.mean[0] < 0.5642


def test_the_cheapest_flip_by_effect_for_cost() -> None:
    effects = np.array([[1.0, 3.0], [2.0, -np.inf], [0.1, 0.2]])
    costs = np.array([[1.0, 5.0], [1.5, 1.0], [9.0, 9.0]])
    assert cheapest_flip(-1.5, effects, costs) == [(1, 0)]
    assert cheapest_flip(-2.5, effects, costs) == [(0, 0), (1, 0)]
    assert cheapest_flip(-9.0, effects, costs) == []


# -- whole attacks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_it_flips_the_label_and_keeps_the_best(name: str) -> None:
    result = attacked(name)
    assert result.outcome == "success"
    assert lost(Text(result.perturbed).words) > 0.35
    points = curve_of(result.facts)
    assert points[-1].similarity == result.similarity
    assert points[-1].changed == len(result.edits)
    rising = [point.similarity for point in points]
    assert rising == sorted(rising)
    assert len(set(rising)) == len(rising)
    angle = sum(ANGLES.get(word, 0.0) for word in Text(result.perturbed).words)
    assert result.similarity == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("name", ["hlbb", "hqa", "decision-learner"])
def test_nothing_can_be_put_back_in_the_end(name: str) -> None:
    for key in range(5):
        result = attacked(name, key=key)
        words = list(Text(result.perturbed).words)
        for edit in result.edits:
            shorter = [*words]
            shorter[edit.position] = edit.before
            assert lost(shorter) <= 0.35, (result.perturbed, edit)


def test_ours_finds_the_best_text_there_is() -> None:
    # Of all flips "okay, mild, light … cool" by angle: poor alone turns by .4; okay + cool + crew + light by
    # .55; cool + loud + … more. So poor alone is the best.
    for key in range(5):
        assert attacked("decision-learner", key=key).perturbed == TEXT.replace("fine", "poor")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 2, 5, 12, 30])
def test_a_budget_finds_what_the_curve_says(name: str, budget: int) -> None:
    whole = attacked(name, key=3)
    cut = attacked(name, key=3, budget=budget)
    assert cut.queries <= budget
    best = best_within(curve_of(whole.facts), budget)
    if best is None:
        assert cut.outcome != "success"
        assert cut.perturbed == cut.original
    else:
        assert (cut.similarity, len(cut.edits)) == (best.similarity, best.changed)
    if whole.queries > budget:
        assert "budget" in cut.note


@pytest.mark.parametrize("name", NAMES)
def test_only_decisions_are_read(name: str) -> None:
    """The same victim with its probabilities told and with one-hot answers is attacked in the same way."""
    told = oracles()

    def one_hot(value: Any) -> np.ndarray:
        (row,) = told["victim"]([value])
        return np.array([0.5, 0.5]) if row[0] == row[1] else np.eye(2)[int(row.argmax())]

    hard = attack_one(load_recipe(name), oracles() | {"victim": Answering(one_hot)}, TEXT)
    soft = attacked(name)
    assert (hard.perturbed, hard.queries, hard.facts) == (soft.perturbed, soft.queries, soft.facts)


@pytest.mark.parametrize("name", NAMES)
def test_pairs_keep_their_other_field(name: str) -> None:
    result = attacked(name, {"premise": "so it is", "hypothesis": TEXT})
    assert result.outcome == "success"
    assert result.fields[0] == ("premise", "so it is")


def test_a_text_that_cannot_be_flipped_is_a_failure_unchanged() -> None:
    stubborn = oracles() | {"victim": linear({}, 0.3)}
    for name in NAMES:
        result = attack_one(load_recipe(name), stubborn, TEXT, budget=200)
        assert (result.outcome, result.perturbed) == ("failure", TEXT)
        assert result.tried


def test_a_text_without_content_words_is_left_alone() -> None:
    for name in NAMES:
        result = attack_one(load_recipe(name), oracles() | {"victim": linear({}, 0.3)}, "and with and")
        assert (result.outcome, result.queries, result.tried) == ("failure", 1, 0)


def test_attacks_by_decisions_are_listed_and_need_nothing() -> None:
    listed = {attack.name for attack in list_attacks(need="decisions")}
    assert listed >= {name.partition("@")[0] for name in NAMES}
    for name in NAMES:
        recipe: Recipe = load_recipe(name)
        assert recipe.requires() == ()
        assert recipe.goal.judge(np.array([[0.4, 0.6], [0.6, 0.4], [0.5, 0.5]]), 1) == (
            [0.0, 1.0, 0.0],
            [False, True, False],
        )


def test_a_curve_is_read_back_from_facts() -> None:
    points = [CurvePoint(3, 0.5, 4), CurvePoint(12, 0.75, 2), CurvePoint(100, 0.8, 2)]
    facts = [("gradients", 3.0), *sorted(curve_facts(points).items())]
    assert curve_of(facts) == points
    assert curve_of([("gradients", 3.0)]) == []
    assert best_within(points, 2) is None
    assert best_within(points, 99) == points[1]


def test_probabilities_are_refused_where_only_decisions_are_told() -> None:
    victim = FunctionVictim(lambda texts: ["yes" for _ in texts], labels=("no", "yes"))
    assert "probabilities" not in victim.capabilities
    for recipe in all_recipes():
        if recipe.task != CLASSIFICATION:
            continue
        if "probabilities" in recipe.requires():
            with pytest.raises(CapabilityError):
                require_capabilities(recipe, victim)
        elif not recipe.requires():
            require_capabilities(recipe, victim)
