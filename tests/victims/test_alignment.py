"""Words and tokens, compared with what the tokenizer itself says about each character."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_models import bytelevel, wordpiece, words
from unfooled.core.questions import Marked, mark
from unfooled.resources import store
from unfooled.text import Text
from unfooled.victims.torch.alignment import Alignment, align

pytest.importorskip("transformers")

CUT = 16  # tokens


@cache
def tokenizer(kind: str) -> Any:
    if kind == "minilm":
        from transformers import AutoTokenizer

        if not store.has("minilm"):
            pytest.skip("the minilm resource is not here; unfooled resources get minilm")
        return AutoTokenizer.from_pretrained(store.path("minilm"))
    if kind == "word-models":
        from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer

        return build_word_tokenizer(["the film isn't good", "don't the cafe"], min_count=1)
    made: dict[str, Callable[..., Any]] = {"wordpiece": wordpiece, "bytelevel": bytelevel, "words": words}
    return made[kind]() if kind in made else bytelevel(trim=False)


def tokenised(kind: str, text: Marked, cut: int = 0) -> tuple[Any, Alignment]:
    parts = (text.value,) if isinstance(text.value, str) else text.value
    limit: dict[str, Any] = {"truncation": True, "max_length": cut} if cut else {}
    encoded = tokenizer(kind)(
        *[[part] for part in parts], return_offsets_mapping=True, verbose=False, **limit
    )
    made = align(text.spans, encoded["offset_mapping"][0], encoded.sequence_ids(0), text.field)
    return encoded, made


def pieces_of(alignment: Alignment, word: int) -> list[int]:
    return [int(t) for t, w in zip(alignment.tokens, alignment.words, strict=True) if w == word]


# Accents, scripts, emoji with modifiers, joiners, contractions, mentions: whatever people type.
SNIPPETS = [
    "don't",
    "Café",
    "cafe\u0301",
    "naïve",
    "👍🏽",
    "👩‍👩‍👧",
    "日本語",
    "ﬁlm",
    "İstanbul",
    "STRASSE",
    "straße",
]
SNIPPETS += [
    "the",
    "films",
    "badly",
    "good",
    "a/b",
    "x_y",
    "@user",
    "#tag",
    "3.50",
    "\u200b",
    "\x00",
    "e-mail",
]
SNIPPETS += ["ὈΔΥΣΣΕΎΣ", "हिन्दी", "ไทย", "한국어", "...", "--", "’tis", "[SEP]", "</s>", "\u00ad", "ǅ"]
piece = st.one_of(st.sampled_from(SNIPPETS), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
gap = st.sampled_from([" ", " ", " ", "", "\n", "\t", "  ", "\u00a0", ", ", "! "])
strings = st.lists(st.tuples(gap, piece), max_size=12).map(lambda parts: "".join(a + b for a, b in parts))


@pytest.mark.parametrize(
    "kind", ["wordpiece", "bytelevel", "bytelevel-untrimmed", "words", "word-models", "minilm"]
)
@settings(max_examples=120, deadline=None)
@given(first=strings, second=st.none() | strings, field=st.sampled_from([0, 1]), cut=st.booleans())
def test_pieces_are_those_that_the_tokenizer_names(
    kind: str, first: str, second: str | None, field: int, cut: bool
) -> None:
    if second is None:
        text, field = Text(first), 0
    else:
        text = Text({"premise": first, "hypothesis": second}, edit=("premise", "hypothesis")[field])
    encoded, alignment = tokenised(kind, mark(text), CUT if cut else 0)
    fields, offsets = encoded.sequence_ids(0), encoded["offset_mapping"][0]
    assert alignment.length == len(encoded["input_ids"][0])
    assert alignment.pieces.tolist() == [len(pieces_of(alignment, i)) for i in range(len(text.words))]
    for index, (start, word) in enumerate(zip(text.starts, text.words, strict=True)):
        inside = range(start, start + len(word))
        # Slow and plain: every character of every token.
        expected = [
            token
            for token, (begin, end) in enumerate(offsets)
            if fields[token] == field and any(begin <= at < end for at in inside)
        ]
        assert pieces_of(alignment, index) == expected
        # The other way round, by the tokenizer's own look-up of a character.
        named = {encoded.char_to_token(0, at, sequence_index=field) for at in inside} - {None}
        assert named <= set(expected)
        assert bool(named) == bool(expected)


@settings(max_examples=60, deadline=None)
@given(string=strings)
def test_without_a_cut_only_dropped_characters_have_no_piece(string: str) -> None:
    text = Text(string)
    _, alignment = tokenised("bytelevel", mark(text))
    assert (alignment.pieces >= 1).all()  # bytes drop nothing
    assert alignment.tokens.tolist() == sorted(alignment.tokens.tolist())


def test_casing_punctuation_accents_and_emoji() -> None:
    encoded, alignment = tokenised("wordpiece", mark(Text("THE Café's badly-plot 👍🏽 Films!")))
    tokens = encoded.tokens(0)
    found = [[tokens[i] for i in pieces_of(alignment, word)] for word in range(len(alignment.pieces))]
    assert found == [["the"], ["cafe", "'", "[UNK]"], ["bad", "##ly", "-", "plot"], ["film", "##s"]]
    assert alignment.pieces.tolist() == [1, 3, 4, 2]


def test_words_behind_the_cut_and_words_that_are_dropped_have_no_pieces() -> None:
    _, alignment = tokenised("wordpiece", mark(Text("good " * 30)), CUT)
    assert alignment.pieces.tolist() == [1] * (CUT - 2) + [0] * (30 - CUT + 2)
    marked = Marked("good \x00\x01 bad", 0, ((0, 4), (5, 7), (8, 11)))
    _, alignment = tokenised("wordpiece", marked)
    assert alignment.pieces.tolist() == [1, 0, 1]


def test_a_token_over_two_words_is_a_piece_of_both() -> None:
    alignment = align([(0, 1), (2, 3), (4, 5)], [(0, 0), (0, 3), (4, 5)], [None, 0, 0], 0)
    assert alignment.pieces.tolist() == [1, 1, 1]
    values = np.array([[9.0], [2.0], [5.0]])
    assert alignment.total(values)[:, 0].tolist() == [2.0, 2.0, 5.0]


def test_sums_and_means_run_over_the_pieces() -> None:
    alignment = align([(0, 4), (5, 9), (9, 12)], [(0, 2), (2, 4), (5, 9)], [0, 0, 0], 0)
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert alignment.total(values)[0].tolist() == [[2, 4], [4, 5], [0, 0]]
    assert alignment.mean(values)[1].tolist() == [[7, 8], [10, 11], [0, 0]]
    assert alignment.mean(values).dtype == np.float32
    nothing = align([], [(0, 0), (0, 0)], [None, None], 0)
    assert nothing.mean(values[:, :2]).shape == (2, 0, 2)


def test_marks_know_the_words_of_an_edited_text() -> None:
    text = Text({"premise": "a plot", "hypothesis": "good film"}).replace(1, "f ! m").insert(0, "so so")
    marked = mark(text)
    assert marked == Marked(("a plot", "so so good f ! m"), 1, ((0, 5), (6, 10), (11, 16)))
    assert marked.words == text.words == ("so so", "good", "f ! m")
    assert mark(marked) is marked
    assert hash(marked) == hash(mark(text))
    assert mark("good film").words == ("good", "film")
    assert mark(("good film", "dull plot")).words == ("dull", "plot")
    assert mark("") == Marked("", 0, ())
