"""Neighbour tables, word vectors, and the counter-fitting that makes the default ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unfooled.errors import ResourceError
from unfooled.resources import counterfit, lexicon, store
from unfooled.resources.neighbours import NeighbourOracle, NeighbourTable, open_neighbours
from unfooled.resources.vectors import read_vectors, unit_rows
from unfooled.resources.wordnet import Synset, WordNet, read_wordnet

needs_table = pytest.mark.skipif(
    not store.has("counter-fitted"), reason="needs: unfooled resources get counter-fitted"
)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 5))
def test_the_table_holds_the_nearest_words_exactly(count: int, k: int, seed: int) -> None:
    # Few distinct small integers make many exact ties.
    matrix = np.random.default_rng(seed).integers(-1, 2, size=(count, 3)).astype(np.float32)
    words = [f"w{i}" for i in range(count)]
    table = NeighbourTable.from_vectors(words, matrix, k=k)
    cosines = np.round(unit_rows(matrix) @ unit_rows(matrix).T, 6)
    for i in range(count):
        others = sorted((j for j in range(count) if j != i), key=lambda j: (-cosines[i, j], j))[:k]
        assert table.ids[i].tolist() == others
        assert table.cosines[i].tolist() == [cosines[i, j] for j in others]


def test_look_up_is_bounded_by_count_and_cosine(tmp_path: Path) -> None:
    matrix = np.array([[1, 0], [0.9, 0.1], [0.5, 0.5], [0, 1]], dtype=np.float32)
    NeighbourTable.from_vectors(["a", "b", "c", "d"], matrix, k=3).save(tmp_path)
    oracle = open_neighbours(str(tmp_path))
    items = [("a", 3, -1.0), ("a", 3, 0.5), ("a", 1, 0.5), ("a", 0, 0.0), ("nowhere", 3, 0.0)]
    assert oracle(items) == [("b", "c", "d"), ("b", "c"), ("b",), (), ()]


def test_lists_of_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "lists.json"
    path.write_text(json.dumps({"good": ["fine", "good", "nice", "fine"], "odd": []}), encoding="utf-8")
    assert open_neighbours(str(path))([("good", 50, 0.5), ("odd", 50, 0.5), ("fine", 50, 0.5)]) == [
        *(("fine", "nice"), (), ())
    ]


@pytest.mark.parametrize(
    ("content", "cause"),
    [("[1]", "holds no lists"), ("{", "is not JSON"), ('{"a": "b"}', "neighbours of 'a'")],
)
def test_a_bad_json_file_is_explained(tmp_path: Path, content: str, cause: str) -> None:
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(ResourceError, match=cause):
        open_neighbours(str(tmp_path / "bad.json"))


def test_a_file_of_vectors_becomes_a_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\ngood 1 0\nfine 0.9 0.1\nbad -1 0\n", encoding="utf-8")
    assert open_neighbours(str(path))([("good", 5, 0.0)]) == [("fine",)]
    (made,) = (tmp_path / "cache").iterdir()
    before = made.stat().st_mtime_ns
    assert open_neighbours(str(path))([("good", 5, -1.0)]) == [("fine", "bad")]
    assert made.stat().st_mtime_ns == before


def test_vectors_without_header_and_compressed(tmp_path: Path) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(b"a 1 2\nb 3 4\na 5 6\n"))
    words, matrix = read_vectors(path)
    assert words == ["a", "b"]
    assert matrix.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("a 1 2\nb 3\n", "line 2: 1 numbers"),
        ("a 1 x\n", "line 1"),
        ("", "no vectors"),
        ("a nan 1\n", "finite"),
    ],
)
def test_bad_vectors_name_the_line(tmp_path: Path, content: str, cause: str) -> None:
    (tmp_path / "v.txt").write_text(content, encoding="utf-8")
    with pytest.raises(ResourceError, match=cause):
        read_vectors(tmp_path / "v.txt")


def tiny_net() -> WordNet:
    good, bad, great, awful = (("adj", i) for i in range(4))
    return WordNet(
        {
            good: Synset(("good", "fine"), ((bad, 1, 1),), (great,)),
            bad: Synset(("bad",), ((good, 1, 1),), (awful,)),
            great: Synset(("great", ""), (), (good,)),
            awful: Synset(("awful",), (), (bad,)),
        },
        {
            ("adj", w): [k]
            for w, k in (("good", good), ("fine", good), ("bad", bad), ("great", great), ("awful", awful))
        },
        {"adj": {"good": ["better", "best"], "bad": ["worse", "worst"]}},
    )


def test_pairs_of_a_lexicon() -> None:
    net = tiny_net()
    vocabulary = [
        "good",
        "fine",
        "finer",
        "bad",
        "great",
        "greatest",
        "awful",
        "better",
        "best",
        "worse",
        "worst",
    ]
    inflector = lexicon.Inflector(net, frozenset(vocabulary))
    assert {("good", "fine"), ("better", "finer")} <= set(lexicon.synonyms(net, inflector))
    opposite = set(lexicon.antonyms(net, inflector))
    assert {("good", "bad"), ("better", "worse"), ("best", "worst"), ("great", "awful")} <= opposite
    assert ("good", "great") in set(lexicon.similar(net))
    assert {("great", "greatest"), ("good", "best")} <= set(inflector.pairs())


@pytest.mark.parametrize(
    ("part", "base", "forms"),
    [
        ("noun", "story", {"s": "stories"}),
        ("noun", "watch", {"s": "watches"}),
        ("verb", "love", {"s": "loves", "ing": "loving", "ed": "loved"}),
        ("verb", "stop", {"s": "stops", "ing": "stopping", "ed": "stopped"}),
        ("verb", "try", {"s": "tries", "ing": "trying", "ed": "tried"}),
        ("adj", "funny", {"er": "funnier", "est": "funniest"}),
        ("adj", "big", {"er": "bigger", "est": "biggest"}),
        ("adv", "soon", {}),
    ],
)
def test_regular_forms(part: str, base: str, forms: dict[str, str]) -> None:
    known = frozenset([base, *forms.values()])
    assert lexicon.Inflector(WordNet({}, {}), known).forms(part, base) == {"": base, **forms}


def test_forces_pull_push_and_preserve() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=(6, 20)).astype(np.float32)
    base[1] = base[0] + 0.3 * base[1]  # antonyms that start near each other
    start = unit_rows(base)
    constraints = lexicon.Constraints(
        synonyms=np.array([[2, 3]]), antonyms=np.array([[0, 1]]), related=np.zeros((0, 2), dtype=np.intp)
    )
    near = NeighbourTable.from_vectors([str(i) for i in range(6)], start, k=2).ids
    fitted = counterfit.counter_fit(start, constraints, near)
    assert start[0] @ start[1] > 0.8
    assert fitted[0] @ fitted[1] < 0.3
    assert fitted[2] @ fitted[3] > start[2] @ start[3] + 0.2
    assert np.allclose(np.linalg.norm(fitted, axis=1), 1, atol=1e-5)
    assert np.array_equal(fitted, counterfit.counter_fit(start, constraints, near))


def test_rank_correlation(tmp_path: Path) -> None:
    path = tmp_path / "simlex.txt"
    path.write_text(
        "word1\tword2\tPOS\tscore\na\tb\tN\t9\na\tc\tN\t5\na\td\tN\t1\na\tz\tN\t1\n", encoding="utf-8"
    )
    vectors = unit_rows(np.array([[1, 0], [1, 0.1], [1, 1], [0, 1]], dtype=np.float32))
    assert counterfit.simlex_correlation(path, ["a", "b", "c", "d"], vectors) == pytest.approx(1.0)


@pytest.mark.skipif(not store.has("wordnet"), reason="needs: unfooled resources get wordnet")
def test_wordnet_is_read_as_it_is() -> None:
    net = read_wordnet(store.path("wordnet"))
    first = net.synsets[net.senses["adj", "good"][0]]
    assert first.words == ("good",)
    assert [net.synsets[key].words for key, _, _ in first.antonyms] == [("bad",)]
    assert net.irregular["verb"]["run"] == ["ran", "running"]
    assert len(net.synsets) == 117_659


@needs_table
def test_synonyms_are_near_and_antonyms_are_not() -> None:
    oracle = open_neighbours("counter-fitted")
    apart = [("good", "bad"), ("great", "terrible"), ("love", "hate"), ("best", "worst"), ("better", "worse")]
    near = [
        ("movie", "film"),
        ("terrible", "awful"),
        ("boring", "dull"),
        ("begin", "start"),
        ("stories", "tales"),
    ]
    found = {word: oracle([(word, 50, 0.5)])[0] for word, _ in apart + near}
    assert [pair for pair in apart if pair[1] in found[pair[0]]] == []
    assert [pair for pair in near if pair[1] not in found[pair[0]]] == []


@needs_table
def test_the_default_table_is_consistent_with_its_vectors() -> None:
    oracle = open_neighbours()
    assert isinstance(oracle, NeighbourOracle)
    table = oracle.table
    vectors = np.load(store.path("counter-fitted") / counterfit.VECTORS, mmap_mode="r")
    for row in (0, 1000, len(table.words) - 1):
        cosines = vectors[table.ids[row]] @ vectors[row]
        assert np.allclose(cosines, table.cosines[row], atol=1e-5)
        assert row not in table.ids[row]
        assert (np.diff(table.cosines[row]) <= 0).all()
