"""HotFlip, GBDA and triggers on a victim whose gradients are constants: every gain is known by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, neighbours, toy_recipe
from unfooled.attacks.fd import SignSwaps
from unfooled.attacks.gbda import Gbda
from unfooled.attacks.geo import ToBoundary, to_boundary
from unfooled.attacks.hotflip import HotFlip
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Targeted
from unfooled.attacks.parts.importance import Masking
from unfooled.attacks.parts.own_words import OwnWords
from unfooled.attacks.parts.triggers import open_triggers
from unfooled.core.questions import Along, Counts, Mixed, Mixture, Numbers, Pull, Readable, WordVectors, mark
from unfooled.core.recipe import Recipe, load_recipe, recipe_from_json, with_setting
from unfooled.core.result import Result
from unfooled.core.session import open_inside, require_capabilities
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import CapabilityError, DataError, ResourceError
from unfooled.resources.fluency import Score
from unfooled.resources.triggers import Trigger, Triggers
from unfooled.text import Text
from unfooled.training.triggers import TriggerLearner, TriggerSettings
from unfooled.victims.fake import FakeVictim
from unfooled.victims.torch.mixtures import open_flips, open_mixture, open_signs
from unfooled.victims.torch.oracles import open_head
from unfooled.victims.torch.whitebox import WordEmbeddings
from word_toys import VECTORS, VectorVictim

#     film 0, good 3, great 4, bad -1, awful -5, grim -6, odd -1
NEAR = {"great": ("good", "odd", "awful"), "good": ("great", "bad"), "film": ("grim",)}


class SteepVictim(VectorVictim):
    """A linear victim: the loss pulls at each word along (1, 2), times the chance of the other class."""

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int], *, of: str = "loss"
    ) -> list[WordVectors]:
        found = []
        for text, label in zip(map(mark, texts), labels, strict=True):
            (scores,) = self._scores([self.vectors(text.value).sum(axis=0)])
            pull = (scores - np.eye(len(self.labels))[label]) @ self.outputs
            rows = np.tile(pull.astype(np.float32), (len(text.words), 1))
            found.append(WordVectors(text.words, np.ones(len(text.words), dtype=np.int64), rows))
        return found

    def embeddings(self, texts: Sequence[Readable], /) -> list[WordEmbeddings]:
        found = []
        for text in map(mark, texts):
            rows = np.array([VECTORS.get(word.lower(), (0, 0)) for word in text.words], dtype=np.float32)
            pieces: Counts = np.ones(len(rows), dtype=np.int64)
            found.append(WordEmbeddings(text.words, pieces, rows.reshape(-1, 2), ()))
        return found

    def mixed(self, items: Sequence[Mixture], /) -> list[Mixed]:
        return [self._mixed(item) for item in items]

    def _mixed(self, item: Mixture) -> Mixed:
        total = self.vectors(item.text.value).sum(axis=0)
        places: list[Numbers] = []
        for own, options, weights in zip(item.text.words, item.options, item.weights, strict=True):
            rows = np.array([VECTORS.get(word.lower(), (0, 0)) for word in (own, *options)], dtype=np.float32)
            total = total - rows[0] + np.array(weights) @ rows
            places.append(rows)
        outputs = self.outputs @ total
        others = [i for i in range(len(self.labels)) if i != item.label]
        best = max(others, key=lambda i: float(outputs[i]))
        slope = (self.outputs[item.label] - self.outputs[best]).astype(np.float32)
        return Mixed(float(outputs[item.label] - outputs[best]), tuple(rows @ slope for rows in places))


def hotflip(**settings: Any) -> Recipe:
    goal = settings.pop("goal", None)
    given: dict[str, Any] = {"candidates": Neighbours(), "constraints": ()} | settings
    return toy_recipe(HotFlip(**given), goal)


def run(recipe: Recipe, text: str | Mapping[str, str], victim: VectorVictim | None = None) -> Result:
    victim = victim or SteepVictim()
    oracles = open_inside(recipe.oracles(), victim) | {"victim": oracle_for(victim)}
    oracles["neighbours:counter-fitted"] = neighbours(NEAR)
    return attack_one(recipe, oracles, text, 1)


def test_the_flip_worth_most_is_tried_first() -> None:
    # 4 + 0 = 4. great -> awful is worth 9, film -> grim 6, great -> odd 5, great -> good 1.
    victim = SteepVictim()
    result = run(hotflip(pairs=1), "great film", victim)
    assert (result.outcome, result.perturbed) == ("success", "awful film")
    assert victim.asked == ["great film", "awful film"]
    assert dict(result.facts) == {"gradients": 1.0}
    # Asked about the text whose score was paid for, a gradient is no further query.
    assert result.queries == 2


def test_a_beam_goes_on_from_what_did_not_flip() -> None:
    # 12 -> 3 by one "awful", -3 by two words at the least (awful, awful: -6).
    result = run(hotflip(pairs=3), "great great great")
    assert result.outcome == "success"
    assert sorted(result.perturbed.split()) == ["awful", "awful", "great"]
    short = run(hotflip(pairs=3, most=1), "great great great")
    assert (short.outcome, dict(short.facts)) == ("failure", {"gradients": 1.0})
    # Each of the texts in the beam gets a gradient of its own.
    narrow = run(hotflip(pairs=3, width=2), "great great great")
    assert dict(narrow.facts) == {"gradients": 3.0}


def test_all_words_of_the_victim_come_without_candidates() -> None:
    # grim (-6) is the lowest of all: in the place of great it is worth 10, in that of good 9.
    result = run(hotflip(candidates=None, pairs=1), "great good film")
    # 7 - 10 = -3
    assert (result.outcome, result.perturbed) == ("success", "grim good film")


def test_a_target_is_pulled_up() -> None:
    # Output of class 2 is (-1, 1): great -1, odd 4, awful -1, good 0, film 0, grim -3; of class 1 as before.
    # great -> odd: margin of class 2 from -1 - 4 = -5 to 4 - -1 = 5.
    result = run(hotflip(goal=Targeted(2), pairs=1), "great film", SteepVictim(classes=3))
    assert (result.outcome, result.perturbed) == ("success", "odd film")


def test_pairs_and_texts_without_options() -> None:
    result = run(hotflip(), {"premise": "great", "hypothesis": "great film"})
    assert result.fields[0] == ("premise", "great")
    assert result.outcome == "success"
    bare = run(hotflip(), "superb")  # no vector, no neighbour: the victim is undecided
    assert (bare.outcome, bare.queries) == ("skipped", 1)
    none = run(hotflip(stopwords="english"), "the great of it", SteepVictim(weights=(1, 0.1)))
    assert none.edits[0].before == "great"


def test_it_says_what_it_needs() -> None:
    for name in ("hotflip", "hotflip@textattack"):
        recipe = load_recipe(name)
        assert "gradients" in recipe.requires()
        assert recipe_from_json(recipe.to_json()) == recipe
        with pytest.raises(CapabilityError, match="needs gradients"):
            require_capabilities(recipe, FakeVictim())
    blind = VectorVictim(capabilities=["probabilities"])
    for opened in (open_flips, open_mixture):
        with pytest.raises(CapabilityError, match="vectors"):
            opened(blind, "")


def test_the_flip_oracle_leaves_out_the_word_itself_and_breaks_ties_by_place() -> None:
    oracle = open_flips(SteepVictim(), "")
    (flips,) = oracle([Pull(mark("grim grim"), 1, False, 2)])
    assert [tuple(flip) for flip in flips] == [(0, "awful"), (1, "awful")]
    (up,) = oracle([Pull(mark("grim film"), 1, True, 1)])
    assert [tuple(flip) for flip in up] == [(0, "great")]


# -- GBDA ------------------------------------------------------------------------------------------


class Liking:
    """What a language model says: the log-probability of a text is the sum of its words'."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self.words = words
        self.batch_size = 100

    def __call__(self, texts: Sequence[Any]) -> list[Score]:
        return [Score(sum(self.words.get(word, 0.0) for word in text.split()), 1) for text in texts]


def gbda(**settings: Any) -> Recipe:
    goal = settings.pop("goal", None)
    free: dict[str, Any] = {"candidates": Neighbours(), "likelihood": 0.0, "similarity": 0.0}
    return toy_recipe(Gbda(**free | {"steps": 40, "blends": 2, "draws": 20} | settings), goal)


def blended(
    recipe: Recipe,
    text: str | Mapping[str, str],
    *,
    victim: VectorVictim | None = None,
    likes: Mapping[str, float] | None = None,
    table: Mapping[str, Sequence[str]] | None = None,
    budget: int | None = None,
    batch: int | None = None,
) -> Result:
    victim = victim or SteepVictim()
    oracles: dict[str, Any] = open_inside(recipe.oracles(), victim) | {"victim": oracle_for(victim)}
    oracles["neighbours:counter-fitted"] = neighbours(table or NEAR)
    oracles["fluency:trigram"] = Liking(likes or {})
    oracles["vectors:counter-fitted"] = Answering(lambda word: np.array(VECTORS.get(word, (1, 0))))
    if batch:
        oracles["mixture"].batch_size = oracles["neighbours:counter-fitted"].batch_size = batch
        victim.batch_size = batch
    return attack_one(recipe, oracles, text, 1, budget=budget)


def test_without_prices_the_distribution_moves_to_the_lowest_word_of_each_place() -> None:
    # great -> awful (-5), good -> bad (-1), film -> grim (-6): 4 + 3 + 0 = 7 becomes -12.
    result = blended(gbda(margin=100.0, undo=False, draws=1, rate=1.0), "great good film")
    assert (result.outcome, result.perturbed) == ("success", "awful bad grim")
    assert dict(result.facts) == {"gradients": 80.0}
    assert result.queries == 2  # blends are no texts


def test_what_a_success_does_not_need_is_taken_back() -> None:
    result = blended(gbda(margin=100.0, draws=1, rate=1.0), "great good film")
    # Without "bad": -8, with one change: awful -2, grim 1.
    assert (result.outcome, result.perturbed) == ("success", "awful good film")


def test_a_margin_that_is_reached_pulls_no_more() -> None:
    # A margin of -5 is enough: the third word is left where it is more often than not.
    table = {"great": ("awful",), "good": ("bad",), "film": ("grim",)}
    far = blended(gbda(margin=100.0, undo=False, draws=1), "great good film", table=table)
    near = blended(gbda(margin=0.0, undo=False, steps=200), "great good film", table=table)
    assert len(near.edits) <= len(far.edits)
    assert near.outcome == "success"


def test_a_price_keeps_a_word_out() -> None:
    # The language model finds "awful" out of the question; "odd" (-1) with "grim" (-6) does it too.
    table = {"great": ("awful", "odd"), "film": ("grim",)}
    free = blended(gbda(margin=100.0, undo=False, draws=1, rate=1.0), "great film", table=table)
    assert free.perturbed == "awful grim"
    kept = blended(
        gbda(margin=100.0, undo=False, draws=1, rate=1.0, likelihood=1.0),
        "great film",
        table=table,
        likes={"awful": -50.0},
    )
    assert kept.perturbed == "odd grim"
    # 1 - cosine of (2, 1) and (-1, -2) is 1.8: a thousandfold of it outweighs any margin.
    close = blended(
        gbda(margin=100.0, undo=False, draws=1, rate=1.0, similarity=1000.0),
        "great film",
        table={"great": ("good", "awful")},
    )
    assert (close.outcome, close.edits) == ("failure", ())


def test_a_target_is_led_to() -> None:
    result = blended(
        gbda(goal=Targeted(2), draws=1, undo=False, rate=1.0), "great film", victim=SteepVictim(classes=3)
    )
    assert (result.outcome, result.perturbed.split()[0]) == ("success", "odd")


def test_blends_are_the_examples_own_in_any_batch_and_a_budget_bounds_them() -> None:
    text = "great good film great"
    first = blended(gbda(), text)
    assert first == blended(gbda(), text, batch=1) == blended(gbda(), text, batch=3)
    short = blended(gbda(), text, budget=9)
    assert dict(short.facts)["gradients"] == 8.0
    assert short.queries <= 9
    pair = blended(gbda(), {"premise": "great", "hypothesis": "great film"})
    assert pair.fields[0] == ("premise", "great")


def test_nothing_to_choose_from() -> None:
    result = blended(gbda(), "great film", table={"other": ("word",)})
    assert (result.outcome, result.queries, dict(result.facts)) == ("failure", 1, {"gradients": 0.0})


def test_the_victims_own_words_are_candidates() -> None:
    # Of all words "grim" (-6) and "awful" (-5) come first.
    result = blended(gbda(candidates=OwnWords(most=2), draws=1, undo=False, rate=1.0), "great film")
    assert result.outcome == "success"
    assert set(result.perturbed.split()) <= {"grim", "awful", "film"}


# -- triggers --------------------------------------------------------------------------------------


def rows(*strings: str) -> list[Text]:
    return [Text(string) for string in strings]


POSITIVE = rows("good film", "great film", "good", "great good film", "great", "good odd film")


def test_a_trigger_is_the_words_that_lower_the_class_most() -> None:
    settings = TriggerSettings(words=2, held_out=0.5, first="film")
    learned = TriggerLearner(SteepVictim(), 1, settings).learn(POSITIVE)
    # grim (-6) is the lowest of all; twice it turns every text below 12.
    assert learned == Trigger(("grim", "grim"), 3, 3)
    assert learned == TriggerLearner(SteepVictim(), 1, settings).learn(POSITIVE)


def test_a_trigger_may_lead_to_a_class_and_a_beam_keeps_several() -> None:
    settings = TriggerSettings(words=1, held_out=0.0, first="film", beam=3)
    victim = SteepVictim(classes=3)
    learned = TriggerLearner(victim, 1, settings, target=2).learn(POSITIVE[:2])
    assert learned.words == ("odd",)  # 4 - -1 = 5 for class 2 above class 1, more than any other word
    assert (learned.rows, learned.flipped) == (0, 0)


def test_a_trigger_needs_gradients_and_rows_that_are_right() -> None:
    with pytest.raises(CapabilityError, match="gives no gradients"):
        TriggerLearner(FakeVictim(), 1, TriggerSettings())
    with pytest.raises(DataError, match="no row of the class 'yes'"):
        TriggerLearner(SteepVictim(), 1, TriggerSettings()).learn(rows("awful", "grim film"))


def test_the_attack_puts_the_trigger_before_the_text_and_asks_once(tmp_path: Path) -> None:
    path = tmp_path / "trigger.json"
    Triggers(("no", "yes"), {"yes": Trigger(("grim", "odd"), 3, 2)}).write(path)
    assert Triggers.read(path).against["yes"] == Trigger(("grim", "odd"), 3, 2)
    recipe = with_setting(load_recipe("uat"), "search.trigger", str(path))
    assert list(recipe.files()) == [str(path)]
    victim = VectorVictim(capabilities=["probabilities"])  # gradients are for learning only
    asked: dict[str, Any] = open_inside(recipe.oracles(), victim) | {"victim": oracle_for(victim)}
    result = attack_one(recipe, asked, "Great, a good film.", 1)
    assert (result.perturbed, result.queries) == ("grim odd Great, a good film.", 2)
    assert result.outcome == "abstained"  # 4 + 3 - 6 - 1 = 0
    assert attack_one(recipe, asked, "great film", 1).outcome == "success"
    other = attack_one(recipe, asked, "awful film", 0)
    assert (other.outcome, other.note) == ("failure", "the file has no trigger against this class")
    pair = attack_one(recipe, asked, {"premise": "film", "hypothesis": "great"}, 1)
    assert pair.perturbed == "grim odd great"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "was not written by"),
        (
            '{"kind": "unfooled triggers", "labels": ["no", "yes"], "triggers": {}}',
            "no classes or no triggers",
        ),
        ('{"kind": "unfooled triggers", "labels": ["no"], "triggers": {"yes": {}}}', "no classes or no"),
        ('{"kind": "unfooled triggers", "labels": ["no"], "triggers": {"no": {"words": [1]}}}', "no words"),
        (
            '{"kind": "unfooled triggers", "labels": ["no"], '
            '"triggers": {"no": {"words": ["a"], "rows": -1}}}',
            "odd counts",
        ),
        (
            '{"kind": "unfooled triggers", "labels": ["a", "b"], "triggers": {"a": {"words": ["x"]}}}',
            "but those of vectors are no, yes",
        ),
    ],
)
def test_a_bad_trigger_file_is_told(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "trigger.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ResourceError, match=told):
        open_triggers(VectorVictim(), str(path))


# -- FD and GEO ------------------------------------------------------------------------------------


def along(text: str, words: Sequence[str], *, up: bool = False) -> tuple[int | None, ...]:
    (found,) = open_signs(SteepVictim(), "")([Along(mark(text), 1, up, tuple(words))])
    return tuple(found)


def test_steps_from_word_to_word_are_compared_with_the_gradient_by_their_signs() -> None:
    # Class 1 falls along (-, -). great is (2, 1): to good (-, 0), bad (-, -), awful (-, -), odd (-, 0).
    assert along("great", ["good", "bad", "awful", "odd"]) == (1, 0, 0, 1)
    assert along("great", ["good", "bad"], up=True) == (3, 4)
    assert along("great", ["Bad", "unheard"]) == (0, None)


def fd(**settings: Any) -> Recipe:
    return toy_recipe(SignSwaps(**{"candidates": Neighbours()} | settings))


def test_fd_takes_the_synonym_that_follows_the_signs_whatever_it_does() -> None:
    # great -> good (1), odd (1), awful (0): the only word with synonyms, so it is drawn whatever the draw is.
    result = run(fd(), "great the")
    assert (result.outcome, result.perturbed, result.queries) == ("success", "awful the", 2)
    # One round changes one word: 12 - 9 = 3.
    walk = run(fd(rounds=1), "great great great")
    assert (walk.outcome, sorted(walk.perturbed.split())) == ("failure", ["awful", "great", "great"])
    assert walk.queries == 2


def test_fd_draws_until_a_word_has_synonyms_and_ends_where_none_has() -> None:
    for key in range(5):
        oracles = open_inside(fd().oracles(), victim := SteepVictim()) | {"victim": oracle_for(victim)}
        oracles["neighbours:counter-fitted"] = neighbours({"great": ("awful",)})
        result = attack_one(fd(), oracles, "superb odd great", 1, key=key)
        assert result.perturbed == "superb odd awful"
        none = attack_one(fd(), oracles, "superb good film", 1, key=key)
        assert (none.outcome, none.queries, none.perturbed) == ("failure", 1, "superb good film")


class HeadVictim(SteepVictim):
    """The sentence's vector is the sum of the words'; the head is what it is multiplied with."""

    def head_weights(self) -> Numbers:
        return self.outputs.astype(np.float32)


def geo(**settings: Any) -> Recipe:
    given: dict[str, Any] = {"candidates": Neighbours(), "importance": Masking()} | settings
    return toy_recipe(ToBoundary(**given))


def test_the_nearest_boundary_is_the_one_with_the_shortest_way_there() -> None:
    weights = np.array([(0, 0), (3, 4), (3, 1)], dtype=np.float32)
    # To class 0: 1.0 / 5 = 0.2 along -(3, 4)/5; to class 2: 0.9 / 3 = 0.3 along (0, -1).
    logits = np.array([0.0, 1.0, 0.1])
    probs = np.exp(logits) / np.exp(logits).sum()
    assert to_boundary(weights, probs, 1) == pytest.approx([-0.6, -0.8])
    assert to_boundary(weights, probs, 1, target=2) == pytest.approx([0.0, -1.0])


def test_geo_moves_the_most_salient_word_along_the_normal() -> None:
    # The normal is -(1, 2)/sqrt(5). great (4): good 1, odd 5, awful 9 of it: awful. 4 + 3 - 9 = -2.
    victim = HeadVictim()
    result = run(geo(), "great good", victim)
    assert (result.outcome, result.perturbed) == ("success", "awful good")
    # The text, two probes, three synonyms of great: their vectors are paid for, the score of the best is not.
    assert result.queries == 1 + 2 + 3
    # A word whose synonyms all lie the other way stays: good -> great.
    table = {"good": ("great",), "film": ("bad",)}
    oracles = open_inside(geo().oracles(), victim) | {"victim": oracle_for(victim)}
    oracles["neighbours:counter-fitted"] = neighbours(table)
    stays = attack_one(geo(), oracles, "good film", 1)
    assert (stays.outcome, stays.perturbed) == ("failure", "good bad")


def test_geo_stops_after_so_many_words() -> None:
    one = run(geo(most=1), "great great great", HeadVictim())
    assert (one.outcome, sorted(one.perturbed.split())) == ("failure", ["awful", "great", "great"])
    two = run(geo(most=2), "great great great", HeadVictim())
    assert (two.outcome, sorted(two.perturbed.split())) == ("success", ["awful", "awful", "great"])
    pair = run(geo(), {"premise": "great", "hypothesis": "great film"}, HeadVictim())
    assert (pair.outcome, pair.fields[0]) == ("success", ("premise", "great"))


def test_fd_and_geo_say_what_they_need() -> None:
    for name, need in (("fd", "gradients"), ("geo", "embeddings")):
        recipe = load_recipe(name)
        assert need in recipe.requires()
        assert recipe_from_json(recipe.to_json()) == recipe
        with pytest.raises(CapabilityError, match=f"needs {need}"):
            require_capabilities(recipe, FakeVictim())
    with pytest.raises(CapabilityError, match="layer that decides"):
        open_head(SteepVictim(), "")
