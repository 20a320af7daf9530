"""Attacks that change one word, on victims whose right answer is known by arithmetic."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from reviews import sentences
from toys import Answering, attack_one, encoder, linear, neighbours
from unfooled import attack
from unfooled.attacks.one_word import OneWord
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Targeted
from unfooled.attacks.parts.replacement import (
    FIRST,
    LARGEST,
    ClosestWord,
    ListedWords,
    RandomDraws,
    RandomWords,
    _portions,
)
from unfooled.attacks.parts.selection import AttentionSelect, GreedySelect, InOrder, Pick
from unfooled.core.attempt import Scored
from unfooled.core.questions import Query
from unfooled.core.recipe import Recipe, fit_to_victim, load_recipe, recipe_from_json, with_setting
from unfooled.core.result import Example, Result
from unfooled.core.session import Session, Settings, open_inside, open_oracles
from unfooled.errors import CapabilityError, ResourceError, UnknownNameError
from unfooled.runs.file import RunFile
from unfooled.text import Text
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.torch.oracles import open_attention
from word_toys import VECTORS, VectorVictim, scored_by

NAMES = ("random", "list", "gs-gr", "gs-ec", "asmin-gr", "asmax-gr", "asmin-ec", "asmax-ec")


def run(
    name: str | Recipe,
    text: str | Mapping[str, str],
    victim: VectorVictim | None = None,
    *,
    label: int = 1,
    target: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    **more: Any,
) -> Result:
    victim = victim or VectorVictim()
    recipe = fit_to_victim(load_recipe(name) if isinstance(name, str) else name, victim)
    if target is not None:
        recipe = dataclasses.replace(recipe, goal=Targeted(target))
    given = {name: oracle for name, oracle in more.items() if name in recipe.oracles()}
    oracles = given or open_oracles(recipe, victim)
    return attack_one(recipe, oracles, text, label, seed=seed, budget=budget)


def first_that_works(words: list[str], works: Callable[[str], bool], seed: int = 0) -> str:
    """The first word in the example's random order that does."""
    order: list[int] = np.random.default_rng([seed, 0]).permutation(len(words)).tolist()
    return next(words[place] for place in order if works(words[place]))


# -- selection -------------------------------------------------------------------------------------


def changed(result: Result) -> list[int]:
    return [edit.position for edit in result.edits]


def test_greedy_selection_takes_the_word_whose_zero_vector_lowers_the_class_most() -> None:
    # 3 + 4 + 0 = 7; without good 4, without great 3, without film 7.
    assert changed(run("gs-gr", "good great film")) == [1]
    # With weights 3, 1, 1 it is 9 + 4 + 0 = 13: without good 4.
    assert changed(run("gs-gr", "good great film", VectorVictim(weights=(3, 1, 1)))) == [0]


def test_equal_words_fall_to_the_first() -> None:
    assert changed(run("gs-gr", "film great great")) == [1]


def test_deleting_a_word_is_not_the_same_as_zeroing_it() -> None:
    # Weights 1, 3: great + 3 good = 13. Zeroed: 9 without great, 4 without good.
    # Deleted: "good" alone is 3, "great" alone 4; so great goes.
    victim = VectorVictim(weights=(1, 3))
    assert changed(run("gs-ec", "great good", victim)) == [1]
    deletion = with_setting(load_recipe("gs-ec"), "search.selection.by", "deletion")
    assert changed(run(deletion, "great good", victim)) == [0]


def test_the_way_to_select_is_settled_by_the_victim() -> None:
    recipe = load_recipe("gs-gr")
    assert recipe.requires() == ("probabilities",)
    zero, deletion = fit_to_victim(recipe, VectorVictim()), fit_to_victim(recipe, FakeVictim())
    assert (zero.search.selection.by, deletion.search.selection.by) == ("zero", "deletion")  # type: ignore[attr-defined]
    assert zero.full_name == deletion.full_name == "gs-gr@paper"
    assert zero.requires() == ("probabilities", "embeddings")
    assert "zeroed" in zero.oracles()
    assert fit_to_victim(zero, FakeVictim()) == zero


def test_zero_vectors_are_paid_for_as_queries() -> None:
    result = run("gs-gr", "great film good", seed=1, budget=4)
    # The original and three zeroed words: nothing is left for a replacement.
    assert (result.outcome, result.queries) == ("failure", 4)
    assert "budget of 4" in result.note
    assert run("gs-gr", "great film good", budget=3).queries == 3


@pytest.mark.parametrize(("name", "layer", "place"), [("asmax-gr", "0", 2), ("asmin-gr", "0", 0)])
def test_attention_selects_the_most_or_least_attended_word(name: str, layer: str, place: int) -> None:
    victim = VectorVictim(attention={"good": 0.1, "film": 0.2, "great": 0.7})
    recipe = with_setting(load_recipe(name), "search.selection.layer", layer)
    result = run(recipe, "good film great", victim)
    # 3 + 0 + 4: "good" may become awful or grim (4 - 5, 4 - 6); "great" awful or grim (3 - 5, 3 - 6).
    assert changed(result) == [place]
    assert result.outcome == "success"


def test_the_layer_of_attention_is_a_setting() -> None:
    victim = VectorVictim(attention={"good": 0.1, "film": 0.2, "great": 0.7})  # the last layer turns it round
    recipe = with_setting(load_recipe("asmax-ec"), "search.selection.layer", "-1")
    assert "attention:-1" in recipe.oracles()
    assert changed(run(recipe, "good film great", victim)) == [0]


def test_words_that_the_victim_does_not_read_are_not_selected() -> None:
    victim = VectorVictim(reads=2, attention={"good": 0.4, "great": 0.6, "film": 0.0})
    assert changed(run("asmin-ec", "good great film film", victim)) == [0]
    assert changed(run("asmax-ec", "good great film film", victim)) == [1]


# One head over [CLS] good film great [SEP], a row per token that attends.
#   mean of the rows       .26  .22  .12  .16  .24
#   among the words alone       good film great
#   the row of [CLS]       .10  .05  .20  .35  .30
WEIGHTS = np.array(
    [
        [0.10, 0.05, 0.20, 0.35, 0.30],
        [0.40, 0.25, 0.10, 0.05, 0.20],
        [0.30, 0.30, 0.10, 0.10, 0.20],
        [0.20, 0.30, 0.10, 0.20, 0.20],
        [0.30, 0.20, 0.10, 0.10, 0.30],
    ]
)


class Attentive(VectorVictim):
    """Attends as in WEIGHTS, to the text "good film great"."""

    def attention(self, texts: Any, *, query: str = "mean", special: bool = False, **_: Any) -> list[Any]:
        received = WEIGHTS[0] if query == "cls" else WEIGHTS.mean(axis=0)
        words = received[1:-1].tolist()
        return [np.array(words + [received[0], received[-1]] * special, dtype=np.float32) for _ in texts]


def attending(name: str, **settings: str) -> Result:
    recipe = load_recipe(name)
    for setting, value in settings.items():
        recipe = with_setting(
            recipe, f"search.{setting}" if setting == "positions" else f"search.selection.{setting}", value
        )
    return run(recipe, "good film great", Attentive())


@pytest.mark.parametrize(
    ("name", "query", "place"),
    [("asmax-gr", "mean", 0), ("asmin-gr", "mean", 1), ("asmax-gr", "cls", 2), ("asmin-gr", "cls", 0)],
)
def test_attention_is_that_of_all_tokens_or_of_cls_alone(name: str, query: str, place: int) -> None:
    assert changed(attending(name, query=query)) == [place]
    if query == "mean":
        assert changed(run(name, "good film great", Attentive())) == [place]


def test_a_special_token_with_the_rank_spends_the_choice() -> None:
    # By the mean, [CLS] and then [SEP] have most; "good" is third.
    for positions in ("1", "2"):
        spent = attending("asmax-gr", special="true", positions=positions)
        assert (spent.outcome, spent.edits, spent.queries) == ("failure", (), 1)
        assert "special token" in spent.note
    third = attending("asmax-gr", special="true", positions="3")
    assert (third.outcome, changed(third), third.note) == ("success", [0], "")
    # Least of all has "film", a word; and by the row of [CLS] "great" has most, before [SEP].
    assert changed(attending("asmin-gr", special="true")) == [1]
    assert changed(attending("asmax-gr", special="true", query="cls")) == [2]
    # All positions: the words in their order, whatever stands between them.
    every = attending("asmax-gr", special="true", positions="none")
    assert every.perturbed == attending("asmax-gr", positions="none").perturbed


def test_the_choice_of_attention_is_in_a_file_only_where_it_was_made() -> None:
    recipe = load_recipe("asmax-gr")
    kept = {"part": "unfooled.attacks.selection:AttentionSelect", "layer": 0, "pick": "highest"}
    assert recipe.to_json()["search"]["selection"] == kept
    assert recipe.to_json(whole=True)["search"]["selection"] == kept | {"query": "mean", "special": False}
    assert recipe.oracles()[0] == "attention:0"
    cls = with_setting(recipe, "search.selection.query", "cls")
    assert cls.to_json()["search"]["selection"] == kept | {"query": "cls"}
    assert (recipe_from_json(cls.to_json()), cls.oracles()[0]) == (cls, "attention:0:cls")
    both = with_setting(cls, "search.selection.special", "true")
    assert (recipe_from_json(both.to_json()), both.oracles()[0]) == (both, "attention:0:cls:special")
    special = with_setting(recipe, "search.selection.special", "true")
    assert special.oracles()[0] == "attention:0:mean:special"
    with pytest.raises(UnknownNameError, match="choose one of mean, cls"):
        with_setting(recipe, "search.selection.query", "sep")
    with pytest.raises(ValueError, match="`special`, or nothing"):
        open_attention(VectorVictim(), "0:cls:all")


@pytest.mark.parametrize("query", ["mean", "cls"])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("pick", ["highest", "lowest"])
def test_a_real_model_ranks_as_its_maps_say(query: Query, special: bool, pick: Pick) -> None:
    pytest.importorskip("transformers")
    from tiny_models import victim_of

    victim = victim_of("bert")
    ranked = set()
    for text in ("the film is good", "a dull movie", "not very fun", "the plot was bad and not fun"):
        (maps,) = victim.attention_maps([text])  # every word is one token here, [CLS] first and [SEP] last
        heads = maps.maps[0].mean(axis=0)
        received = np.round(heads[0] if query == "cls" else heads.mean(axis=0), 6)
        last = len(received) - 1
        tokens = [*range(1, last), *([0, last] if special else [])]
        by_hand = sorted(tokens, key=lambda token: received[token] * (-1 if pick == "highest" else 1))
        expected = [token - 1 if 0 < token < last else None for token in by_hand]
        part = AttentionSelect(pick=pick, query=query, special=special)
        oracles = open_inside(part.asks, victim)
        program = part.choices(cast(Any, None), Scored(Text(text), np.zeros(3), 0.0, False), range(last - 1))
        asked = next(program)
        with pytest.raises(StopIteration) as done:
            program.send([list(oracles[question.oracle](question.items)) for question in asked])
        assert done.value.value == expected
        ranked.update(expected)
    assert (None in ranked) is special


def test_words_behind_the_cut_are_not_zeroed() -> None:
    # 3 - 1 = 2 of the words that are read. Without bad 3, without good -1; the rest would change nothing.
    victim = VectorVictim(reads=2)
    result = run("gs-gr", "bad good film film", victim)
    assert changed(result) == [1]
    assert result.queries == 1 + 2 + len(VECTORS) - 1


# -- replacement -----------------------------------------------------------------------------------


def test_random_words_until_the_first_that_works() -> None:
    # "great" is selected; with good (3) left, awful and grim work: 3 - 5, 3 - 6.
    for seed in range(6):
        result = run("gs-gr", "great good", seed=seed)
        word = first_that_works(list(VECTORS), lambda word: word in ("awful", "grim"), seed)
        assert (result.outcome, result.perturbed) == ("success", f"{word} good")
        # 1 + 2 zeroed + all words but "great" in one portion, of which "good" gives the text "good good"
        assert result.queries == 1 + 2 + len(VECTORS) - 1


def test_no_word_works() -> None:
    # 4 + 4 + 3 = 11: without one great 7, and no word is below -6.
    result = run("gs-gr", "great great good")
    assert (result.outcome, result.perturbed) == ("failure", "grim great good")  # the lowest that was found
    assert run("gs-ec", "great great good").outcome == "failure"
    assert run("gs-gr", "great great good") == result


def test_further_positions_may_be_tried_each_alone() -> None:
    # By attention "film" comes first, where nothing works: 0 -> -6 leaves 1. Then "great", where much does.
    victim = VectorVictim(attention={"film": 0.9, "great": 0.5, "good": 0.1})
    assert run("asmax-gr", "film great good", victim).outcome == "failure"
    recipe = with_setting(load_recipe("asmax-gr"), "search.positions", "2")
    result = run(recipe, "film great good", victim)
    assert (result.outcome, changed(result)) == ("success", [1])


def test_of_the_words_that_work_the_one_that_moves_the_sentence_least() -> None:
    # From great (2, 1), with good (3) left: awful (-1, -2) is |3| + |3| = 6 away, grim (0, -3) is 2 + 4 = 6:
    # the first of equals.
    result = run("gs-ec", "great good")
    assert (result.outcome, result.perturbed) == ("success", "awful good")
    assert dict(result.facts) == {"distance": 6.0}
    # Alone, anything below 0 works: bad is 3 + 1 = 4 away, odd 5; film, 2 + 1 = 3 away, is a tie.
    assert run("gs-ec", "great").perturbed == "bad"
    half = with_setting(load_recipe("gs-ec"), "search.replacement.pool", "mean")
    assert dict(run(half, "great").facts) == {"distance": 2.0}


def test_another_encoder_may_measure() -> None:
    recipe = with_setting(load_recipe("gs-ec"), "search.replacement.encoder", "mine")
    recipe = with_setting(recipe, "search.selection.by", "deletion")
    assert recipe.requires() == ("probabilities",)
    oracles = {
        "vocabulary:10000:victim": Answering(lambda _: ("awful", "dire", "fine")),
        "encode:mine": encoder({"awful": 0.9, "dire": 0.2}),
        "victim": linear({"superb": 0.3, "awful": -0.3, "dire": -0.3, "fine": 0.1}),
    }
    result = attack_one(recipe, oracles, "superb film")
    assert result.perturbed == "dire film"
    distance = abs(np.cos(0.2) - 1) + np.sin(0.2)
    assert dict(result.facts)["distance"] == pytest.approx(distance, abs=1e-6)


def test_a_budget_that_ends_within_the_vocabulary_keeps_the_rule() -> None:
    # 1 + 2 zeroed; then film, good, bad, awful of the dictionary's order fit: only awful works.
    result = run("gs-ec", "great good", budget=7)
    assert (result.outcome, result.perturbed, result.queries) == ("success", "awful good", 7)
    failed = run("gs-ec", "great good", budget=6)
    assert (failed.outcome, failed.queries) == ("failure", 6)
    assert "budget of 6" in failed.note


def test_the_vocabulary_has_a_size_and_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("bad\nodd\n\nnot a word\nbad\n")
    recipe = load_recipe("gs-ec")
    three = with_setting(recipe, "search.replacement.size", "4")  # film, good, great, bad
    assert run(three, "great good").outcome == "failure"
    listed = with_setting(recipe, "search.replacement.vocabulary", str(file))
    result = run(listed, "great")
    assert result.perturbed == "bad"
    assert result.queries == 1 + 1 + 2
    for value in ("0", "-3"):
        with pytest.raises(UnknownNameError, match="at least 1"):
            with_setting(recipe, "search.replacement.size", value)


def test_a_vocabulary_is_asked_in_growing_portions_that_depend_on_the_text_alone() -> None:
    sizes = [end - begin for begin, end in _portions(10_000, 100)]
    assert sizes[:6] == [FIRST, 64, 128, 256, 512, 512]
    assert (sum(sizes), max(sizes)) == (10_000, LARGEST)
    assert max(end - begin for begin, end in _portions(10_000, 2000)) == 100  # long texts, less at a time
    assert list(_portions(0, 10)) == []


def test_synonyms_are_tried_word_by_word_and_earlier_words_restored() -> None:
    table = {"superb": ["okay", "passable"], "pleasant": ["okay", "awful", "dire"], "film": ["movie"]}
    victim = linear({"superb": 0.3, "pleasant": 0.1, "okay": 0.05, "awful": -0.4, "dire": -0.5})
    oracles = {"neighbours:counter-fitted": neighbours(table), "victim": victim}
    result = attack_one(load_recipe("list"), oracles, "superb pleasant film")
    # superb -> okay 0.65, -> passable 0.6: no flip, and superb comes back. pleasant -> awful: 0.4.
    assert (result.outcome, result.perturbed) == ("success", "superb awful film")
    assert set(victim.asked[:3]) == {"superb pleasant film", "okay pleasant film", "passable pleasant film"}
    assert set(victim.asked[3:]) == {"superb okay film", "superb awful film", "superb dire film"}
    assert result.queries == 6


def test_a_list_without_a_working_synonym_fails_after_all_words() -> None:
    table = {"superb": ["okay"], "film": ["movie"]}
    oracles = {"neighbours:counter-fitted": neighbours(table), "victim": linear({"superb": 0.3, "okay": 0.1})}
    result = attack_one(load_recipe("list"), oracles, "superb film")
    assert (result.outcome, result.perturbed, result.queries) == ("failure", "okay film", 3)


def test_another_list_takes_the_place_of_the_neighbours() -> None:
    recipe = load_recipe("list")
    assert isinstance(recipe.search, OneWord)
    assert recipe.search.replacement == ListedWords(candidates=Neighbours(most=8))
    most = with_setting(recipe, "search.replacement.candidates.most", "1")
    table = {"superb": ["okay", "awful"]}
    oracles = {
        "neighbours:counter-fitted": neighbours(table),
        "victim": linear({"superb": 0.3, "okay": 0.1}, bias=-0.01),
    }
    assert attack_one(most, oracles, "superb film").outcome == "failure"
    assert attack_one(recipe, oracles, "superb film").outcome == "success"


# -- random draws ----------------------------------------------------------------------------------


def by_hand(text: str, draws: int, seed: int) -> tuple[int, bool]:
    """How many draws flip, and whether the first does."""
    rng = np.random.default_rng([seed, 0])
    own, words, victim = text.split(), list(VECTORS), VectorVictim()
    places = rng.integers(len(own), size=draws)
    drawn = rng.integers(len(words), size=draws)
    flips = []
    for place, number in zip(places, drawn, strict=True):
        word = words[number] if words[number] != own[place] else words[(number + 1) % len(words)]
        flips.append(scored_by(victim, " ".join([*own[:place], word, *own[place + 1 :]])) <= 0)
    return sum(flips), flips[0]


@pytest.mark.parametrize("seed", range(4))
def test_many_draws_are_one_estimate_and_the_first_is_the_attack(seed: int) -> None:
    result = run("random", "great good film", seed=seed)
    won, first = by_hand("great good film", 1000, seed)
    assert dict(result.facts) == {"draws": 1000, "draws_won": won}
    assert (result.outcome == "success") is first
    assert result.note == f"{won:,} of 1,000 draws succeed"
    # 3 positions times 6 other words, of which two give the same text ("good good film" and "great great")
    assert 0 < won < 1000
    assert len(result.edits) == 1
    assert result.queries <= 1 + 18
    assert result.asked == 1001


def test_the_estimate_is_near_the_exact_share() -> None:
    # "great good film" is 7. In place of great, awful and grim flip (3 - 5, 3 - 6), in place of good as well
    # (4 - 5, 4 - 6), in place of film none (7 - 6). A word drawn for itself gives way to the next one: bad
    # for great, great for good, good for film, which flip nothing. So 4 of 3 x 7 = 21 draws flip.
    recipe = with_setting(load_recipe("random"), "search.draws", "20000")
    facts = dict(run(recipe, "great good film").facts)
    assert facts["draws_won"] / facts["draws"] == pytest.approx(4 / 21, abs=0.01)


def test_a_budget_shortens_the_draws() -> None:
    result = run("random", "great good film", budget=5)
    assert result.queries <= 5
    assert 4 <= dict(result.facts)["draws"] < 1000
    nothing = run("random", "great good film", budget=1)
    assert (nothing.outcome, nothing.facts) == ("failure", ())
    assert "budget" in nothing.note


def test_the_summary_shows_the_estimate_with_its_interval(tmp_path: Path) -> None:
    from unfooled.report.tables import summary_rows

    data = [("great good film", 1), ("grim bad film", 0), ("great", 1), ("good film film", 1)] * 5
    found = attack(VectorVictim(), data, "random", out=tmp_path / "run")
    summary = found.summary()
    shares = [dict(result.facts)["draws_won"] / dict(result.facts)["draws"] for result in found.results()]
    assert summary.draws.value == pytest.approx(np.mean(shares))
    assert summary.draws.low < summary.draws.value < summary.draws.high
    assert summary.draws.n == 20
    names = [row.name for row in summary_rows(summary)]
    assert names.index("success rate over all random draws") == names.index("success rate of the attack") + 1
    assert json.loads(json.dumps(summary.to_dict()))["draws"]["n"] == 20
    with RunFile.read(found.path) as file:
        assert file.header["identity"]["recipe"]["search"]["draws"] == 1000


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_pairs_and_targets(name: str) -> None:
    victim = VectorVictim(classes=3)
    more = (
        {"neighbours:counter-fitted": neighbours({"great": ["odd", "grim"], "film": ["odd"]})}
        if name == "list"
        else {}
    )
    pair = {"premise": "film", "hypothesis": "great film"}
    recipe = fit_to_victim(load_recipe(name), victim)
    oracles = open_oracles(dataclasses.replace(recipe, search=RandomDraws()), victim) | more
    if name != "list":
        oracles = open_oracles(recipe, victim)
    aimed = dataclasses.replace(recipe, goal=Targeted(2))
    for chosen in (recipe, aimed):
        result = attack_one(chosen, oracles, pair)
        assert result.outcome in ("success", "failure"), result.note
        assert result.fields[0] == ("premise", "film")
        assert len(result.edits) <= 1
    reached = attack_one(aimed, oracles, pair).perturbed
    # In place of "great", bad and odd reach class 2 (1 against -1, 4 against -1); bad is nearer: 4, not 5.
    if name in ("gs-gr", "asmax-gr"):
        assert reached in ("bad film", "odd film")
    if name in ("gs-ec", "asmax-ec"):
        assert reached == "bad film"
    if name == "list":
        assert reached == "odd film"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "list"])
@pytest.mark.parametrize("kind", ["lstm", "bilstm-attention", "bert"])
def test_results_do_not_depend_on_the_neighbours(name: str, kind: str) -> None:
    pytest.importorskip("transformers")
    from tiny_models import tiny

    recipe = load_recipe(name)
    if set(recipe.requires()) - tiny_capabilities(kind):
        return
    if name == "random":
        recipe = with_setting(recipe, "search.draws", "30")
    texts = ["the film is good and great", "a dull, bad movie", "not fun!", "the plot was very very bad"]
    labels = tiny(kind, classes=2).predict(texts).argmax(axis=1).tolist()
    examples = [
        Example(key, (("text", text),), label, "text")
        for key, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    found = []
    for window, turned, tokens in ((1, False, 2048), (100, True, 16)):
        session = Session(tiny(kind, classes=2, max_tokens=tokens), recipe, Settings(window=window))
        found.append(
            sorted(session.attack(examples[::-1] if turned else examples), key=lambda result: result.key)
        )
    assert found[0] == found[1]
    assert {result.outcome for result in found[0]} <= {"success", "failure"}


def tiny_capabilities(kind: str) -> set[str]:
    """What a tiny model gives; found out once per kind."""
    from tiny_models import tiny

    if kind not in _CAPABILITIES:
        _CAPABILITIES[kind] = set(tiny(kind, classes=2).capabilities)
    return _CAPABILITIES[kind]


_CAPABILITIES: dict[str, set[str]] = {}


# -- as a user meets them --------------------------------------------------------------------------


def test_what_a_victim_lacks_is_named_with_what_works(tmp_path: Path) -> None:
    data = sentences(4)
    with pytest.raises(CapabilityError, match=r"(?s)asmax-gr@paper needs attention.*gs-gr@paper"):
        attack(FakeVictim(), data, "asmax-gr", out=tmp_path / "run")
    with pytest.raises(CapabilityError, match="gs-ec@paper needs embeddings"):
        attack(FakeVictim(), data, "gs-ec", out=tmp_path / "run")
    with pytest.raises(CapabilityError, match=r"(?s)does not say which words it knows.*file of words"):
        attack(FakeVictim(), data, "gs-gr", out=tmp_path / "run")
    zero = with_setting(load_recipe("gs-gr"), "search.selection.by", "zero")
    with pytest.raises(CapabilityError, match="needs embeddings"):
        attack(FakeVictim(), data, zero, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_black_box_is_attacked_with_a_list_of_words(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("awful\nsuperb\ntable\nterrible\ngreat\n")
    recipe = with_setting(load_recipe("gs-gr"), "search.replacement.vocabulary", str(file))
    found = attack(FakeVictim(), sentences(8), recipe, out=tmp_path / "run")
    assert found.summary().errors == 0
    with RunFile.read(found.path) as run_file:
        identity = run_file.header["identity"]
    assert identity["recipe"]["search"]["selection"]["by"] == "deletion"
    assert f"file:{file}" in identity["resources"]
    again = attack(FakeVictim(), sentences(8), recipe, out=tmp_path / "run")  # the settled recipe is the same
    assert again.summary() == found.summary()
    missing = with_setting(load_recipe("random"), "search.vocabulary", str(tmp_path / "none.txt"))
    with pytest.raises(ResourceError, match=r"none\.txt, which is not here"):
        attack(FakeVictim(), sentences(8), missing, out=tmp_path / "other")


def test_decided_labels_are_enough_for_those_that_climb_no_score(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("dull\nplain\n")

    def decide(texts: list[str]) -> list[str]:
        return ["negative" if "dull" in text else "positive" for text in texts]

    recipe = with_setting(load_recipe("random"), "search.vocabulary", str(file))
    victim = FunctionVictim(decide, labels=("negative", "positive"))
    assert "probabilities" not in victim.capabilities
    data = [("a great film", "positive"), ("a dull film", "negative")]
    found = attack(victim, data, recipe, out=tmp_path / "run")
    assert found.summary().errors == 0
    assert 0 < found.summary().draws.value < 1


def test_sklearn_pipelines_give_their_own_words(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    from unfooled import SklearnVictim

    rows = sentences(40)
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    counts = make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB()).fit(texts, labels)
    known = SklearnVictim(counts).vocabulary()
    assert {"number", "is", "and"} <= set(known[:5])  # most frequent first, and no word pairs
    assert all(" " not in word for word in known)
    weighed = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    assert {"number", "is", "and"} == set(SklearnVictim(weighed).vocabulary()[:3])
    plain = SklearnVictim(make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels))
    assert sorted(plain.vocabulary()) == sorted(plain.pipeline[0].vocabulary_)
    found = attack(SklearnVictim(counts), rows[:6], "gs-gr", out=tmp_path / "run")
    assert found.summary().errors == 0
    assert found.summary().counts["success"] > 0


def test_values_make_sense() -> None:
    for wrong in (
        lambda: RandomWords(size=0),
        lambda: ClosestWord(pool="max"),
        lambda: RandomDraws(draws=0),
        lambda: GreedySelect(by="magic"),  # type: ignore[arg-type]
        lambda: AttentionSelect(pick="any"),  # type: ignore[arg-type]
        lambda: AttentionSelect(query="sep"),  # type: ignore[arg-type]
        lambda: OneWord(selection=InOrder(), replacement=RandomWords(), positions=0),
    ):
        with pytest.raises(ValueError, match=r"must be one of|at least 1"):
            wrong()
