"""Words that may stand for each other, spellings of one word, and where words lie between bad and good."""

from __future__ import annotations

import numpy as np
import pytest

from unfooled.language.alike import interchangeable
from unfooled.language.english import English
from unfooled.language.oracles import AlikeOracle, PolarityOracle
from unfooled.language.polarity import WordLookup
from unfooled.language.spellings import other_spellings
from unfooled.resources.inflections import InflectionTable

TABLE = InflectionTable(
    {
        ("film", "noun"): {"NNS": ("films",)},
        ("movie", "noun"): {"NNS": ("movies",)},
        ("show", "verb"): {"VBZ": ("shows",), "VBD": ("showed",)},
        ("reveal", "verb"): {"VBZ": ("reveals",), "VBD": ("revealed",)},
    }
)


@pytest.mark.parametrize(
    ("word", "tag", "others"),
    [
        ("films", "NNS", {"movies"}),
        ("Shows", "VBZ", {"reveals"}),
        ("showed", "VBD", {"revealed"}),
        ("but", "CC", {"yet"}),
        ("that", "WDT", {"which"}),
        ("humor", "NN", {"humour"}),
    ],
)
def test_partners_take_the_form_of_the_word(word: str, tag: str, others: set[str]) -> None:
    assert others <= set(interchangeable(word, tag, TABLE))


def test_a_word_is_interchangeable_as_its_part_of_speech_only() -> None:
    assert "movie" not in interchangeable("film", "VB", TABLE)
    assert "that" not in interchangeable("which", "WDT", TABLE)  # the other way is another matter
    assert "which" not in interchangeable("that", "IN", TABLE)  # proof that it works


@pytest.mark.parametrize(
    ("word", "other"),
    [("color", "colour"), ("colourful", "colorful"), ("Mesmerizing", "mesmerising"), ("cliched", "clichéd")],
)
def test_spellings_of_one_word(word: str, other: str) -> None:
    assert other in other_spellings(word)


@pytest.mark.parametrize("word", ["humorous", "honorary", "size", "surprise", "actor", "film"])
def test_words_of_one_spelling(word: str) -> None:
    assert other_spellings(word) == ()


def test_the_oracle_answers_in_the_form_of_the_place() -> None:
    class AllPlural:
        def tag_all(self, sentences: object) -> list[list[str]]:
            return [["NNS", "NNS"]]

    english = English(AllPlural(), None, TABLE)  # type: ignore[arg-type]
    ((found),) = AlikeOracle(english)([("old films", 1)])
    assert "movies" in found


def test_words_lie_between_bad_and_good() -> None:
    words = ["good", "bad", "fine", "table"]
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], dtype=np.float32)
    oracle = PolarityOracle(WordLookup({word: i for i, word in enumerate(words)}, rows))
    assert oracle(["Good", "bad", "fine", "table", "unheard-of"]) == [1.0, -1.0, 0.8, 0.0, 0.0]
