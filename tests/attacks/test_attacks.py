"""Each attack on victims whose right answer is known by arithmetic."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, tags, toy_recipe
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.candidates import CharacterEdits, Neighbours, edit_characters
from unfooled.attacks.parts.constraints import SamePartOfSpeech, SentenceSimilarity, edit_distance, on_scale
from unfooled.attacks.parts.goals import Targeted, Untargeted
from unfooled.attacks.parts.importance import Deletion, Masking, RandomOrder, TemporalScore
from unfooled.attacks.parts.search import GreedySwap, attackable
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.program import Program
from unfooled.core.recipe import (
    Recipe,
    all_recipes,
    load_recipe,
    recipe_from_json,
    with_everywhere,
    with_setting,
)
from unfooled.errors import RunFileError, UnknownNameError
from unfooled.plugins import registry
from unfooled.text import Text

WEIGHTS = {"superb": 0.3, "pleasant": 0.1, "film": 0.02, "okay": 0.05, "passable": -0.05, "awful": -0.3}


def swap(**changes: Any) -> Recipe:
    search = GreedySwap(importance=Deletion(), candidates=Neighbours(), constraints=())
    return toy_recipe(dataclasses.replace(search, **changes))


def oracles(table: dict[str, list[str]], weights: Any = WEIGHTS, **more: Any) -> dict[str, Any]:
    return {"neighbours:counter-fitted": neighbours(table), **more, "victim": linear(weights)}


def test_the_most_important_word_goes_first_and_the_first_flip_ends_the_search() -> None:
    asked = oracles({"superb": ["awful", "okay"], "pleasant": ["okay"], "film": ["awful"]})
    result = attack_one(swap(), asked, "A superb, pleasant film.")
    # superb 0.3 > pleasant 0.1 > film 0.02; 0.92 - 0.3 - 0.3 = 0.32: "awful" flips, nothing else is tried.
    assert (result.outcome, result.perturbed) == ("success", "A awful, pleasant film.")
    assert result.probs == (0.08, 0.92)
    assert result.perturbed_probs == (0.68, 0.32)
    # 1 original + 3 deletions ("a" is a stop word) + 2 options
    assert (result.queries, result.asked) == (6, 6)
    assert [(edit.before, edit.after) for edit in result.edits] == [("superb", "awful")]
    assert result.words == 4
    assert result.share == pytest.approx(0.25)


def test_without_a_flip_the_lowest_score_is_kept_and_the_search_goes_on() -> None:
    result = attack_one(
        swap(), oracles({"superb": ["okay", "passable"], "pleasant": ["awful"]}), "superb pleasant film"
    )
    # 0.92 -> passable 0.57 (better than okay 0.67) -> awful 0.17
    assert (result.outcome, result.perturbed) == ("success", "passable awful film")
    assert result.queries == 1 + 3 + 2 + 1


def test_only_improvements_are_kept() -> None:
    result = attack_one(swap(), oracles({"pleasant": ["superb"], "film": ["okay"]}), "pleasant film")
    assert (result.outcome, result.perturbed, result.edits) == ("failure", "pleasant film", ())


def test_the_authors_code_keeps_what_beats_the_original_only() -> None:
    # 0.92: superb -> passable (0.57), then pleasant -> okay raises p back to ... 0.52 < 0.92: kept by both;
    # film -> okay raises p from 0.52 to 0.55: worse than the present text, better than the original.
    table = {"superb": ["passable"], "pleasant": ["okay"], "film": ["okay"]}
    better = attack_one(swap(), oracles(table), "superb pleasant film")
    original = attack_one(swap(accept="better-than-original"), oracles(table), "superb pleasant film")
    assert better.perturbed == "passable okay film"
    assert original.perturbed == "passable okay okay"


def test_among_flips_the_most_similar_wins() -> None:
    similarity = SentenceSimilarity(threshold=0.0, scale="cosine", window=2)
    more = {"encode:minilm": encoder({"awful": 0.5, "dreadful": 0.1})}
    weights = WEIGHTS | {"dreadful": -0.2}
    table = {"superb": ["awful", "dreadful"]}
    result = attack_one(swap(constraints=(similarity,)), oracles(table, weights, **more), "superb film")
    assert result.perturbed == "dreadful film"
    assert result.similarity == pytest.approx(math.cos(0.1), abs=1e-6)


def test_a_spent_budget_keeps_to_the_same_choice_among_flips() -> None:
    similarity = SentenceSimilarity(threshold=0.0, scale="cosine", window=2)
    more = {"encode:minilm": encoder({"awful": 0.5, "dreadful": 0.1, "okay": 0.2})}
    weights = WEIGHTS | {"dreadful": -0.2}
    table = {"superb": ["awful", "dreadful", "okay"]}
    recipe = swap(constraints=(similarity,))
    result = attack_one(recipe, oracles(table, weights, **more), "superb film", budget=5)
    assert "budget" in result.note
    assert (result.outcome, result.perturbed) == ("success", "dreadful film")
    assert result.similarity == pytest.approx(math.cos(0.1), abs=1e-6)


def test_ties_fall_to_the_nearest_word_or_to_the_text_that_sorts_first() -> None:
    weights = WEIGHTS | {"zeta": -0.3, "alpha": -0.3}
    table = {"superb": ["zeta", "alpha"]}
    assert attack_one(swap(), oracles(table, weights), "superb film").perturbed == "zeta film"
    assert attack_one(swap(ties="text"), oracles(table, weights), "superb film").perturbed == "alpha film"


def test_casing_and_punctuation_survive() -> None:
    result = attack_one(
        swap(), oracles({"superb": ["awful"]}, WEIGHTS | {"Superb": 0.3, "Awful": -0.3}), "Superb film!"
    )
    assert result.perturbed == "Awful film!"


def test_an_attack_without_any_candidate_fails_and_says_nothing_else() -> None:
    result = attack_one(swap(), oracles({}), "superb film")
    assert (result.outcome, result.queries, result.perturbed) == ("failure", 3, "superb film")


def test_wrong_before_the_attack_is_skipped_after_one_query() -> None:
    result = attack_one(swap(), oracles({}), "awful film")
    assert (result.outcome, result.queries) == ("skipped", 1)


def test_a_budget_ends_the_search_with_the_best_so_far() -> None:
    table = {"superb": ["okay", "passable"], "pleasant": ["awful"]}
    result = attack_one(swap(), oracles(table), "superb pleasant film", budget=6)
    assert (result.outcome, result.queries) == ("failure", 6)
    assert result.perturbed == "passable pleasant film"
    assert "budget of 6" in result.note


def test_a_target_is_another_goal() -> None:
    def three(value: str) -> np.ndarray:
        return np.array(
            [0.2, 0.1, 0.7] if "sad" in value else [0.1, 0.8, 0.1] if "odd" in value else [0.6, 0.2, 0.2]
        )

    recipe = dataclasses.replace(swap(), goal=Targeted(1))
    asked = {"neighbours:counter-fitted": neighbours({"nice": ["sad", "odd"]}), "victim": Answering(three)}
    assert attack_one(recipe, asked, "nice film", label=0).perturbed == "odd film"
    # Already there: nothing to do. The label is right and the goal is its own class.
    same = dataclasses.replace(swap(), goal=Targeted(0))
    assert attack_one(same, asked, "nice film", label=0).outcome == "skipped"


def test_pairs_edit_only_the_named_field() -> None:
    asked = oracles({"superb": ["awful"], "pleasant": ["awful"]})
    result = attack_one(swap(), asked, {"premise": "superb", "hypothesis": "pleasant film"})
    assert result.perturbed == "awful film"
    assert result.fields == (("premise", "superb"), ("hypothesis", "pleasant film"))
    assert all(isinstance(value, tuple) and value[0] == "superb" for value in asked["victim"].asked)


# -- constraints -----------------------------------------------------------------------------------


def test_part_of_speech_must_match_and_nouns_may_replace_verbs() -> None:
    table = {"superb": ["awful", "badly", "sink"]}
    kinds = tags({"superb": "ADJ", "awful": "ADJ", "badly": "ADV", "sink": "VERB", "film": "NOUN"})
    asked = oracles(table, WEIGHTS | {"badly": -0.4}, **{"tag:perceptron-tagger": kinds})
    assert attack_one(swap(constraints=(SamePartOfSpeech(),)), asked, "superb film").perturbed == "awful film"

    part = SamePartOfSpeech()
    assert part._fits("NOUN", "VERB")
    assert part._fits("VERB", "NOUN")
    assert not part._fits("NOUN", "ADJ")
    assert not SamePartOfSpeech(noun_for_verb=False)._fits("NOUN", "VERB")


def test_the_tagger_sees_a_window_of_the_original_text() -> None:
    kinds = tags({})
    words = "one two three four five superb seven eight nine ten eleven"
    asked = oracles({"superb": ["okay"]}, **{"tag:perceptron-tagger": kinds})
    attack_one(swap(constraints=(SamePartOfSpeech(before=4, after=3),)), asked, words)
    assert kinds.asked == [
        (("two", "three", "four", "five", "superb", "seven", "eight", "nine"), 4, ("okay",))
    ]


def test_an_equal_word_earlier_in_the_window_lends_its_tag_where_textattack_is_followed() -> None:
    def by_place(item: tuple[tuple[str, ...], int, tuple[str, ...]]) -> tuple[str, ...]:
        words, index, options = item  # the first word of a text is a noun here, any other an adjective
        return tuple("NOUN" if index == 0 else "ADJ" for _ in (words[index], *options))

    table = {"superb": ["awful"]}
    asked = oracles(table, WEIGHTS | {"awful": -0.31}, **{"tag:perceptron-tagger": Answering(by_place)})
    text = "awful superb superb superb"
    plain = attack_one(swap(constraints=(SamePartOfSpeech(),)), asked, text)
    copied = attack_one(swap(constraints=(SamePartOfSpeech(first_equal=True),)), asked, text)
    assert plain.perturbed == "awful awful superb superb"
    # "awful" stands first, so its tag there (NOUN) counts for every place; "superb" is an adjective.
    assert copied.edits == ()


def test_the_three_scales_agree_by_arithmetic() -> None:
    cosines = np.array([1.0, 0.5, 0.0, -1.0])
    assert on_scale(cosines, "cosine") == [1.0, 0.5, 0.0, -1.0]
    assert on_scale(cosines, "angular") == pytest.approx([1, 2 / 3, 0.5, 0], abs=1e-6)
    assert on_scale(cosines, "arccos") == pytest.approx(
        [1, 1 - math.pi / 3, 1 - math.pi / 2, 1 - math.pi], abs=1e-6
    )
    # TextFooler's 0.5 on its own scale is TextAttack's 0.840845 on the angular one.
    assert on_scale(np.array([math.cos(0.5)]), "angular")[0] == pytest.approx(0.840845, abs=1e-6)


def test_similarity_is_measured_in_a_window_against_the_present_text() -> None:
    similarity = SentenceSimilarity(threshold=0.9, scale="cosine", window=3)
    turn = encoder({"passable": 0.3, "okay": 0.3})
    asked = oracles({"superb": ["passable"], "pleasant": ["okay"]}, **{"encode:minilm": turn})
    result = attack_one(swap(constraints=(similarity,)), asked, "superb pleasant film here")
    # Each step turns by 0.3 (cosine 0.955); against the original the second would be 0.6 (0.825).
    assert result.perturbed == "passable okay film here"
    original = dataclasses.replace(similarity, against="original")
    result = attack_one(swap(constraints=(original,)), asked, "superb pleasant film here")
    assert result.perturbed == "passable pleasant film here"
    assert "superb pleasant film" in turn.asked


@pytest.mark.parametrize(("short", "allowed"), [(None, True), (0.1, True), (0.99, False)])
def test_short_texts_have_their_own_rule(short: float | None, allowed: bool) -> None:
    similarity = SentenceSimilarity(threshold=0.9, scale="cosine", window=15, short_threshold=short)
    asked = oracles({"superb": ["awful"]}, **{"encode:minilm": encoder({"awful": 1.0})})
    result = attack_one(swap(constraints=(similarity,)), asked, "superb film")
    assert (result.outcome == "success") is allowed
    if short is None:
        assert result.similarity is None  # what was not measured has no number


@pytest.mark.parametrize(
    ("a", "b", "distance"), [("", "", 0), ("kitten", "sitting", 3), ("abc", "", 3), ("ab", "ba", 2)]
)
def test_edit_distance(a: str, b: str, distance: int) -> None:
    assert edit_distance(a, b) == edit_distance(b, a) == distance


def test_long_words_are_no_obstacle() -> None:
    word = "x" * 50_000
    assert edit_distance(word, word[:20_000] + "y" + word[20_000:]) == 1


# -- importance ------------------------------------------------------------------------------------


def ranked(part: Any, text: str, answer: Any, label: int = 1, seed: int = 0) -> list[int]:
    def program() -> Program[list[int]]:
        a = Attempt(Text(text), label, Untargeted(), key=0, seed=seed)
        (start,) = yield from a.score([a.original])
        order: list[int] = yield from part.rank(a, start, range(len(a.original.words)))
        return order

    (finished,) = Engine[list[int]]({"victim": answer}).run([(0, program())])
    assert finished.error is None
    assert finished.value is not None
    return finished.value


def test_deletion_ranks_by_the_fall_of_the_true_class_and_ties_keep_their_order() -> None:
    answer = linear({"a": 0.1, "b": 0.2, "c": 0.1, "d": 0.0})
    assert ranked(Deletion(), "a b c d", answer) == [1, 0, 2, 3]


def test_masking_asks_with_the_token() -> None:
    answer = linear({"a": 0.1, "b": 0.2, "<oov>": 0.0})
    assert ranked(Masking(token="<oov>"), "a b", answer) == [1, 0]
    assert answer.asked == ["a b", "<oov> b", "a <oov>"]


def test_the_gain_of_the_new_class_counts_when_a_deletion_flips() -> None:
    def answer(text: str) -> np.ndarray:
        return {
            "x y": np.array([0.6, 0.3, 0.1]),
            "y": np.array([0.42, 0.08, 0.5]),  # falls by 0.18, and class 2 gains 0.4
            "x": np.array([0.41, 0.4, 0.19]),  # falls by 0.19 without a flip
        }[text]

    assert ranked(Deletion(flip_gain=False), "x y", Answering(answer), label=0) == [1, 0]
    assert ranked(Deletion(flip_gain=True), "x y", Answering(answer), label=0) == [0, 1]


def test_temporal_score_is_head_plus_tail() -> None:
    # linear victim: both differences equal the word's weight, so the order is that of the weights
    assert ranked(TemporalScore(), "a b c", linear({"a": 0.05, "b": 0.2, "c": 0.1})) == [1, 2, 0]


def test_random_order_is_seeded_and_complete() -> None:
    answer = linear({})
    first = ranked(RandomOrder(), "a b c d e f", answer, seed=1)
    assert sorted(first) == [0, 1, 2, 3, 4, 5]
    assert first == ranked(RandomOrder(), "a b c d e f", answer, seed=1)
    assert first != ranked(RandomOrder(), "a b c d e f", answer, seed=2)


def test_stop_words_are_not_attacked_in_any_casing_unless_asked() -> None:
    text = Text("The film isn’t THE end")
    assert attackable(text, "textfooler") == [1, 4]
    assert attackable(text, "textfooler", cased=True) == [0, 1, 2, 3, 4]


# -- character edits -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["swap", "substitute", "delete", "insert"])
def test_character_edits_are_one_edit_away(kind: str) -> None:
    rng = np.random.default_rng(5)
    for word in ("a", "to", "film", "extraordinary"):
        edited = edit_characters(word, kind, rng)
        assert edit_distance(word, edited) <= (2 if kind == "swap" else 1)
        assert len(edited) - len(word) == {"insert": 1, "delete": -1 if len(word) > 1 else 0}.get(kind, 0)


def test_deepwordbug_misspells_until_the_victim_is_fooled() -> None:
    result = attack_one(
        load_recipe("deepwordbug"), {"victim": linear(WEIGHTS, bias=-0.01)}, "superb pleasant film"
    )
    # 0.91 without "superb" is 0.61, without "pleasant" 0.51, without "film" 0.49
    assert result.outcome == "success"
    assert len(result.edits) == 3
    assert all(edit_distance(edit.before, edit.after) <= 2 for edit in result.edits)


def test_deepwordbug_of_the_paper_asks_once_after_all_edits_and_keeps_to_30_characters() -> None:
    words = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(40))
    answer = linear({}, bias=0.2)
    result = attack_one(load_recipe("deepwordbug@paper"), {"victim": answer}, words)
    assert sum(edit_distance(edit.before, edit.after) for edit in result.edits) <= 30
    assert 28 <= len(result.edits) <= 31
    # the original, 40 heads and 40 tails (one of each is the whole text), and the end
    assert (result.queries, result.asked) == (1 + 39 + 39 + 1, 1 + 40 + 40 + 1)
    assert result.outcome == "failure"


def test_random_edits_repeat_with_the_seed_and_differ_between_examples() -> None:
    recipe = swap(candidates=CharacterEdits(), stopwords="english")
    runs = [
        attack_one(recipe, {"victim": linear({"superb": 0.2})}, "superb film", key=key, seed=seed).perturbed
        for key, seed in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    assert runs[0] == runs[1]
    assert len(set(runs)) > 1


# -- recipes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", list(all_recipes()), ids=lambda recipe: recipe.full_name)
def test_every_recipe_conforms(recipe: Recipe) -> None:
    assert recipe == load_recipe(recipe.full_name)
    check_recipe(recipe)


@dataclasses.dataclass(frozen=True)
class Cheating:
    """A search that forgets the budget's exception and edits at random from a global generator."""

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        word = str(np.random.randint(10**9))
        (end,) = yield from a.score([start.text.replace(0, word)])
        return end


def test_the_conformance_suite_catches_a_cheat() -> None:
    recipe = dataclasses.replace(swap(), search=Cheating(), paper="none", summary="cheats")
    registry.register("attack", "cheat", {"test": recipe})
    try:
        with pytest.raises(AssertionError, match="depend on the example alone"):
            check_recipe(recipe)
    finally:
        registry.unregister("attack", "cheat")


def test_unknown_names_are_answered_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean textfooler"):
        load_recipe("textfoler")
    with pytest.raises(UnknownNameError, match="textfooler@paper"):
        load_recipe("textfooler@papr")


def test_settings_can_be_changed_by_path() -> None:
    recipe = with_setting(load_recipe("textfooler"), "search.candidates.most", "7")
    assert isinstance(recipe.search, GreedySwap)
    assert recipe.search.candidates == Neighbours(most=7)
    assert recipe.version == "textattack+changed"
    recipe = with_setting(recipe, "search.constraints.1.threshold", "0.5")
    with pytest.raises(UnknownNameError, match=r"leads nowhere|no setting"):
        with_setting(recipe, "search.constraints.9.threshold", "1")
    short = with_setting(recipe, "search.constraints.1.short_threshold", "0.5")
    assert isinstance(short.search, GreedySwap)
    assert getattr(short.search.constraints[1], "short_threshold") == 0.5  # noqa: B009
    for path, value in {
        "search.candidates.most": "many",
        "search.candidates.min_cosine": "nan",
        "search.constraints.1.scale": "foo",
        "search.ties": "bogus",
        "search.stopwords": "bogus",
        "search.stopwords_cased": "maybe",
        "search.importance": "deletion",
        "name": "foo",
    }.items():
        with pytest.raises(UnknownNameError, match=path.split(".")[-1]):
            with_setting(recipe, path, value)
    with pytest.raises(UnknownNameError, match="at least 1"):
        with_setting(recipe, "search.candidates.most", "-5")
    with pytest.raises(UnknownNameError, match="no setting"):
        with_setting(recipe, "search.candidate.most", "1")


def test_one_setting_can_be_changed_everywhere() -> None:
    recipe = load_recipe("textfooler")
    assert with_everywhere(recipe, "encoder", "minilm") == recipe  # the default is no change
    changed = with_everywhere(recipe, "encoder", "./mine")
    assert "encode:./mine" in changed.oracles()
    assert changed.full_name == "textfooler@textattack+changed"
    with pytest.raises(UnknownNameError, match="no part with the setting"):
        with_everywhere(load_recipe("deepwordbug"), "encoder", "x")


def test_a_recipe_from_elsewhere_is_not_built() -> None:
    with pytest.raises(RunFileError, match="cannot be rebuilt"):
        recipe_from_json({"part": "subprocess:Popen", "args": "true"})
    with pytest.raises(RunFileError, match="cannot be rebuilt"):
        recipe_from_json({"part": "unfooled.plugins:Registry", "table": {}})


def test_scored_keeps_what_the_victim_said() -> None:
    row = np.array([0.25, 0.75])
    scored = Scored(Text("x"), row, 0.25, False)
    assert scored.similarity is None
    assert scored._replace(similarity=0.5).probs is row
