"""HotFlip on a victim whose gradients are constants: every gain is known by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from toys import attack_one, neighbours, toy_recipe
from unfooled.attacks.hotflip import HotFlip
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.goals import Targeted
from unfooled.core.questions import Counts, Mixed, Mixture, Numbers, Pull, Readable, WordVectors, mark
from unfooled.core.recipe import Recipe, load_recipe, recipe_from_json
from unfooled.core.result import Result
from unfooled.core.session import open_inside, require_capabilities
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import CapabilityError
from unfooled.victims.fake import FakeVictim
from unfooled.victims.torch.mixtures import open_flips, open_mixture
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
    return toy_recipe(HotFlip(**{"candidates": Neighbours(), "constraints": ()} | settings), goal)


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
