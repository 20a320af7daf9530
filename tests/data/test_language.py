"""Which language texts are in."""

from __future__ import annotations

import pytest

from languages import TEXTS
from unfooled.data.language import language_of, main_script


@pytest.mark.parametrize("language", TEXTS)
def test_a_few_sentences_name_their_language(language: str) -> None:
    assert language_of(TEXTS[language]).name == language


def test_what_it_does_not_know_it_does_not_name() -> None:
    russian = language_of(["Этот фильм очень хороший, актёры отличные."])
    assert (russian.name, russian.script, str(russian)) == ("", "Cyrillic", "written in Cyrillic letters")
    assert language_of(["kwyjibo frobnicate blorp " * 10]).name == ""
    assert language_of(["great film"]).name == ""  # two words name nothing
    assert language_of(["", "123 !!!"]).script == ""


def test_the_script_of_a_word_is_that_of_most_of_its_letters() -> None:
    words = ["film", "Ａ１", "电影2", "фильm", "123", "ﾃﾚﾋﾞ"]
    assert [main_script(word) for word in words] == ["Latin", "Latin", "CJK", "Cyrillic", "", "Katakana"]


def test_a_mixture_is_named_by_what_most_of_it_is() -> None:
    mixed = language_of([*TEXTS["Chinese"], *TEXTS["English"] * 3])
    assert (mixed.name, mixed.share < 1.0) == ("English", True)
