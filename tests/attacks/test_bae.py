"""BAE in its four modes, on victims and language models whose right answers are known by arithmetic."""

from __future__ import annotations

import dataclasses
import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recheck import recheck
from reviews import sentences
from toys import Answering, attack_one, encoder, linear, tags, toy_recipe
from unfooled.attacks.checks import TEXTS, check_recipe
from unfooled.attacks.parts import masks
from unfooled.attacks.parts.constraints import NextText, SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.masks import MODES, FillMask, MaskAndFill, Mode, Move, Told
from unfooled.attacks.parts.search import GreedySwap, allowed
from unfooled.core.attempt import Attempt, attempt
from unfooled.core.engine import Engine
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, all_recipes, load_recipe, with_everywhere, with_setting
from unfooled.core.result import Result
from unfooled.core.session import Settings
from unfooled.errors import UnknownNameError
from unfooled.resources import store
from unfooled.resources.fillmask import FillIn, MaskItem
from unfooled.runs import sealed
from unfooled.runs.attack import attack
from unfooled.runs.file import HEADER, RunFile
from unfooled.text import Text
from unfooled.translation.attempt import TextGoal
from unfooled.victims.fake import FakeVictim

WEIGHTS = {"superb": 0.3, "pleasant": 0.1, "film": 0.02, "okay": 0.05, "plain": 0.0, "hardly": -0.15}
WEIGHTS |= {"awful": -0.3, "dreadful": -0.3, "barely": -0.25, "so-so": -0.05}


def filling(table: Mapping[str, Sequence[str]]) -> Answering:
    """A masked language model that knows what goes where `_` stands; nothing elsewhere."""

    def answer(item: MaskItem) -> tuple[FillIn, ...]:
        words = table.get(f"{item.left}_{item.right}", ())
        return tuple(FillIn(word, -float(i)) for i, word in enumerate(words[: item.k]))

    return Answering(answer)


def gaps(oracle: Answering) -> list[str]:
    return [f"{item.left}_{item.right}" for item in oracle.asked]


def bae(mode: Mode, **changes: Any) -> Recipe:
    search = MaskAndFill(mode=mode, importance=Deletion(), fill=FillMask(), constraints=())
    return toy_recipe(dataclasses.replace(search, **changes))


def oracles(table: Mapping[str, Sequence[str]], weights: Any = WEIGHTS, **more: Any) -> dict[str, Any]:
    return {"fill:masked-lm": filling(table), **more, "victim": linear(weights)}


# -- the four modes --------------------------------------------------------------------------------


def test_r_replaces_the_most_important_word_first_and_the_first_flip_ends_the_search() -> None:
    table = {"A _, pleasant film.": ["awful", "okay"], "A superb, _ film.": ["awful"]}
    asked = oracles(table)
    result = attack_one(bae("R"), asked, "A superb, pleasant film.")
    # superb 0.3 > pleasant 0.1 > film 0.02; 0.92 - 0.3 - 0.3 = 0.32 flips, and pleasant is never tried.
    assert (result.outcome, result.perturbed) == ("success", "A awful, pleasant film.")
    # the original, three deletions ("a" is a stop word) and two candidates
    assert (result.queries, result.asked) == (6, 6)
    assert [(edit.kind, edit.before, edit.after, edit.step) for edit in result.edits] == [
        ("replace", "superb", "awful", 1)
    ]


def test_r_without_a_flip_keeps_the_lowest_probability_and_masks_the_edited_text() -> None:
    table = {
        "_ pleasant film": ["okay", "plain"],
        "superb _ film": ["awful"],  # stale once "superb" is gone
        "plain _ film": ["hardly"],
    }
    asked = oracles(table)
    result = attack_one(bae("R"), asked, "superb pleasant film")
    # 0.92 -> plain 0.62 (okay 0.67) -> hardly 0.37
    assert (result.outcome, result.perturbed) == ("success", "plain hardly film")
    assert "plain _ film" in gaps(asked["fill:masked-lm"])
    assert [edit.step for edit in result.edits] == [1, 2]


def test_r_keeps_nothing_that_raises_the_probability() -> None:
    table = {"_ film": ["superb"], "pleasant _": ["okay"]}
    result = attack_one(bae("R"), oracles(table), "pleasant film")
    assert (result.outcome, result.perturbed, result.edits) == ("failure", "pleasant film", ())


def test_i_inserts_on_either_side_ahead_of_punctuation() -> None:
    table = {"A _ superb, pleasant film.": ["hardly"], "A superb _, pleasant film.": ["barely", "okay"]}
    asked = oracles(table)
    result = attack_one(bae("I"), asked, "A superb, pleasant film.")
    # left: 0.92 - 0.15 = 0.77; right: 0.92 - 0.25 = 0.67 wins
    assert result.perturbed == "A superb barely, pleasant film."
    assert [(edit.kind, edit.position, edit.after, edit.at) for edit in result.edits] == [
        ("insert", 2, "barely", 9)
    ]
    assert [item.k for item in asked["fill:masked-lm"].asked] == [50] * len(asked["fill:masked-lm"].asked)
    # After the insertion the next word's gaps are asked again, in the new text.
    assert "A superb barely, _ pleasant film." in gaps(asked["fill:masked-lm"])
    assert not any("_, pleasant" in gap and "barely" in gap for gap in gaps(asked["fill:masked-lm"]))


def test_i_flips_with_the_left_insertion_and_all_original_words_stay() -> None:
    table = {"_ superb film": ["awful"], "superb _ film": ["okay"]}
    result = attack_one(bae("I"), oracles(table, WEIGHTS | {"awful": -0.4}), "superb film")
    assert (result.outcome, result.perturbed) == ("success", "awful superb film")
    assert result.words == 2
    assert result.share == pytest.approx(1 / 2)


def test_r_or_i_takes_the_best_single_edit_of_both_kinds() -> None:
    table = {"_ pleasant": ["okay"], "_ superb pleasant": ["hardly"], "superb _ pleasant": ["barely"]}
    result = attack_one(bae("R/I"), oracles(table), "superb pleasant")
    # replace: 0.9 - 0.25 = 0.65; left 0.75; right 0.65: equal to the replacement, which comes first
    assert result.perturbed == "okay pleasant"
    table["superb _ pleasant"] = ["awful"]
    assert attack_one(bae("R/I"), oracles(table), "superb pleasant").perturbed == "superb awful pleasant"


def test_r_and_i_edits_one_word_twice_and_inserts_beside_the_replacement() -> None:
    table = {
        "_ pleasant": ["okay"],
        "_ okay pleasant": ["hardly"],
        "okay _ pleasant": ["barely"],
        "superb _ pleasant": ["awful"],  # would flip, but "superb" is replaced by then
    }
    asked = oracles(table, WEIGHTS | {"barely": -0.1, "hardly": -0.12})
    result = attack_one(bae("R+I"), asked, "superb pleasant")
    # 0.9 -> okay 0.65 -> hardly 0.53; then nothing is known for "pleasant"
    assert (result.outcome, result.perturbed) == ("failure", "hardly okay pleasant")
    assert [(edit.kind, edit.after, edit.step) for edit in result.edits] == [
        ("insert", "hardly", 2),
        ("replace", "okay", 1),
    ]
    assert result.share == pytest.approx(2 / 2)


def test_r_and_i_inserts_where_nothing_could_be_replaced_and_stops_at_a_flip_before_inserting() -> None:
    only = {"superb _": ["awful"], "_ superb": ["okay"]}
    assert attack_one(bae("R+I"), oracles(only), "superb").perturbed == "superb awful"
    both = {"_": ["awful"], "awful _": ["dreadful"], "superb _": ["dreadful"]}
    result = attack_one(bae("R+I"), oracles(both), "superb")
    assert (result.outcome, result.perturbed) == ("success", "awful")


def test_among_flips_the_most_similar_wins_then_the_lowest_probability_then_the_likeliest() -> None:
    similarity = SentenceSimilarity(threshold=-1.0, scale="cosine", window=2)
    table = {"_ film": ["awful", "barely", "dreadful", "hardly"]}
    weights = WEIGHTS | {"barely": -0.3, "dreadful": -0.4, "hardly": -0.4, "superb": 0.1}
    turns = {"awful": 0.5, "barely": 0.3, "dreadful": 0.3, "hardly": 0.3}
    asked = oracles(table, weights, **{"encode:minilm": encoder(turns)})
    result = attack_one(bae("R", constraints=(similarity,)), asked, "superb film")
    # All four flip. awful turns too far; barely 0.22, dreadful and hardly 0.12: the likelier of the two.
    assert result.perturbed == "dreadful film"
    assert result.similarity == pytest.approx(math.cos(0.3), abs=1e-6)


# -- the candidates of a step ----------------------------------------------------------------------


def candidates(recipe: Recipe, asked: dict[str, Any], text: str, moves: Sequence[Move]) -> set[str]:
    """The texts that a step at the first word chooses among, after all constraints."""
    search = recipe.search
    assert isinstance(search, MaskAndFill)

    def program() -> Program[set[str]]:
        a = Attempt(Text(text), 1, Untargeted(), key=0, seed=0)
        (now,) = yield from a.score([a.original])
        told = yield from search.fill.ask([search.fill.item(now.text, 0, move) for move in moves])
        proposed = search.fill.options(told, now.text, 0, moves)
        options = yield from allowed(a, now, proposed, search.constraints)
        return {option.text.string for option in options}

    (finished,) = Engine[set[str]](asked).run([(0, program())])
    assert finished.value is not None, finished.error
    return finished.value


@pytest.mark.parametrize("version", ["paper", "cosine"])
@pytest.mark.parametrize("text", ["superb film", "superb " + "pleasant film " * 10])
def test_the_candidates_of_r_or_i_are_those_of_r_and_those_of_i(version: str, text: str) -> None:
    rest = text.removeprefix("superb")
    table = {
        f"_{rest}": ["awful", "okay", "slowly", "plain"],
        f"_ superb{rest}": ["hardly", "okay"],
        f"superb _{rest}": ["barely", "plain"],
    }
    more = {
        "encode:minilm": encoder({"awful": 1.5, "hardly": 0.1, "okay": 0.05, "barely": 2.9}),
        "tag:perceptron-tagger": tags({"slowly": "ADV"}),
    }
    names: dict[str, Mode] = {"bae-r": "R", "bae-i": "I", "bae-r-or-i": "R/I"}
    found = {
        name: candidates(load_recipe(f"{name}@{version}"), oracles(table, **more), text, MODES[mode][0])
        for name, mode in names.items()
    }
    assert found["bae-r-or-i"] == found["bae-r"] | found["bae-i"]
    assert found["bae-r"]
    assert found["bae-i"]
    assert not any(text.startswith("slowly") for text in found["bae-r"])  # another part of speech


@pytest.mark.parametrize(
    ("text", "index", "move", "found", "expected"),
    [
        ("Good film", 0, "replace", ["good", "great", "10", "GREAT", "42nd"], ["Great", "42nd"]),
        ("GOOD film", 0, "replace", ["great"], ["GREAT"]),
        ("good Film", 1, "replace", ["movie"], ["Movie"]),
        ("Good film", 0, "left", ["very", "good", "film"], ["Very", "Film"]),
        ("good film", 0, "right", ["Film", "old", "good"], ["old"]),
        ("A GOOD film", 1, "left", ["very", "a"], ["VERY"]),
        ("A Good film", 1, "left", ["very", "Paris"], ["very", "Paris"]),
    ],
)
def test_candidates_are_new_words_in_fitting_case(
    text: str, index: int, move: Move, found: list[str], expected: list[str]
) -> None:
    told = [FillIn(word, 0.0) for word in found]
    assert FillMask().words(told, Text(text), index, move) == expected


def test_without_casing_words_stay_as_the_model_writes_them() -> None:
    told = [FillIn(word, 0.0) for word in ("film", "movie", "10", "Film")]
    assert FillMask(casing=False).words(told, Text("a Film"), 1, "replace") == ["film", "movie"]


def test_no_insertion_brings_the_replaced_word_back() -> None:
    text = Text("good film").replace(0, "fine")
    told = [FillIn(word, 0.0) for word in ("good", "fine", "very")]
    assert FillMask().words(told, text, 0, "left") == ["very"]


def test_stop_words_are_neither_replaced_nor_inserted_beside() -> None:
    asked = oracles({})
    attack_one(bae("R/I"), asked, "The superb film is on")
    assert set(gaps(asked["fill:masked-lm"])) == {
        "The _ film is on",
        "The _ superb film is on",
        "The superb _ film is on",  # right of "superb" and left of "film"
        "The superb _ is on",
        "The superb film _ is on",
    }


def test_pairs_edit_the_hypothesis_and_the_model_sees_only_that() -> None:
    table = {"_ film": ["awful"], "superb _ film": ["awful"]}
    asked = oracles(table)
    result = attack_one(bae("R+I"), asked, {"premise": "plain", "hypothesis": "superb film"})
    assert result.perturbed == "awful film"
    assert result.fields == (("premise", "plain"), ("hypothesis", "superb film"))
    assert all(value[0] == "plain" for value in asked["victim"].asked)
    assert not any("plain" in gap for gap in gaps(asked["fill:masked-lm"]))


# -- similarity ------------------------------------------------------------------------------------


def measured(similarity: SentenceSimilarity, mode: Mode, text: str, table: dict[str, list[str]]) -> set[str]:
    """What the encoder is asked."""
    turn = encoder({})
    attack_one(bae(mode, constraints=(similarity,)), oracles(table, **{"encode:minilm": turn}), text)
    return set(turn.asked)


LONG = "superb one two three four five six seven eight nine ten"


def test_the_window_of_an_insertion_is_compared_with_the_same_stretch_before_it() -> None:
    similarity = SentenceSimilarity(threshold=2.0, scale="cosine", window=5)
    text = "one two three four superb five six seven eight nine ten"
    left, right = text.replace("superb", "_ superb"), text.replace("superb", "superb _")
    # "superb" alone has a weight; the others follow with nothing to insert
    assert measured(similarity, "I", text, {left: ["new"], right: ["newer"]}) == {
        "three four new superb five",
        "four superb newer five six",
        "three four superb five",
        "four superb five six",
    }
    first = measured(similarity, "I", LONG, {f"_ {LONG}": ["new"]})
    assert first == {"new superb one two three", "superb one two three"}
    last = measured(similarity, "I", f"{LONG} film.", {f"{LONG} film _.": ["new"]})
    assert last == {"eight nine ten film new", "eight nine ten film"}


def test_against_the_original_an_insertion_meets_the_window_of_the_word_beside_it() -> None:
    similarity = SentenceSimilarity(threshold=2.0, scale="cosine", window=3, against="original")
    text = "one two superb three four"
    asked = measured(similarity, "I", text, {"one two _ superb three four": ["new"]})
    assert asked == {"two new superb", "two superb three"}
    whole = dataclasses.replace(similarity, window=None)
    asked = measured(whole, "I", text + "!", {"one two superb _ three four!": ["new"]})
    assert asked == {"one two superb new three four!", "one two superb three four!"}


def test_the_paper_measures_each_edit_against_the_text_before_it_and_short_texts_hardly_at_all() -> None:
    turn = math.acos(0.99)  # on the authors' scale 1 - 0.1415 = 0.8585; twice that is 0.717
    angles = {"plain": turn, "so-so": turn, "okay": 3 * turn}
    weights = WEIGHTS | {f"word{i}": 0.0 for i in range(20)}
    more = {"encode:minilm": encoder(angles), "tag:perceptron-tagger": tags({})}

    def attacked(words: int) -> str:
        tail = " ".join(f"word{i}" for i in range(words - 2))
        table = {f"_ pleasant {tail}": ["plain", "okay"]}
        table |= {f"{first} _ {tail}": ["so-so"] for first in ("plain", "okay")}
        return attack_one(
            load_recipe("bae-r@paper"), oracles(table, weights, **more), f"superb pleasant {tail}"
        ).perturbed

    # Long: each step turns by 0.1415, allowed; from the original it would be too far. "okay" is too far.
    assert attacked(15).startswith("plain so-so ")
    # Short: 0.1 lets all pass, and the lowest probability decides.
    assert attacked(14).startswith("plain so-so ")
    weights["okay"] = -0.04
    assert attacked(15).startswith("plain so-so ")
    assert attacked(14).startswith("okay so-so ")


def test_the_cosine_version_measures_whole_texts_against_the_original() -> None:
    turn = math.acos(0.89)  # twice that has a cosine of 0.58
    more = {"encode:minilm": encoder({"plain": turn, "so-so": turn}), "tag:perceptron-tagger": tags({})}
    table = {"_ pleasant film": ["plain"], "plain _ film": ["so-so"]}
    result = attack_one(load_recipe("bae-r@cosine"), oracles(table, **more), "superb pleasant film")
    assert result.perturbed == "plain pleasant film"
    assert result.similarity == pytest.approx(0.89, abs=1e-6)
    assert "superb pleasant film" in more["encode:minilm"].asked


def test_the_part_of_speech_binds_replacements_and_not_insertions() -> None:
    kinds = tags({"superb": "ADJ", "awful": "ADV", "dreadful": "ADJ"})
    more = {"tag:perceptron-tagger": kinds}
    table = {"_ film": ["awful", "dreadful"], "superb _ film": ["awful"], "_ superb film": []}
    weights = WEIGHTS | {"awful": -0.6}
    search = {"constraints": (SamePartOfSpeech(),)}
    assert attack_one(bae("R", **search), oracles(table, weights, **more), "superb film").perturbed == (
        "dreadful film"
    )
    assert attack_one(bae("I", **search), oracles(table, weights, **more), "superb film").perturbed == (
        "superb awful film"
    )


# -- asking ahead ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(MODES))
def test_asking_ahead_changes_calls_and_nothing_else(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(item: MaskItem) -> tuple[FillIn, ...]:
        # One gap in four has a candidate, so that most texts stay as they are for a while.
        key = sum(map(ord, item.left[-6:] + item.right[:6]))
        return (FillIn(f"okay{key % 5}", -1.0),) if key % 4 == 0 else ()

    weights = {f"word{i}": 0.01 for i in range(20)} | {f"okay{i}": -0.001 * i for i in range(5)}
    text = " ".join(f"word{i}" for i in range(20))
    results, calls = [], []
    for ahead in (1, 100):
        monkeypatch.setattr(masks, "AHEAD", ahead)
        engine = Engine[Result]({"fill:masked-lm": Answering(answer), "victim": linear(weights)})
        recipe = bae(mode)
        assert not isinstance(recipe.goal, TextGoal)
        program = attempt(Text(text), 1, recipe.goal, recipe.search, key=0, seed=0)
        (finished,) = engine.run([(0, program)])
        assert finished.value is not None
        results.append(finished.value)
        calls.append(engine.traffic["fill:masked-lm"].calls)
    assert results[0] == results[1]
    assert results[0].edits
    assert calls[0] > calls[1]


# -- recipes ---------------------------------------------------------------------------------------


def test_names_lead_to_modes() -> None:
    expected = {"bae": "R+I", "bae-r": "R", "bae-i": "I", "bae-r-or-i": "R/I", "bae-r-and-i": "R+I"}
    for name, mode in expected.items():
        for version in ("", "@paper", "@cosine"):
            search = load_recipe(name + version).search
            assert isinstance(search, MaskAndFill)
            assert search.mode == mode
    assert load_recipe("bae").full_name == "bae-r-and-i@paper"
    assert load_recipe("bae@textattack").full_name == "bae-r@textattack"
    names = [recipe.full_name for recipe in all_recipes()]
    assert len(names) == len(set(names))
    assert "bae-r@textattack" in names


def test_the_mode_is_a_setting() -> None:
    changed = with_setting(load_recipe("bae-r"), "search.mode", "R/I")
    assert isinstance(changed.search, MaskAndFill)
    assert (changed.search.mode, changed.full_name) == ("R/I", "bae-r@paper+changed")
    assert changed.search == load_recipe("bae-r-or-i").search
    with pytest.raises(UnknownNameError, match=r"R, I, R/I, R\+I"):
        with_setting(load_recipe("bae"), "search.mode", "X")
    with pytest.raises(ValueError, match="mode must be one of"):
        bae("X")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="at least 1"):
        with_setting(load_recipe("bae"), "search.fill.most", "0")
    changed = with_setting(load_recipe("bae@cosine"), "search.constraints.1.window", "15")
    assert getattr(changed.search.constraints[1], "window") == 15  # type: ignore[attr-defined]  # noqa: B009
    none = with_setting(changed, "search.constraints.1.window", "none")
    assert getattr(none.search.constraints[1], "window") is None  # type: ignore[attr-defined]  # noqa: B009


@pytest.mark.parametrize("mode", list(MODES))
def test_every_mode_conforms_without_constraints_too(mode: Mode) -> None:
    check_recipe(dataclasses.replace(bae(mode), paper="none", summary="toy"))


def test_textattacks_version_is_the_greedy_swap_with_other_candidates() -> None:
    recipe = load_recipe("bae-r@textattack")
    search: Any = recipe.search
    swap = GreedySwap(
        importance=search.importance,
        candidates=search.fill,
        constraints=search.constraints,
        stopwords=search.stopwords,
        stopwords_cased=search.stopwords_cased,
        ties=search.ties,
    )
    table = {f"{first} _ film": ["okay", "awful"] for first in ("superb", "plain")}
    table["_ pleasant film"] = ["plain", "okay"]
    more = {"encode:minilm": encoder({}), "tag:perceptron-tagger": tags({})}
    for text in ("superb pleasant film", "superb film"):
        own = attack_one(recipe, oracles(table, **more), text)
        assert own == attack_one(dataclasses.replace(recipe, search=swap), oracles(table, **more), text)
    assert TEXTS
    assert isinstance(own.similarity, float | None)


# -- whole runs ------------------------------------------------------------------------------------

FILLERS = """old new little great good bad dull lame funny moving quiet long short first last other same whole
    director actor writer movie story plot scene cast comedy drama thing people man woman half number end
    really very quite almost rather still never often simply deeply truly makes feels looks seems becomes
    was were been has had and or but of in with for this that the a it"""


class Small(NamedTuple):
    """Models with random weights, saved as a user would have them."""

    masked_lm: Path
    encoder: Path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    sentence_transformers: Any = pytest.importorskip("sentence_transformers")
    from tiny_models import save_bert
    from unfooled.resources.encoders import quiet

    path = tmp_path_factory.mktemp("models")
    words = sorted(set(re.findall(r"\w+", FILLERS + " ".join(text for text, _ in sentences(60)))))
    for name, kind in {"masked-lm": "BertForMaskedLM", "body": "BertModel"}.items():
        pieces = [*words, "##s", "##ing", ".", ","]
        save_bert(path / name, pieces, hidden=32, positions=128, kind=kind, initializer_range=0.3)
    with quiet():
        sentence_transformers.SentenceTransformer(str(path / "body"), device="cpu").save(
            str(path / "encoder")
        )
    return Small(path / "masked-lm", path / "encoder")


def smaller(name: str, small: Small) -> Recipe:
    """The recipe with small models and fewer candidates."""
    recipe = with_everywhere(load_recipe(name), "encoder", str(small.encoder))
    recipe = with_setting(recipe, "search.fill.masked_lm", str(small.masked_lm))
    return with_setting(recipe, "search.fill.most", "12")


def needs(*names: str) -> None:
    for name in names:
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")


def rows(n: int) -> list[tuple[str, str]]:
    """Short sentences, and long ones made of two, with words in capitals."""
    short = sentences(n)
    paired = zip(short[::2], short[1::2], strict=True)
    long = [(f"{a[:-1]}, and {b}".replace("the old", "The OLD"), label) for (a, label), (b, _) in paired]
    return short[: n // 2] + long


@pytest.mark.parametrize("version", ["paper", "cosine"])
@pytest.mark.parametrize("name", ["bae-r", "bae-i", "bae-r-or-i", "bae-r-and-i"])
def test_every_edit_of_a_run_holds_when_checked_again_from_the_run_file(
    name: str, version: str, small: Small, tmp_path: Path
) -> None:
    needs("perceptron-tagger")
    attack(FakeVictim(), rows(20), smaller(f"{name}@{version}", small), out=tmp_path / "run")
    seen = recheck(tmp_path / "run")
    assert seen["success"] + seen["failure"] >= 15
    assert seen["success"] >= 5
    assert bool(seen["replace"]) == (name != "bae-i")
    assert bool(seen["insert"]) == (name != "bae-r")
    assert seen["measured"] >= 10
    assert seen["error"] == 0


def test_the_second_opinion_notices_a_forged_run(small: Small, tmp_path: Path) -> None:
    needs("perceptron-tagger")
    attack(FakeVictim(), rows(8), smaller("bae-r@cosine", small), out=tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as file:
        query = "SELECT key, replace(value, '0.8', '0.9999') FROM header WHERE key = 'identity'"
        sealed.put(file, HEADER, file.execute(query).fetchall())
    file.close()
    with pytest.raises(AssertionError):
        recheck(tmp_path / "run")


def test_five_times_fewer_calls_of_the_language_model_than_one_per_position(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("perceptron-tagger")
    visited: list[int] = []
    options = FillMask.options

    def counting(self: FillMask, told: Told, text: Text, index: int, moves: Sequence[Move]) -> list[NextText]:
        visited.append(index)
        return options(self, told, text, index, moves)

    monkeypatch.setattr(FillMask, "options", counting)
    digests = set()
    for window in (256, 1):
        visited.clear()
        out = tmp_path / f"window-{window}"
        recipe = smaller("bae-r-and-i@paper", small)
        attack(FakeVictim(), rows(20), recipe, out=out, settings=Settings(window=window))
        with RunFile.read(out) as file:
            calls = file.counters()[f"fill:{small.masked_lm}"]["calls"]
            digests.add(file.content_digest())
        # Alone, a text still has to wait for every edit before its next words can be asked.
        assert (5 if window > 1 else 1.2) * calls <= len(visited)
    assert len(digests) == 1
