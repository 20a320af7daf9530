"""The gradient attack on cases computed by hand, its parts, and the swaps of parts by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recheck import WORD, cosine, steps
from reviews import sentences
from tiny_models import tiny
from toys import Answering, attack_one, encoder, linear, tags
from unfooled.attacks.breaking_bert import RECIPES, LowestConfidence
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import OnlyClass, Targeted, Untargeted, aimed_at, only_class
from unfooled.attacks.parts.gradient_importance import Gradient, z_scores
from unfooled.attacks.parts.importance import Deletion, RandomOrder
from unfooled.attacks.parts.selection import AttentionSelect
from unfooled.attacks.parts.sources import Datamuse, UserTable, WordNetSynonyms
from unfooled.core.questions import GradientItem, WordVectors
from unfooled.core.recipe import (
    Recipe,
    fit_to_machine,
    load_part,
    load_recipe,
    recipe_from_json,
    with_everywhere,
)
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.errors import CapabilityError, DataError, UnknownNameError
from unfooled.resources import store
from unfooled.resources.encoders import open_encoder
from unfooled.resources.synonyms import open_synonyms
from unfooled.resources.tagger import UNIVERSAL, load_tagger
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.runs.task import task_for
from unfooled.stopwords import STOPWORDS
from unfooled.victims.fake import FakeVictim

# Class 1 is "positive": these words push towards "negative", the class that is attacked.
WEIGHTS = {
    "awful": -0.3,
    "late": -0.1,
    "flight": -0.05,
    "poor": -0.2,
    "tardy": 0.1,
    "slow": -0.02,
    "trip": 0.2,
}
PULLS = {"awful": 4.0, "late": 2.0, "flight": 1.0}


def gradients(pulls: Mapping[str, float], unseen: tuple[str, ...] = ()) -> Answering:
    """A word's gradient is as long as the table says, along one axis."""

    def answer(item: GradientItem) -> WordVectors:
        words = item.text.words
        vectors = np.array([[pulls.get(word, 0.5), 0.0] for word in words], dtype=np.float32)
        pieces = np.array([word not in unseen for word in words], dtype=np.int64)
        return WordVectors(words, pieces, vectors)

    return Answering(answer)


def synonyms(table: Mapping[str, list[str]]) -> Answering:
    return Answering(lambda item: tuple(table.get(item[0], ())))


def fitted_to(chosen: Recipe, *labels: str) -> Recipe:
    fit = getattr(chosen.goal, "fit", lambda _: chosen.goal)
    return dataclasses.replace(chosen, goal=fit(SimpleNamespace(labels=labels)))


def recipe(version: str = "paper", **changes: Any) -> Recipe:
    chosen = fitted_to(load_recipe(f"breaking-bert@{version}"), "negative", "positive")
    search = dataclasses.replace(chosen.search, candidates=WordNetSynonyms(), **changes)  # type: ignore[type-var]
    return dataclasses.replace(chosen, search=search)


def oracles(table: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    return {
        "gradients:loss": gradients(PULLS),
        "wordnet:wordnet": synonyms(table),
        "tag:perceptron-tagger": tags({}),
        "encode:use": encoder(),
        "victim": linear(WEIGHTS),
    } | more


# -- by hand -------------------------------------------------------------------------------------------


def test_words_go_in_the_order_of_their_gradients_and_a_flip_ends_it() -> None:
    asked = oracles({"awful": ["poor"], "late": ["tardy", "slow"], "flight": ["trip"]})
    result = attack_one(recipe(), asked, "awful late flight", label=0)
    # P(positive) = 0.5 - 0.45 = 0.05; poor: 0.15; then tardy: 0.35, slow: 0.23: tardy is kept, no flip;
    # then trip: 0.6.
    assert (result.outcome, result.perturbed) == ("success", "poor tardy trip")
    assert result.probs == (0.95, 0.05)
    assert result.perturbed_probs == (0.4, 0.6)
    # The original, one, two and one options; a look inside costs no query.
    assert result.queries == 1 + 1 + 2 + 1
    assert [edit.before for edit in result.edits] == ["awful", "late", "flight"]


def test_the_order_is_that_of_the_gradients_not_of_the_drop() -> None:
    pulls = {"awful": 1.0, "late": 2.0, "flight": 4.0}
    asked = oracles({"awful": ["poor"], "flight": ["trip"]}, **{"gradients:loss": gradients(pulls)})
    result = attack_one(recipe(), asked, "awful late flight", label=0)
    # flight first: 0.05 + 0.25 = 0.3; late has no synonym; awful -> poor: 0.4, and no word is left.
    assert (result.outcome, result.perturbed, result.queries) == ("failure", "poor late trip", 3)


def test_of_several_flips_the_lowest_confidence_wins_even_where_another_is_more_similar() -> None:
    weights = WEIGHTS | {"great": 0.6, "fine": 0.3}
    asked = oracles({"awful": ["fine", "great"]}, victim=linear(weights))
    asked["encode:use"] = encoder({"great": 0.3, "fine": 0.1})
    result = attack_one(recipe(), asked, "awful flight", label=0)
    # fine: 0.75 at cosine 0.995; great: 1.0 at cosine 0.955
    assert result.perturbed == "great flight"
    assert result.similarity == pytest.approx(np.cos(0.3), abs=1e-6)


def test_similarity_is_that_of_the_whole_text_with_the_original() -> None:
    # 0.3 radians each: cosine 0.955; both together 0.825, below 0.9.
    asked = oracles({"awful": ["poor"], "late": ["tardy"]})
    asked["encode:use"] = encoder({"poor": 0.3, "tardy": 0.3})
    result = attack_one(recipe(), asked, "awful late flight", label=0)
    assert result.perturbed == "poor late flight"
    long = "awful late flight " + "on and on it went " * 20
    assert attack_one(recipe(), asked, long, label=0).perturbed == long.replace("awful", "poor")


def test_another_part_of_speech_is_refused_nouns_for_verbs_too() -> None:
    asked = oracles({"awful": ["poor"], "late": ["tardy"]})
    asked["tag:perceptron-tagger"] = tags({"poor": "VERB"})
    assert attack_one(recipe(), asked, "awful late flight", label=0).perturbed == "awful tardy flight"


def test_stop_words_are_left_alone_and_only_improvements_kept() -> None:
    asked = oracles({"the": ["trip"], "late": ["awful"]})
    result = attack_one(recipe(), asked, "the late flight", label=0)
    assert (result.outcome, result.edits) == ("failure", ())


def three_classes(value: Any) -> np.ndarray:
    """P(negative) falls with each "meh"; the rest is shared so that no other class gets ahead at once."""
    negative = 0.8 - 0.35 * str(value).count("meh")
    return np.round(np.array([negative, (1 - negative) * 0.6, (1 - negative) * 0.4]), 6)


def test_below_the_floor_it_stops_and_an_unflipped_label_is_no_success() -> None:
    asked = oracles({"awful": ["meh"], "late": ["meh"]}, victim=Answering(three_classes))
    result = attack_one(recipe(), asked, "awful late flight", label=0)
    # 0.45 is below 0.5, but the others have 0.33 and 0.22: the label stands.
    assert (result.outcome, result.perturbed) == ("failure", "meh late flight")
    assert "below 0.5" in result.note
    # Below the floor from the start: only the most important word is tried, and nothing is known for that.
    few = oracles({"late": ["meh"]}, victim=Answering(three_classes))
    low = attack_one(recipe(), few, "meh awful late flight", label=0)
    assert (low.outcome, low.queries, low.edits) == ("failure", 1, ())
    assert "is below 0.5" in low.note
    further = attack_one(recipe("flip"), asked, "awful late flight", label=0)
    assert (further.outcome, further.perturbed, further.note) == ("success", "meh meh flight", "")


def test_only_the_named_class_is_attacked_and_the_others_are_scored_once() -> None:
    asked = oracles({"trip": ["awful"]})
    result = attack_one(recipe(), asked, "trip trip", label=1)
    assert (result.outcome, result.queries) == ("skipped", 1)
    assert "class negative" in result.note
    everywhere = only_class(recipe(), "any")
    assert attack_one(everywhere, asked, "trip trip", label=1).outcome == "success"


@pytest.mark.parametrize("chosen", RECIPES.values(), ids=lambda recipe: recipe.full_name)
def test_it_keeps_the_rules_of_attacks(chosen: Recipe) -> None:
    check_recipe(chosen)
    check_recipe(only_class(chosen, "any"))
    assert chosen.requires() == ("probabilities", "gradients")


@pytest.mark.parametrize("change", [{"floor": 1.5}, {"stopwords": "none"}])
def test_settings_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    search = load_recipe("breaking-bert").search
    assert isinstance(search, LowestConfidence)
    with pytest.raises(ValueError):
        dataclasses.replace(search, **change)


# -- goals ---------------------------------------------------------------------------------------------


def test_a_class_is_found_by_its_name_at_the_victim() -> None:
    chosen = fitted_to(load_recipe("breaking-bert"), "positive", "Negative", "neutral")
    assert chosen.goal == OnlyClass("Negative", Untargeted(), 1)
    assert fitted_to(chosen, "anything") == chosen
    with pytest.raises(DataError, match="--only any"):
        fitted_to(load_recipe("breaking-bert"), "ham", "spam")
    assert fitted_to(load_recipe("textfooler"), "ham", "spam") == load_recipe("textfooler")


def test_a_target_keeps_the_class_it_starts_from() -> None:
    aimed = aimed_at(load_recipe("breaking-bert"), 2)
    assert aimed.goal == OnlyClass("negative", Targeted(2))
    assert aimed_at(load_recipe("textfooler"), 1).goal == Targeted(1)
    assert recipe_from_json(aimed.to_json()) == aimed
    fake = FakeVictim()
    with pytest.raises(DataError, match="class negative, which is also the target"):
        task_for(fake).aimed(load_recipe("breaking-bert"), "negative", fake)


def test_a_class_that_was_never_looked_up_is_an_error_not_a_skip() -> None:
    unready = dataclasses.replace(recipe(), goal=OnlyClass("negative"))
    result = attack_one(unready, oracles({}), "awful flight", label=0)
    assert (result.outcome, "is not known" in result.note) == ("error", True)


# -- importance ----------------------------------------------------------------------------------------


def test_z_scores_by_hand() -> None:
    seen = np.array([True, True, True, False])
    # mean 2, deviations -1, 0, 1, standard deviation sqrt(2/3)
    found = z_scores(np.array([1.0, 2.0, 3.0, 100.0]), seen)
    assert found.tolist() == [-1.225, 0.0, 1.225, -np.inf]
    assert z_scores(np.array([5.0, 5.0]), np.array([True, True])).tolist() == [0.0, 0.0]
    assert z_scores(np.array([]), np.array([], dtype=bool)).tolist() == []


def test_words_below_the_least_z_score_are_left_out_and_unseen_ones_come_last() -> None:
    asked = oracles({"awful": ["poor"], "late": ["slow"], "flight": ["trip"]})
    result = attack_one(recipe(importance=Gradient(least=0.5)), asked, "awful late flight", label=0)
    assert [edit.before for edit in result.edits] == ["awful"]
    asked["gradients:loss"] = gradients(PULLS, unseen=("awful",))
    ordered = attack_one(recipe(), asked, "awful late flight", label=0)
    assert [(edit.before, edit.step) for edit in ordered.edits if edit.step == 3] == [("awful", 3)]


def test_attention_ranks_by_what_a_word_receives_and_unread_words_come_last() -> None:
    table = {"late": 0.9, "awful": 0.4, "flight": 0.1, "poor": 0.0}
    weights = dict.fromkeys(table, -0.1) | dict.fromkeys(("slow", "trip", "tardy"), -0.05)
    more = {
        "victim": linear(weights),
        "attention:-1": Answering(lambda item: np.array([table[word] for word in item.words])),
        "readable": Answering(lambda item: tuple(range(len(item.words) - 1))),
    }
    asked = oracles({"late": ["slow"], "flight": ["trip"], "poor": ["tardy"]}, **more)
    text = "awful late flight poor"  # the last word is behind the cut
    most, least = AttentionSelect(layer=-1), AttentionSelect(layer=-1, pick="lowest")
    highest = attack_one(recipe(importance=most), asked, text, label=0)
    lowest = attack_one(recipe(importance=least), asked, text, label=0)
    assert [edit.step for edit in highest.edits] == [1, 2, 3]  # late, flight, poor
    assert [edit.step for edit in lowest.edits] == [2, 1, 3]


@pytest.mark.parametrize("kind", ["bert", "lstm"])
def test_orders_differ_on_a_real_model_and_each_is_repeatable(kind: str, tmp_path: Path) -> None:
    victim = tiny(kind, classes=2)
    rows = [("the film is good and the plot was dull", 0), ("a great movie is not a bad film", 0)]
    table = tmp_path / "t.json"
    table.write_text('{"film": ["movie"], "good": ["bad"], "great": ["dull"], "plot": ["fun"]}')
    data = Dataset.from_pairs([(text, int(victim.predict([text]).argmax())) for text, _ in rows])
    search = LowestConfidence(
        importance=Gradient(), candidates=UserTable(str(table)), constraints=(), floor=None
    )
    base = dataclasses.replace(only_class(load_recipe("breaking-bert"), "any"), search=search)
    found = {}
    for name in ("gradient", "random", "deletion", *(["attention"] if kind == "bert" else [])):
        chosen = with_everywhere(base, "importance", load_part("importance", name))
        runs = [
            attack(victim, data, chosen, out=tmp_path / f"{name}{window}", settings=Settings(window=window))
            for window in (1, 10)
        ]
        assert list(runs[0].results()) == list(runs[1].results())
        found[name] = [result.queries for result in runs[0].results()]
        assert all(result.outcome in ("success", "failure") for result in runs[0].results())
    # Deletion pays for its probes, the others do not.
    assert sum(found["deletion"]) > sum(found["gradient"])


# -- parts by name -------------------------------------------------------------------------------------


def test_parts_are_swapped_by_name_and_needs_follow_them() -> None:
    paper = load_recipe("breaking-bert")
    random = with_everywhere(paper, "importance", load_part("importance", "random"))
    assert (random.full_name, random.requires()) == ("breaking-bert@paper+changed", ("probabilities",))
    fooler = with_everywhere(load_recipe("textfooler"), "importance", load_part("importance", "gradient"))
    assert fooler.requires() == ("probabilities", "gradients")
    assert "gradients:loss" in fooler.oracles()
    same = with_everywhere(paper, "importance", load_part("importance", "gradient"))
    assert same == paper


@pytest.mark.parametrize(
    ("kind", "name", "part"),
    [
        ("importance", "gradient", Gradient()),
        ("importance", "gradient:logit", Gradient("logit")),
        ("importance", "attention:-1", AttentionSelect(-1)),
        ("importance", "deletion", Deletion()),
        ("importance", "random", RandomOrder()),
        ("candidates", "wordnet:3", WordNetSynonyms(senses=3)),
        ("candidates", "neighbours:my.json", Neighbours("my.json")),
        ("candidates", "datamuse:ml", Datamuse("ml")),
        ("candidates", "table:C:/mine.csv", UserTable("C:/mine.csv")),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_name_may_carry_the_first_setting(kind: str, name: str, part: object) -> None:
    assert load_part(kind, name) == part


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("importance", "gradiant", "did you mean gradient"),
        ("importance", "attention:first", "number"),
        ("importance", "gradient:norm", "choose one of"),
        ("importance", "random:5", "no settings"),
        ("candidates", "table", "table:PATH"),
        ("candidates", "wordnet:-1", "at least 0"),
    ],
)
def test_mistakes_in_names_say_what_would_fit(kind: str, name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_part(kind, name)


def test_an_attack_without_the_part_says_so() -> None:
    with pytest.raises(UnknownNameError, match="no part with the setting 'candidates'"):
        with_everywhere(load_recipe("deepwordbug@paper"), "candidates", WordNetSynonyms())


def test_a_victim_without_gradients_is_told_what_works(tmp_path: Path) -> None:
    data = Dataset.from_pairs(sentences(4))
    with pytest.raises(CapabilityError, match="needs gradients"):
        attack(FakeVictim(), data, "breaking-bert", out=tmp_path / "run")
    random = with_everywhere(load_recipe("breaking-bert"), "importance", RandomOrder())
    table = tmp_path / "t.csv"
    table.write_text("dull,quiet\nbad,fine\n")
    search = dataclasses.replace(
        random.search,  # type: ignore[type-var]
        candidates=UserTable(str(table)),
        constraints=(),
    )
    run = attack(FakeVictim(), data, dataclasses.replace(random, search=search), out=tmp_path / "run")
    counts = run.summary().counts
    assert counts["error"] == 0
    assert counts["skipped"] >= 2, "positive ones are skipped"
    with RunFile.read(run.path) as file:
        goal = file.header["identity"]["recipe"]["goal"]
        assert (goal["name"], goal["label"]) == ("negative", 0)
        rebuilt = recipe_from_json(file.header["identity"]["recipe"])
    assert fit_to_machine(rebuilt) == (rebuilt, [])


# -- checked again from the run file -------------------------------------------------------------------


def test_every_edit_of_a_real_run_satisfies_every_rule_when_checked_again(tmp_path: Path) -> None:
    """With other code: texts rebuilt from the edits, cosines in a loop, tags of whole contexts."""
    for name in ("use", "wordnet", "perceptron-tagger"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    pytest.importorskip("tokenizers")
    chosen = with_everywhere(
        only_class(load_recipe("breaking-bert@flip"), "any"), "importance", RandomOrder()
    )
    chosen = with_everywhere(chosen, "candidates", WordNetSynonyms())
    run = attack(FakeVictim(), Dataset.from_pairs(sentences(12)), chosen, out=tmp_path / "run")
    encode, tagger, synonyms = open_encoder("use"), load_tagger(), open_synonyms()
    checked = 0
    for result in run.results():
        words = WORD.findall(result.original)
        for step in steps(result):
            edit = step.edit
            checked += 1
            assert edit.kind == "replace"
            assert words[edit.position] == edit.before
            assert edit.before not in STOPWORDS["english"]
            assert edit.after.lower() in synonyms([(edit.before.lower(), 0)])[0]
            first = max(0, edit.position - 4)
            context = words[first : edit.position + 5]
            place = edit.position - first
            changed = [*context[:place], edit.after, *context[place + 1 :]]
            own, new = (UNIVERSAL.get(tagger.tag(words)[place], "X") for words in (context, changed))
            assert own == new
            value = cosine(*(vector.tolist() for vector in encode([result.original, step.after])))
            assert value >= 0.9 - 1e-6
        if result.edits:
            assert result.similarity == pytest.approx(value, abs=1e-5)
        assert (result.outcome == "success") <= (int(np.argmax(result.perturbed_probs)) != result.label)
    assert checked > 5
