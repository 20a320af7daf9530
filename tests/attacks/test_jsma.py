"""JSMA on a victim whose slopes are constants, and on small real models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, tags, toy_recipe
from unfooled import attack
from unfooled.attacks.jsma import RECIPES, Jsma
from unfooled.attacks.parts.constraints import SamePartOfSpeech
from unfooled.attacks.parts.goals import Targeted
from unfooled.core.questions import Projection, Pull, mark
from unfooled.core.recipe import Recipe, load_recipe, recipe_from_json, with_setting
from unfooled.core.result import Example, Result
from unfooled.core.session import Session, Settings, open_oracles
from unfooled.errors import CapabilityError, ResourceError, UnknownNameError
from unfooled.resources.fluency import Score
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim
from unfooled.victims.torch.word_oracles import ProjectionOracle, highest
from word_toys import VectorVictim, scored_by


def recipe(goal: Any = None, **settings: Any) -> Recipe:
    return toy_recipe(Jsma(**settings), goal)


def run(text: str | Mapping[str, str], victim: VectorVictim | None = None, **settings: Any) -> Result:
    victim = victim or VectorVictim()
    label, seed = settings.pop("label", 1), settings.pop("seed", 0)
    budget = settings.pop("budget", None)
    made = recipe(**settings)
    return attack_one(made, open_oracles(made, victim), text, label, seed=seed, budget=budget)


def test_recent_words_go_first_until_the_label_flips() -> None:
    # 4 + 4 + 0 + 3 = 11. Down is (-1, -1): awful and grim project on 3, awful stands first in the dictionary.
    # 11 - 3 - 5 = 3, then 3 - 0 - 5 = -2: flipped by two words.
    victim = VectorVictim()
    result = run("great great film good", victim)
    assert (result.outcome, result.perturbed) == ("success", "great great awful awful")
    assert [edit.position for edit in result.edits] == [2, 3]
    assert scored_by(victim, result.perturbed) == -2
    # The original and the two texts; the victim itself is asked for the original and for the flip.
    assert result.queries == 3
    assert victim.asked == ["great great film good", "great great awful awful"]


def test_the_word_that_stands_there_is_not_put_in_again() -> None:
    # 4 + 4 + 4 - 5 = 7: "awful" gives way to "grim", the next in projection: 6; then 6 - 4 - 5 = -3.
    result = run("great great great awful")
    assert result.perturbed == "great great awful grim"


def test_the_steepest_position_goes_first_and_equal_ones_in_order() -> None:
    assert run("great great film good", order="gradient").perturbed == "awful awful film good"
    # Weights 1, 3, 2, 1: the second word is steepest, then the third. 4 + 12 + 0 + 3 = 19.
    victim = VectorVictim(weights=(1, 3, 2, 1))
    result = run("great great film good", victim, order="gradient")
    # awful there: 19 - 12 - 15 = -8
    assert result.perturbed == "great awful film good"


def test_random_order_is_the_examples_own() -> None:
    text = "great great great great great"  # 20: 11, 2, -7
    order = np.random.default_rng([3, 0]).permutation(5).tolist()
    result = run(text, order="random", seed=3)
    assert sorted(edit.position for edit in result.edits) == sorted(order[:3])
    assert result == run(text, order="random", seed=3)
    assert len({run(text, order="random", seed=seed).perturbed for seed in range(8)}) > 1


def test_at_most_m_words_are_changed() -> None:
    result = run("great great great great great great", most=2)  # 24 - 9 - 9 = 6
    assert (result.outcome, result.perturbed) == ("failure", "great great great great awful awful")
    assert result.queries == 3
    assert run("great great great great great great", most=3).outcome == "success"  # -3


def test_nothing_helps(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("good\ngreat\n")
    result = run("great good", dictionary=str(tmp_path / "words.txt"))
    # Every position is used once: good -> great, great -> good.
    assert (result.outcome, result.perturbed) == ("failure", "good great")
    assert result.queries == 3


def test_words_behind_the_cut_are_left_alone() -> None:
    victim = VectorVictim(reads=2)
    result = run("good good great great", victim)
    # 3 + 3 = 6 of the words it reads: 6 - 3 - 5 = -2
    assert result.perturbed == "good awful great great"
    blind = run("good good", VectorVictim(reads=0), label=0)
    assert (blind.outcome, blind.queries) == ("skipped", 1)  # equal scores: it decides nothing


def test_a_target_is_walked_towards() -> None:
    # Class 2 is the sum times (-1, 1): up is (-1, 1), where "odd" (-3, 1) projects highest.
    # Sums (4, 2), (1, 3), (-4, 3); class 1: 8, 7, 2; class 2: -2, 2, 7.
    victim = VectorVictim(classes=3)
    result = run("great great film", victim, goal=Targeted(2))
    assert (result.outcome, result.perturbed) == ("success", "great odd odd")
    assert run("great great film", victim, goal=Targeted(2), most=1).outcome == "failure"
    # The output of class 0 is a constant: there is no slope to walk on, and nothing is changed.
    flat = run("good film", victim, goal=Targeted(0))
    assert (flat.outcome, flat.edits) == ("failure", ())


def test_pairs_change_the_editable_field_only() -> None:
    result = run({"premise": "film", "hypothesis": "great film"})
    assert (result.outcome, result.perturbed) == ("success", "great awful")
    assert result.fields[0] == ("premise", "film")


def test_a_flip_counts_only_when_the_victim_says_so() -> None:
    """The inside says that every text is flipped; the victim itself agrees from the second change on."""

    def lying(item: Pull) -> Projection:
        return Projection(np.array([0.9, 0.1]), 0, ("awful",))

    victim = Answering(lambda text: np.array([0.8, 0.2] if text.count("awful") > 1 else [0.2, 0.8]))
    oracles = {
        "readable": Answering(lambda text: tuple(range(len(text.words)))),
        "projection:all:victim": Answering(lying),
        "victim": victim,
    }
    result = attack_one(recipe(), oracles, "one two three four")
    assert result.perturbed == "one two awful awful"
    assert victim.asked == ["one two three four", "one two three awful", "one two awful awful"]


def test_the_budget_is_kept_and_what_was_seen_is_reported() -> None:
    text = "great great great great great great"
    result = run(text, budget=2)
    assert (result.outcome, result.queries) == ("failure", 2)
    assert "budget of 2" in result.note


# -- constraints -----------------------------------------------------------------------------------


def test_only_words_that_pass_the_checks_are_put_in() -> None:
    made = RECIPES["grammatical"]
    victim = VectorVictim()
    kinds = tags({"good": "ADJ", "great": "ADJ", "film": "NOUN", "awful": "NOUN", "grim": "ADJ"})
    for search in (made.search, RECIPES["fluent"].search):
        assert isinstance(search, Jsma)
        assert search.constraints[0] == SamePartOfSpeech(noun_for_verb=False)
    oracles = open_oracles(recipe(candidates=50), victim) | {
        "tag:perceptron-tagger": kinds,
        "encode:minilm": encoder(),
    }
    result = attack_one(made, oracles, "great good film")
    # "film" may become the noun awful: 7 - 0 - 5 = 2. "good" may not, so grim: 2 - 3 - 6 = -7.
    assert result.perturbed == "great grim awful"


def test_a_position_without_an_allowed_word_is_passed_over() -> None:
    kinds = tags(dict.fromkeys(("awful", "grim", "bad", "odd", "good", "great"), "ADJ") | {"film": "NOUN"})
    oracles = open_oracles(recipe(), VectorVictim()) | {
        "tag:perceptron-tagger": kinds,
        "encode:minilm": encoder(),
    }
    result = attack_one(RECIPES["grammatical"], oracles, "good film")
    assert result.perturbed == "awful film"
    assert len(result.edits) == 1


def test_a_language_model_keeps_out_what_nobody_would_say() -> None:
    kinds = tags(dict.fromkeys(("awful", "grim", "bad", "odd", "good", "great", "film"), "ADJ"))
    asked: list[str] = []

    class Speech:
        """Every `awful` makes a text e^5 times less likely, every `grim` e^3 times."""

        batch_size = 8

        def __call__(self, items: list[str]) -> list[Score]:
            asked.extend(items)
            return [
                Score(-5.0 * text.count("awful") - 3.0 * text.count("grim"), len(text.split()))
                for text in items
            ]

    oracles = open_oracles(recipe(candidates=500), VectorVictim()) | {
        "tag:perceptron-tagger": kinds,
        "fluency:trigram": Speech(),
    }
    result = attack_one(RECIPES["fluent"], oracles, "good film")
    # awful and grim have the highest projections; awful is too unlikely, grim just likely enough.
    assert result.perturbed == "good grim"
    assert "good awful" in asked


# -- the oracle ------------------------------------------------------------------------------------


def test_projections_are_ordered_and_ties_keep_the_dictionarys_order() -> None:
    oracle = ProjectionOracle(VectorVictim(), "all:victim")
    pull = Pull(mark("great film"), 1, False, 4)
    (answer,) = oracle([pull])
    # On (-1, -1): awful 3, grim 3, odd 2, bad 1.
    assert (answer.steepest, answer.words) == (0, ("awful", "grim", "odd", "bad"))
    (up,) = oracle([pull._replace(up=True, most=6)])
    assert up.words == ("great", "good", "film", "bad", "odd", "awful")  # 3, 2, 0, -1, -2, -3
    assert answer.scores.tolist() == VectorVictim().predict(["great film"]).round(6)[0].tolist()
    (flat,) = oracle([pull._replace(label=0)])
    assert flat.words == ()  # nothing changes the output of class 0
    assert ProjectionOracle(VectorVictim(), "3:victim")([pull])[0].words == ("film", "good", "great")


@pytest.mark.parametrize("most", [1, 2, 4, 5, 9])
def test_highest_takes_the_first_of_equals(most: int) -> None:
    values = np.array([[1.0, 3.0, 2.0, 3.0, 2.0, 2.0], [4.0, 4.0, 5.0, 1.0, 2.0, 3.0]])
    assert highest(values, most) == [[1, 3, 2, 4, 5, 0][:most], [2, 0, 1, 5, 4, 3][:most]]


def test_a_dictionary_that_the_victim_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("zebra\nice cream\n")
    oracle = ProjectionOracle(VectorVictim(), f"all:{tmp_path / 'other.txt'}")
    with pytest.raises(ResourceError, match=r"reads no word of .*other.txt as one token"):
        oracle([Pull(mark("film"), 1, False, 1)])


# -- small real models -----------------------------------------------------------------------------

TEXTS = [
    "the film is good and the plot was great fun",
    "a dull, bad movie",
    "not very good",
    "the movie was bad and the plot is not fun and not great and very dull",
    "great fun!",
    "Films, a very dull plot; bad",
]


@pytest.mark.parametrize("kind", ["lstm", "bilstm-attention", "word-cnn", "bert", "roberta"])
def test_results_do_not_depend_on_the_neighbours(kind: str) -> None:
    pytest.importorskip("transformers")
    from tiny_models import tiny

    made = recipe(most=6, order="gradient" if kind == "lstm" else "recent")
    labels = tiny(kind, classes=2).predict(TEXTS).argmax(axis=1).tolist()
    examples = [
        Example(key, (("text", text),), label, "text")
        for key, (text, label) in enumerate(zip(TEXTS, labels, strict=True))
    ]
    found = []
    for window, turned, tokens in ((1, False, 2048), (100, False, 2048), (3, True, 8)):
        session = Session(tiny(kind, classes=2, max_tokens=tokens), made, Settings(window=window))
        results = session.attack(examples[::-1] if turned else examples)
        found.append(sorted(results, key=lambda result: result.key))
    assert found[0] == found[1] == found[2]
    assert {result.outcome for result in found[0]} <= {"success", "failure"}
    assert any(result.edits for result in found[0])


def test_it_agrees_with_a_plain_loop_over_single_texts() -> None:
    """One text, one gradient, one product, one word at a time, written down again without the machinery."""
    pytest.importorskip("torch")
    from tiny_models import tiny
    from unfooled.passes import device_of

    victim = tiny("lstm", classes=2)
    words, table = victim.vocabulary_vectors()
    model, tokenizer = victim.model, victim.tokenizer
    for text in TEXTS[:5]:
        label = int(victim.predict([text]).argmax())
        made = recipe(most=4)
        ours = attack_one(made, open_oracles(made, victim), text, label)
        plain = text.replace("!", " !").split()
        spots = [i for i, word in enumerate(plain) if word[0].isalpha()][::-1]
        flipped = False
        for i in spots[:4]:
            ids = tokenizer([" ".join(plain)], return_tensors="pt")["input_ids"].to(device_of(model))
            vectors = model.get_input_embeddings()(ids).detach().requires_grad_()
            model(inputs_embeds=vectors).logits[0, label].backward()
            at = sum(word[0].isalpha() for word in plain[:i])
            scores = table @ -np.sign(vectors.grad[0, at].numpy())
            order = [words[n] for n in np.argsort(-scores, kind="stable")]
            own = plain[i].strip(",;.").lower()
            plain[i] = next(word for word in order if word != own)
            flipped = int(victim.predict([" ".join(plain)]).argmax()) != label
            if flipped:
                break
        assert (ours.outcome == "success") == flipped
        kept = [word.strip(",;.!") for word in plain if word.strip(",;.!")]
        assert ours.perturbed.replace(",", "").replace("!", "").split() == kept


# -- as a user meets it ----------------------------------------------------------------------------


def test_a_victim_without_gradients_is_told_what_would_work(tmp_path: Path) -> None:
    data = [("a great film", "positive"), ("an awful film", "negative")]
    with pytest.raises(CapabilityError, match=r"(?s)jsma@paper needs gradients.*gs-gr@paper"):
        attack(FakeVictim(), data, "jsma", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_dictionary_file_is_part_of_the_run(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("awful\nbad\n")
    made = with_setting(load_recipe("jsma"), "search.dictionary", str(file))
    assert recipe_from_json(made.to_json()) == made
    data = [("great film", 1), ("grim film", 0)] * 4
    run_ = attack(VectorVictim(), data, made, out=tmp_path / "run")
    with RunFile.read(run_.path) as found:
        assert f"file:{file}" in found.header["identity"]["resources"]
    assert run_.summary().success_rate.value == 0.5  # nothing in the file pulls up
    file.unlink()
    with pytest.raises(ResourceError, match=r"reads the file .*words.txt, which is not here"):
        attack(VectorVictim(), data, made, out=tmp_path / "other")


def test_settings_are_checked() -> None:
    for path, value in {"order": "backwards", "most": "0", "size": "0", "candidates": "0"}.items():
        with pytest.raises(UnknownNameError, match=path):
            with_setting(load_recipe("jsma"), f"search.{path}", value)
