"""Limits on edits, computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from toys import Answering, tags
from unfooled.attacks.parts import limits
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.goals import Untargeted
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.language.oracles import EditEffect
from unfooled.language.relations import Related
from unfooled.resources.fluency import Score
from unfooled.resources.vectors import WordVectorOracle
from unfooled.text import Text


def passing(
    limit: Any,
    now: Text,
    words: Sequence[str],
    index: int = 0,
    oracles: Mapping[str, Any] | None = None,
    *,
    inserted: bool = False,
) -> list[str]:
    """The words that may stand at `index`, or be put before it."""
    a = Attempt(now.root, 1, Untargeted(), key=0, seed=0)
    scored = Scored(now, np.array([0.5, 0.5]), 0.5, False)
    options = [
        NextText(now.insert(index, word) if inserted else now.replace(index, word), index, inserted=inserted)
        for word in words
    ]
    (finished,) = Engine[list[NextText]](oracles or {}).run([(0, limit.allow(a, scored, options))])
    assert finished.value is not None, finished.error
    return [option.word for option in finished.value]


def test_a_share_of_the_words_is_rounded_up() -> None:
    text = Text("a b c d e f g h i j k")  # 20 % of 11 is 2.2: three words
    two = text.replace(1, "x").replace(2, "y")
    assert passing(limits.MaxWords(share=0.2), two, ["z"]) == ["z"]
    assert passing(limits.MaxWords(share=0.2), two.replace(3, "w"), ["z"]) == []
    assert passing(limits.MaxWords(share=0.2), two.replace(3, "w"), ["z"], 3) == ["z"], (
        "no word more than before"
    )
    assert passing(limits.MaxWords(share=0.1, floor=4), two.replace(3, "w"), ["z"]) == ["z"]
    assert passing(limits.MaxWords(number=2), two, ["z"]) == []
    assert passing(limits.MaxWords(share=1.0, number=3), two, ["z"], inserted=True) == ["z"]
    with pytest.raises(ValueError, match="give a share"):
        limits.MaxWords()


def test_which_words_may_change() -> None:
    text = Text("so fine").replace(1, "good")
    assert passing(limits.MinLetters(4), text, ["z"]) == []
    assert passing(limits.MinLetters(4), text, ["z"], 1) == ["z"]
    assert passing(limits.OncePerPlace(), text, ["z"]) == ["z"]
    assert passing(limits.OncePerPlace(), text, ["z"], 1) == []
    tagger = {"tag:perceptron-tagger": tags({"so": "ADV", "good": "ADJ"})}
    assert passing(limits.OnlyTags(("ADJ",)), text, ["z"], 0, tagger) == []
    assert passing(limits.OnlyTags(("ADJ",)), text, ["z"], 1, tagger) == ["z"]
    assert passing(limits.OnlyTags(("ADJ",)), text, ["z"], 0, tagger, inserted=True) == ["z"]


def test_opposites_are_barred() -> None:
    def effects(item: Any) -> tuple[EditEffect, ...]:
        related = {"bad": Related("antonym", 0, 0)}
        return tuple(
            EditEffect("adj", frozenset(), 0, related.get(word, Related("synonym", 0, 0))) for word in item[2]
        )

    found = passing(
        limits.NoAntonyms(), Text("good"), ["bad", "fine"], 0, {"edit:wordnet": Answering(effects)}
    )
    assert found == ["fine"]


VECTORS = {"good": (1.0, 0.0), "fine": (0.8, 0.6), "odd": (0.0, 1.0), "nice": (1.0, 0.5)}
TABLE = {
    "vectors:counter-fitted": WordVectorOracle(list(VECTORS), np.array([*VECTORS.values()], dtype=np.float32))
}


def test_distance_is_a_cosine_or_squared() -> None:
    text = Text("Good film")
    # fine: 0.2² + 0.6² = 0.4, cosine 0.8; nice: 0.25, cosine 0.894; odd: 2, cosine 0; blah has no vector.
    words = ["fine", "nice", "odd", "blah"]
    assert passing(limits.WordDistance(0.4), text, words, 0, TABLE) == ["fine", "nice", "blah"]
    assert passing(limits.WordDistance(0.3), text, words, 0, TABLE) == ["nice", "blah"]
    assert passing(limits.WordDistance(0.85, "cosine"), text, words, 0, TABLE) == ["nice", "blah"]
    moved = text.replace(0, "Odd")
    # From odd, fine is 0.8² + 0.4² = 0.8 away; from the original it still is 0.4.
    assert passing(limits.WordDistance(0.4), moved, ["fine"], 0, TABLE) == []
    assert passing(limits.WordDistance(0.4, against="original"), moved, ["fine"], 0, TABLE) == ["fine"]


def test_the_mean_of_all_words_moves_little() -> None:
    text = Text("good blah good")
    # With one of two known words replaced the mean moves half the way: odd 2 / 4, fine 0.4 / 4.
    assert passing(limits.MeanVector(0.1), text, ["fine", "odd"], 0, TABLE) == ["fine"]
    assert passing(limits.MeanVector(0.5), text, ["fine", "odd"], 0, TABLE) == ["fine", "odd"]
    # Looked up as written, Good has no vector: then only the words in lower case count.
    assert passing(limits.MeanVector(0.1, cased=True), Text("good film good"), ["Odd"], 0, TABLE) == ["Odd"]


def fluency(table: Mapping[str, float]) -> dict[str, Answering]:
    return {"fluency:trigram": Answering(lambda text: Score(table[text], 1))}


def test_the_loss_of_the_new_word_after_those_before_it() -> None:
    text = Text("it is a fine film").replace(1, "was")
    model = fluency({"is a fine": -5.0, "is a good": -6.9, "is a grand": -7.0, "was a good": -3.0})
    # The original's words stand before it, and a loss of exactly 2 nats is refused.
    assert passing(limits.WordLoss(2.0), text, ["good", "grand"], 3, model) == ["good"]
    assert passing(limits.WordLoss(2.0), text, ["This"], 0, {}) == ["This"], (
        "nothing stands before the first word"
    )
    model = fluency({"was a fine": -5.0, "was a good": -8.0})
    assert passing(limits.WordLoss(2.0, against="current"), text, ["good"], 3, model) == []


def test_the_likeliest_words_stay_in_their_order() -> None:
    model = fluency({"so a": -3.0, "so b": -1.0, "so c": -2.0, "so d": -2.0})
    assert passing(limits.KeepLikeliest(2), Text("so x"), ["a", "b", "c", "d"], 1, model) == ["b", "c"]
    assert passing(limits.KeepLikeliest(4), Text("so x"), ["d", "a"], 1, {}) == ["d", "a"], "nothing is asked"
