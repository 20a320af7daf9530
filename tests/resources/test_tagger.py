"""The tagger: exact tags, and options scored together equal to tagging every edited text anew."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unfooled.errors import OracleError, ResourceError
from unfooled.resources import perceptron, store
from unfooled.resources.tagger import UNIVERSAL, Item, Tagger, load_tagger, open_tagger

TAGS = ["DT", "JJ", "NN", "RB", "VBZ"]
_LINES = """
    the a film films movie is was seems good great terrible terribly quickly run running runs ran watch
    watched not never n't 's , . -- ( ) " $ ! ? 1994 12 2nd 3.5 well-made -lrb- I He Paris it love loves
    loving hate of in with to and but very silly tedious xyzzy naïve café ü ... a-b
"""
SOME_WORDS = _LINES.split()


def small_weights() -> perceptron.Weights:
    """Random weights over features of a few words: many ties, every template used."""
    rng = np.random.default_rng(5)
    words = ["the", "dog", "runs", "fast", "!HYPHEN", "!YEAR", "-START-", "-START2-", "-END-", "-END2-"]
    tags = [*TAGS, *perceptron.START_TAGS]
    names = ["bias", *(f"i suffix {w[-3:]}" for w in words), *(f"i pref1 {w[0]}" for w in words)]
    names += [f"{at} {what} {w if what == 'word' else w[-3:]}" for w in words for at, what in CONTEXT]
    names += [f"i-1 tag {t}" for t in tags] + [f"i-2 tag {t}" for t in tags]
    names += [f"i tag+i-2 tag {a} {b}" for a in tags for b in tags]
    names += [f"i-1 tag+i word {t} {w}" for t in tags for w in words[:4]]
    weights = {
        name: {tag: round(float(rng.integers(-3, 4)) / 10 + 0.001, 3) for tag in TAGS if rng.random() < 0.7}
        for name in dict.fromkeys(names)
    }
    return perceptron.from_dicts(weights, {"the": "DT"}, TAGS)


CONTEXT = [
    ("i", "word"),
    ("i-1", "word"),
    ("i-1", "suffix"),
    ("i-2", "word"),
    ("i+1", "word"),
    ("i+1", "suffix"),
]


def tag_by_the_book(weights: perceptron.Weights, words: list[str]) -> list[str]:
    """The algorithm as published, one feature at a time, in floats."""
    context = ["-START-", "-START2-", *map(perceptron.normal, words), "-END-", "-END2-"]
    prev, prev2 = perceptron.START_TAGS
    found = []
    for i, word in enumerate(words):
        names = perceptron.features(word, context[i : i + 5], prev, prev2)
        best = weights.tagdict.get(word, perceptron.float_best(weights, names))
        prev, prev2 = weights.tags[best], prev
        found.append(prev)
    return found


small_words = st.lists(
    st.sampled_from(["the", "dog", "runs", "fast", "a-b", "1999", "7", "", "Dogs"]), min_size=1
)


@given(small_words)
def test_tags_are_those_of_the_published_algorithm(words: list[str]) -> None:
    weights = small_weights()
    assert Tagger(weights).tag(words) == tag_by_the_book(weights, words)


def test_a_tie_goes_to_the_tag_that_sorts_last() -> None:
    weights = perceptron.from_dicts({"bias": {"NN": 0.1, "VBZ": 0.1}}, {}, TAGS)
    assert Tagger(weights).tag(["x"]) == ["VBZ"]


def test_normal_forms() -> None:
    given_ = ["Good", "well-made", "-lrb-", "1994", "19945", "3rd", "", "-"]
    assert [perceptron.normal(word) for word in given_] == [
        *("good", "!HYPHEN", "-lrb-", "!YEAR", "!DIGITS", "!DIGITS", "", "-")
    ]


def test_arrays_are_read_while_their_pickle_stays_and_made_anew_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[Path] = []

    def counted(path: Path) -> perceptron.Weights:
        converted.append(path)
        return read_pickle(path)

    read_pickle = perceptron.read_pickle
    monkeypatch.setattr(perceptron, "read_pickle", counted)
    source, arrays = tmp_path / perceptron.PICKLE, tmp_path / perceptron.ARRAYS
    source.write_bytes(pickle.dumps(({"bias": {"NN": 0.1}}, {}, set(TAGS)), protocol=2))
    first, again = perceptron.load(tmp_path), perceptron.load(tmp_path)
    assert len(converted) == 1
    assert np.array_equal(first.vector("bias"), again.vector("bias"))
    source.write_bytes(pickle.dumps(({"bias": {"NN": 0.7}}, {}, set(TAGS)), protocol=2))
    other = perceptron.load(tmp_path)
    assert len(converted) == 2
    assert other.vector("bias").max() == 700
    arrays.write_bytes(arrays.read_bytes()[:100])  # torn
    assert perceptron.load(tmp_path).vector("bias").max() == 700
    assert perceptron.load(tmp_path).vector("bias").max() == 700
    assert len(converted) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([perceptron.PICKLE, perceptron.ARRAYS])


def test_a_pickle_that_is_more_than_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / perceptron.PICKLE).write_bytes(pickle.dumps(Path("x")))
    with pytest.raises(ResourceError, match="not plain data"):
        perceptron.load(tmp_path)


def test_weights_are_converted_once_and_come_back_equal(tmp_path: Path) -> None:
    content = ({"bias": {"NN": 0.123, "VB": -1.5}}, {"the": "NN"}, {"NN", "VB"})
    (tmp_path / perceptron.PICKLE).write_bytes(pickle.dumps(content, protocol=2))
    first = perceptron.load(tmp_path)
    (tmp_path / perceptron.PICKLE).unlink()
    again = perceptron.load(tmp_path)
    assert (again.tags, again.rows, again.tagdict) == (first.tags, first.rows, first.tagdict)
    assert again.table.tolist() == first.table.tolist() == [[0, 0], [-1500, 123]]


def test_a_position_outside_is_an_error() -> None:
    with pytest.raises(OracleError, match="position 3"):
        Tagger(small_weights()).options([(("a", "b"), 3, ())])


def test_forgetting_words_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = small_weights()
    items: list[Item] = [((f"w{i}", "dog", "runs"), 1, ("fast", f"o{i}")) for i in range(40)]
    expected = Tagger(weights).options(items)
    monkeypatch.setattr("unfooled.resources.tagger._KEPT_WORDS", 10)
    tagger = Tagger(weights)
    assert [tagger.options([item])[0] for item in items] == expected


needs_weights = pytest.mark.skipif(
    not store.has("perceptron-tagger"), reason="needs: unfooled resources get perceptron-tagger"
)
word = st.sampled_from(SOME_WORDS)
item = st.tuples(st.lists(word, min_size=1, max_size=12), st.integers(0, 11), st.lists(word, max_size=8)).map(
    lambda drawn: (tuple(drawn[0]), drawn[1] % len(drawn[0]), tuple(drawn[2]))
)


@needs_weights
@settings(max_examples=150, deadline=None)
@given(st.lists(item, min_size=1, max_size=4))
def test_options_equal_tagging_the_whole_edited_text(items: list[Item]) -> None:
    tagger = load_tagger()
    for (words, index, options), found in zip(items, open_tagger("")(items), strict=True):
        texts = [[*words[:index], option, *words[index + 1 :]] for option in (words[index], *options)]
        assert found == tuple(UNIVERSAL.get(tagger.tag(text)[index], "X") for text in texts)


@needs_weights
def test_real_weights_follow_the_published_algorithm() -> None:
    weights = perceptron.load(store.path("perceptron-tagger"))
    rng = np.random.default_rng(0)
    sentences = [rng.choice(SOME_WORDS, size=9).tolist() for _ in range(60)]
    expected = [tag_by_the_book(weights, words) for words in sentences]
    assert load_tagger().tag_all(sentences) == expected
    assert [load_tagger().tag(words) for words in sentences[:10]] == expected[:10]


@needs_weights
def test_a_plain_sentence() -> None:
    words = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "."]
    assert load_tagger().tag(words) == ["DT", "JJ", "NN", "NN", "VBZ", "IN", "DT", "JJ", "NN", "."]
    assert open_tagger("")([(tuple(words), 4, ("dog", "slowly"))]) == [("VERB", "NOUN", "ADV")]


@needs_weights
def test_nothing_to_tag() -> None:
    assert load_tagger().tag([]) == []
    assert open_tagger("")([]) == []
    assert open_tagger("")([(("film",), 0, ())]) == [("NOUN",)]


def test_an_unknown_tagger_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="no tagger called 'nothing'"):
        open_tagger("nothing")
    with pytest.raises(ResourceError, match="holds no tagger") as caught:
        open_tagger(str(tmp_path))
    assert perceptron.PICKLE in caught.value.remedy
