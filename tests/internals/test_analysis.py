"""What lies behind a run's numbers, against numbers computed by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis_runs import changed, write_run
from unfooled.data.dataset import Dataset
from unfooled.errors import CapabilityError, DataError, RunFileError, UserError, VictimError
from unfooled.internals import pairs as analysis_pairs
from unfooled.internals.analysis import analyse
from unfooled.internals.attention import Attention, compare_attention, shifts_of
from unfooled.internals.embeddings import gini, hoyer, relative_change, share_on
from unfooled.internals.pairs import pair_of, portions
from unfooled.internals.pca import principal, project
from unfooled.internals.theorem import (
    BoundCheck,
    HeadWeights,
    check_head,
    check_model,
    check_random,
    head_weights,
    mean_projection,
    on_sphere,
    worst_direction,
)
from unfooled.metrics.outcomes import outcomes
from unfooled.text import Text
from unfooled.victims.fake import load as load_fake
from unfooled.victims.torch.whitebox import AttentionMaps

# -- both sides of a result ------------------------------------------------------------------------------


def test_words_before_and_after_stand_side_by_side() -> None:
    text = Text("a fine, funny film at last").replace(1, "so so").delete(2).insert(4, "very")
    assert text.string == "a so so, film at very last"
    pair = pair_of(changed(text))
    assert pair.before.words == ("a", "fine", "funny", "film", "at", "last")
    assert pair.after.words == ("a", "so so", "film", "at", "very", "last")
    assert pair.shared == [(0, 0), (1, 1), (3, 2), (4, 3), (5, 5)]
    assert pair.edited == {1}


def test_a_pair_of_texts_keeps_the_field_that_is_not_edited() -> None:
    text = Text({"premise": "it rains", "hypothesis": "it is wet"}, edit="premise").replace(1, "pours")
    pair = pair_of(changed(text))
    assert pair.after.value == ("it pours", "it is wet")
    assert pair.after.field == 0
    assert pair.shared == [(0, 0), (1, 1)]


edit = st.tuples(
    st.sampled_from(["replace", "insert", "delete"]), st.integers(0, 8), st.sampled_from(["x", "a", "no no"])
)


@given(
    st.text(alphabet="ab .,-", max_size=20),
    st.lists(edit, max_size=6),
)
def test_any_edits_are_found_again(string: str, edits: list[tuple[str, int, str]]) -> None:
    text = Text(string)
    for kind, place, word in edits:
        n = len(text.words)
        if kind == "insert":
            text = text.insert(place % (n + 1), word)
        elif n:
            text = text.replace(place % n, word) if kind == "replace" else text.delete(place % n)
    pair = pair_of(changed(text))
    assert pair.after.words == text.words
    assert [start for start, _ in pair.after.spans] == text.starts
    # Of a deleted word and one inserted beside it, or the other way round, the words and places are the same.
    assert pair.origin == text.origin


def test_edits_that_do_not_fit_are_an_error() -> None:
    result = changed(Text("a fine film").replace(1, "poor"))
    damaged = type(result)(**{**_fields(result), "perturbed": "another text altogether"})
    with pytest.raises(RunFileError, match="example 0: its edits do not fit"):
        pair_of(damaged)


def _fields(result: Any) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__slots__}


def test_portions_hold_long_texts_one_by_one_and_short_ones_together() -> None:
    short = [pair_of(changed(Text("a fine film").replace(1, "poor"), key)) for key in range(5)]
    long = [pair_of(changed(Text("word " * 2000).replace(1, "poor"), key)) for key in range(2)]
    assert [len(portion) for portion in portions(short, 512)] == [5]
    assert [len(portion) for portion in portions(long, 512)] == [1, 1]
    assert [len(portion) for portion in portions(long, 32)] == [2]


# -- the run alone ---------------------------------------------------------------------------------------


def test_confusion_and_words_changed() -> None:
    edited = Text("a fine film").replace(1, "poor")
    results = [
        changed(edited, 0),
        changed(edited.replace(2, "movie"), 1),
        changed(edited.replace(2, "movie"), 2),
        changed(edited, 3, "failure"),
        changed(edited.root, 4, "skipped"),
        changed(edited, 5, "error"),
    ]
    confusion, words = outcomes(results, ("no", "yes"))
    assert confusion.before.tolist() == [[0, 0], [1, 4]]  # the skipped one was wrong from the start
    assert confusion.after.tolist() == [[0, 0], [4, 1]]
    assert confusion.n == 5
    assert words.counts == {1: 1, 2: 2}
    assert words.words.value == pytest.approx(5 / 3)
    assert words.share.value == pytest.approx(5 / 9)


# -- attention -------------------------------------------------------------------------------------------


def maps(tokens: str, word_of: list[int], words: tuple[str, ...], *layers: Any) -> AttentionMaps:
    pieces = np.bincount([word for word in word_of if word >= 0], minlength=len(words))
    arrays = tuple(np.array(layer, dtype=np.float32) for layer in layers)
    return AttentionMaps(tuple(tokens.split()), words, pieces, np.array(word_of, dtype=np.intp), arrays)


def test_attention_of_a_model_that_pools() -> None:
    pair = pair_of(changed(Text("this fine film").replace(1, "poor")))
    before = maps("this fine film", [0, 1, 2], ("this", "fine", "film"), [[[0.5, 0.3, 0.2]]])
    after = maps("this poor film", [0, 1, 2], ("this", "poor", "film"), [[[0.2, 0.3, 0.5]]])
    example = compare_attention(pair, before, after)
    (shift,) = shifts_of(example)
    assert shift.score == shift.words == shift.maps == pytest.approx(0.3)
    assert shift.unpaired_before == shift.unpaired_after == 0
    assert [(column.before, column.after, column.edited) for column in example.columns] == [
        ("this", "this", False),
        ("fine", "poor", True),
        ("film", "film", False),
    ]
    assert example.pools


def test_pieces_of_a_word_are_put_together() -> None:
    pair = pair_of(changed(Text("film").replace(0, "films")))
    before = maps("[CLS] film", [-1, 0], ("film",), [[[0.5, 0.5], [0.2, 0.8]]])
    after = maps(
        "[CLS] fil ##ms", [-1, 0, 0], ("films",), [[[0.6, 0.1, 0.3], [0.3, 0.3, 0.4], [0.1, 0.4, 0.5]]]
    )
    example = compare_attention(pair, before, after)
    # To the word: the sum of its pieces. From the word: the mean of its pieces.
    np.testing.assert_allclose(example.after[0].maps[0], [[0.6, 0.4], [0.2, 0.8]], atol=1e-6)
    # The score is the mean over the three query tokens.
    np.testing.assert_allclose(example.after[0].scores[0], [1.0 / 3, 2.0 / 3], atol=1e-6)
    np.testing.assert_allclose(example.before[0].scores[0], [0.35, 0.65], atol=1e-6)
    (shift,) = shifts_of(example)
    assert shift.score == pytest.approx(0.35 - 1 / 3, abs=1e-6)
    assert shift.maps == pytest.approx(0.05, abs=1e-6)  # 0.1 in the first row, 0 in the second
    assert shift.words == pytest.approx(0.0)  # one word has all of it


def test_an_inserted_word_is_left_out_and_its_attention_reported() -> None:
    pair = pair_of(changed(Text("fine film").insert(1, "very")))
    before = maps("fine film", [0, 1], ("fine", "film"), [[[0.5, 0.5]]])
    after = maps("fine very film", [0, 1, 2], ("fine", "very", "film"), [[[0.1, 0.6, 0.3]]])
    example = compare_attention(pair, before, after)
    (shift,) = shifts_of(example)
    assert shift.score == pytest.approx(0.25)  # ½·½ against ¼·¾
    assert shift.unpaired_before == 0
    assert shift.unpaired_after == pytest.approx(0.6)
    middle = example.columns[1]
    assert (middle.before, middle.after, middle.edited, middle.is_word) == (None, "very", True, True)
    assert math.isnan(example.before[0].scores[0, 1])


def test_tokens_between_words_are_matched_where_they_stand() -> None:
    text = Text("a , b , c").delete(1)
    pair = pair_of(changed(text))
    before = maps("[CLS] a , b , c", [-1, 0, -1, 1, -1, 2], ("a", "b", "c"), [[[1 / 6] * 6]])
    after = maps("[CLS] a , , c", [-1, 0, -1, -1, 1], ("a", "c"), [[[0.2] * 5]])
    example = compare_attention(pair, before, after)
    found = [(column.before, column.after) for column in example.columns]
    assert found == [("[CLS]", "[CLS]"), ("a", "a"), (",", ","), ("b", None), (",", ","), ("c", "c")]
    assert [column.edited for column in example.columns] == [False, False, False, True, False, False]


def test_words_behind_the_cut_have_no_column() -> None:
    pair = pair_of(changed(Text("a b c d").insert(0, "x")))
    before = maps("a b c", [0, 1, 2], ("a", "b", "c", "d"), [[[0.2, 0.3, 0.5]]])
    after = maps("x a b", [0, 1, 2], ("x", "a", "b", "c", "d"), [[[0.5, 0.2, 0.3]]])
    example = compare_attention(pair, before, after)
    assert [(column.before, column.after) for column in example.columns] == [
        (None, "x"),
        ("a", "a"),
        ("b", "b"),
        ("c", None),
    ]
    assert [column.edited for column in example.columns] == [True, False, False, False]  # cut is not edited
    assert shifts_of(example)[0].score == pytest.approx(0.0)


def test_the_mean_over_a_run_is_over_examples() -> None:
    pair = pair_of(changed(Text("this film").replace(1, "poor")))
    still = maps("this film", [0, 1], ("this", "film"), [[[0.5, 0.5]]], [[[0.5, 0.5]]])
    moved = maps("this poor", [0, 1], ("this", "poor"), [[[0.5, 0.5]]], [[[0.1, 0.9]]])
    shifts = shifts_of(compare_attention(pair, still, moved))
    attention = Attention(tuple(shifts), (), True)
    assert attention.mean("score", 1).value == 0
    assert attention.mean("score", 2).value == pytest.approx(0.4)
    assert attention.mean("score").value == pytest.approx(0.2)
    assert attention.mean("score").n == 1


# -- embeddings ------------------------------------------------------------------------------------------


def test_relative_change() -> None:
    assert relative_change(np.array([3.0, 4.0]), np.array([3.0, 1.0])) == pytest.approx(0.6)
    assert relative_change(np.array([[3.0], [4.0]]), np.array([[0.0], [4.0]])) == pytest.approx(0.6)
    assert math.isnan(relative_change(np.zeros(2), np.ones(2)))


@pytest.mark.parametrize(
    ("change", "sparse", "uneven"),
    [
        ([1, 0, 0, 0], 1.0, 0.75),
        ([2, 2, 2, 2], 0.0, 0.0),
        ([3, 4], (math.sqrt(2) - 7 / 5) / (math.sqrt(2) - 1), 1 / 14),
        ([1, 3], (math.sqrt(2) - 4 / math.sqrt(10)) / (math.sqrt(2) - 1), 0.25),
        ([0, 0], math.nan, math.nan),
        ([5], math.nan, math.nan),
        ([], math.nan, math.nan),
    ],
)
def test_sparsity(change: list[float], sparse: float, uneven: float) -> None:
    values = np.array(change, dtype=np.float64)
    assert hoyer(values) == pytest.approx(sparse, nan_ok=True)
    assert gini(values) == pytest.approx(uneven, nan_ok=True)


def test_share_on_the_edited_words() -> None:
    assert share_on(np.array([1.0, 3.0, 0.0]), np.array([False, True, False])) == 0.75
    assert math.isnan(share_on(np.array([1.0, 3.0]), np.array([False, False])))
    assert math.isnan(share_on(np.zeros(2), np.array([True, False])))


# -- Theorem 1 -------------------------------------------------------------------------------------------


def test_the_mean_projection_of_a_unit_vector() -> None:
    assert mean_projection(2) == pytest.approx(2 / math.pi)
    assert mean_projection(3) == pytest.approx(0.5)
    assert mean_projection(1000) == pytest.approx(math.sqrt(2 / (math.pi * 1000)), rel=1e-3)


def hand_check(head: HeadWeights, delta: float, samples: int) -> BoundCheck:
    rng = np.random.default_rng(0)
    return check_head(head, on_sphere(rng, samples, len(head.query)), delta=delta, rng=rng, source="model")


def test_the_bound_on_a_case_by_hand() -> None:
    """W^Q = 3·I and W^K = 2·I in the plane: C = 6, and |s' − s| is 6δ|cos| of an angle."""
    head = HeadWeights(1, 1, 3 * np.eye(2), 2 * np.eye(2), np.array([0.0, 0.0]))
    check = hand_check(head, 0.5, 20_000)
    assert check.constant == pytest.approx(6)
    assert check.bound == pytest.approx(6 * 0.5 / math.sqrt(2))
    assert check.exact == pytest.approx(3 * 2 / math.pi)
    assert check.random == pytest.approx(3 * 2 / math.pi, rel=0.01)
    assert check.worst == pytest.approx(3 * 2 / math.pi, rel=0.01)
    assert check.far == 0  # 2 × bound is beyond 6δ
    assert check.holds


def test_a_bias_is_outside_the_theorem() -> None:
    head = HeadWeights(1, 1, np.eye(2), np.eye(2), np.array([100.0, 100.0]))
    check = hand_check(head, 1.0, 2000)
    assert check.holds
    assert check.biased > 10 * check.bound


def test_the_worst_direction_is_stretched_most() -> None:
    query = np.array([[1.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    key = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    worst = worst_direction(HeadWeights(1, 1, query, key, np.zeros(2)))
    # W^Q (W^K)ᵀ sends the first unit vector to 5 times the second, the second to 2 times the first.
    np.testing.assert_allclose(np.abs(worst), [1, 0, 0], atol=1e-12)


def test_random_matrices_stay_below_the_bound_and_near_the_theory() -> None:
    checks = check_random((8, 64, 256), draws=3)
    assert [check.d for check in checks] == [8, 64, 256]
    assert all(check.holds for check in checks)
    for check in checks:
        assert check.random < check.worst <= check.bound
        assert check.worst == pytest.approx(check.exact, rel=0.05)
    assert check_random((8,), draws=3) == check_random((8,), draws=3)
    assert check_random((8,), draws=3, seed=1) != check_random((8,), draws=3)


# -- PCA -------------------------------------------------------------------------------------------------


def test_principal_components_by_hand() -> None:
    """Points on a cross: variance 2·9 along the first axis and 2·1 along the second, of 20 in all."""
    points, shares = principal(np.array([[3.0, 0, 5], [-3, 0, 5], [0, 1, 5], [0, -1, 5]]))
    np.testing.assert_allclose(points, [[3, 0], [-3, 0], [0, 1], [0, -1]], atol=1e-12)
    assert shares == pytest.approx((0.9, 0.1))


def test_classes_that_use_other_words_lie_apart() -> None:
    pytest.importorskip("sklearn")
    rows = [(f"good fine great word{i}", "yes") for i in range(20)]
    rows += [(f"bad poor dull word{i}", "no") for i in range(20)]
    data = Dataset.from_pairs([*rows, ("", "no")])
    found = project(data)
    assert found.nearest.value == 1.0
    assert found.largest == 0.5
    assert found.skipped == 1
    assert found.points.shape == (40, 2)
    assert 0 < found.explained[1] <= found.explained[0] < 1
    np.testing.assert_array_equal(found.points, project(data).points)


def test_the_sparse_way_gives_what_the_dense_one_gives() -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["good film", "good plot and film", "bad plot", "dull dull film", "a bad bad end", "good end"]
    found = project(Dataset.from_pairs([(text, i % 2) for i, text in enumerate(texts)]))
    dense, shares = principal(TfidfVectorizer().fit_transform(texts).toarray())
    np.testing.assert_allclose(np.abs(found.points), np.abs(dense), atol=1e-6)
    assert found.explained == pytest.approx(shares)


def test_what_cannot_be_projected_says_so() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(DataError, match="too few"):
        project(Dataset.from_pairs([("a film", 0), ("a plot", 1)]))
    with pytest.raises(DataError, match="no words"):
        project(Dataset.from_pairs([("!", 0), ("?", 1), (".", 0)]))
    data = Dataset.from_pairs([("a film", 0), ("a plot", 1), ("an end", 1)])
    with pytest.raises(CapabilityError, match="fake gives no sentence vectors"):
        project(data, features="sentence", victim=load_fake(""))


# -- a whole run, with real small models -----------------------------------------------------------------

LONG = "the film is good and the plot was not very bad " * 3  # more than the tiny models read
EDITS = [
    Text("the film is good").replace(3, "bad"),
    Text("a dull plot and a great film!").replace(1, "fun").delete(3),
    Text("the movie was fun").insert(3, "very"),
    Text(LONG).replace(1, "movie").replace(30, "great"),
    Text(LONG).replace(30, "great"),
]


def run_of(kind: str, path: Path, edits: list[Text] | None = None) -> tuple[Any, Path]:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_models import tiny

    victim = tiny(kind, classes=2)
    results = [changed(text, key) for key, text in enumerate(edits or EDITS)]
    return victim, write_run(path, victim, results)


@pytest.mark.parametrize(
    "kind", ["bert", "distilbert", "roberta", "gpt2", "lstm", "bilstm-attention", "word-cnn"]
)
def test_every_part_of_a_real_model(kind: str, tmp_path: Path) -> None:
    victim, run = run_of(kind, tmp_path / "run")
    found = analyse(run, victim=victim, only=("attention", "embeddings"), keys=[0, 3])
    embeddings = found.embeddings
    assert embeddings is not None
    assert found.looked_at == 5
    by_hand = victim.embeddings([EDITS[0].root, EDITS[0]])
    for layer, (before, after) in enumerate(zip(by_hand[0].layers, by_hand[1].layers, strict=True)):
        expected = np.linalg.norm(before.astype(float) - after, axis=1)
        np.testing.assert_allclose(embeddings.examples[0].l2[layer], expected, rtol=1e-5, atol=1e-7)
        moved = next(change for change in embeddings.changes if (change.key, change.layer) == (0, layer))
        assert moved.relative == pytest.approx(np.linalg.norm(expected) / np.linalg.norm(before), rel=1e-5)
    first = next(change for change in embeddings.changes if (change.key, change.layer) == (0, 0))
    assert first.on_edited == pytest.approx(1.0)  # what the first layer reads differs in one word alone
    z = victim.sentence_vectors([EDITS[0].root.value, EDITS[0].value]).astype(float)
    key, relative = embeddings.sentences[0]
    assert key == 0
    assert relative == pytest.approx(float(np.linalg.norm(z[0] - z[1]) / np.linalg.norm(z[0])), rel=1e-5)
    assert len(embeddings.examples[1].before) < len(EDITS[3].words)  # the rest is behind the cut
    assert embeddings.unread == 1  # the last text is changed only where the model does not read
    assert [change.relative for change in embeddings.changes if change.key == 4] == [0.0] * embeddings.layers
    _check_attention(kind, victim, found)


def _check_attention(kind: str, victim: Any, found: Any) -> None:
    if "attention" not in victim.capabilities:
        assert found.attention is None
        assert f"no attention pictures: tiny-{kind} gives none" in found.notes
        return
    example = found.attention.examples[0]
    columns = [at for at, column in enumerate(example.columns) if column.is_word]
    for layer in range(found.attention.layers):
        first, then = victim.attention([EDITS[0].root, EDITS[0]], layer=layer)
        np.testing.assert_allclose(example.before[layer].scores.mean(axis=0)[columns], first, atol=1e-6)
        np.testing.assert_allclose(example.after[layer].scores.mean(axis=0)[columns], then, atol=1e-6)
    unread = [shift for shift in found.attention.shifts if shift.key == 4]
    assert [shift.score for shift in unread] == [0.0] * found.attention.layers
    moved = [shift for shift in found.attention.shifts if shift.key == 0]
    assert all(0 < shift.words <= 1 for shift in moved)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "gpt2"])
def test_heads_are_cut_out_of_the_weights_as_the_model_does(kind: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_models import tiny

    victim = tiny(kind)
    heads = head_weights(victim)
    assert [(head.layer, head.head) for head in heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    states = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)
    modules = dict(victim.model.named_modules())
    for head in heads:
        names = [name for name in modules if name.endswith((".query", ".q_lin", ".c_attn"))]
        layer = modules[names[head.layer - 1]]
        with torch.no_grad():
            queries = layer(torch.tensor(states)).numpy()[:, :16].reshape(3, 2, 8)
        np.testing.assert_allclose(states @ head.query + head.bias, queries[:, head.head - 1], atol=1e-4)
        assert head.key.shape == (16, 8)
    checks = check_model(heads)
    assert len(checks) == 4
    assert all(check.holds for check in checks)


def test_query_heads_may_share_a_key() -> None:
    class Model:
        class config:
            num_attention_heads = 4

        def state_dict(self) -> dict[str, Any]:
            torch = pytest.importorskip("torch")
            return {
                "layers.0.self_attn.q_proj.weight": torch.arange(8 * 3).reshape(8, 3),
                "layers.0.self_attn.k_proj.weight": torch.arange(4 * 3).reshape(4, 3),
            }

    class Holder:
        model = Model()

    heads = head_weights(Holder())
    assert [head.key[0].tolist() for head in heads] == [[0, 3], [0, 3], [6, 9], [6, 9]]
    assert [head.query[0].tolist() for head in heads] == [[0, 3], [6, 9], [12, 15], [18, 21]]
    assert heads[0].bias.tolist() == [0, 0]


def test_victims_without_matrices_have_no_heads() -> None:
    assert head_weights(load_fake("")) == []
    pytest.importorskip("torch")
    from tiny_models import tiny

    assert head_weights(tiny("bilstm-attention")) == []


def test_pairs_of_texts(tmp_path: Path) -> None:
    text = Text({"premise": "the film", "hypothesis": "is very good"}).replace(2, "bad")
    victim, run = run_of("bert", tmp_path / "run", [text])
    found = analyse(run, victim=victim, only=("attention", "embeddings"))
    assert found.embeddings is not None
    assert found.attention is not None
    assert found.embeddings.examples[0].before == ("is", "very", "good")
    labels = [column.before for column in found.attention.examples[0].columns]
    assert labels == ["[CLS]", "the", "film", "[SEP]", "is", "very", "good", "[SEP]"]
    assert [column.is_word for column in found.attention.examples[0].columns].count(True) == 3


def test_portions_and_limits_change_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, run = run_of("bert", tmp_path / "run")
    whole = analyse(run, victim=victim, only=("attention", "embeddings"))
    monkeypatch.setattr(analysis_pairs, "_MOST", 1)
    single = analyse(run, victim=victim, only=("attention", "embeddings"))
    assert whole.attention is not None
    assert single.attention is not None
    for shift, other in zip(whole.attention.shifts, single.attention.shifts, strict=True):
        assert shift.score == pytest.approx(other.score, abs=1e-6)
    few = analyse(run, victim=victim, only=("embeddings",), limit=2, keys=[4])
    assert few.embeddings is not None
    assert few.looked_at == 2
    assert {change.key for change in few.embeddings.changes} == {0, 1}
    assert [example.key for example in few.embeddings.examples] == [4]  # chosen, so drawn, but not counted


def test_a_run_without_model_and_data_says_what_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_fake(""), [changed(EDITS[0])])
    found = analyse(run)
    assert found.confusion is not None
    assert found.words is not None
    assert found.attention is None
    assert found.embeddings is None
    assert found.pca is None
    assert found.theorem is not None
    assert len(found.notes) == 6
    assert "--model" in found.notes[0]
    assert "--data" in found.notes[-1]


def test_a_victim_that_shows_nothing_and_a_run_without_success(tmp_path: Path) -> None:
    fake = load_fake("")
    run = write_run(tmp_path / "run", fake, [changed(EDITS[0], outcome="failure")])
    found = analyse(run, victim=fake, only=("words", "attention"))
    assert found.notes == (
        "no histogram of changed words: no attack was successful",
        "no attention pictures: fake gives none",
    )


def test_mistakes_are_told(tmp_path: Path) -> None:
    fake = load_fake("")
    run = write_run(tmp_path / "run", fake, [changed(EDITS[0]), changed(EDITS[1].root, 1, "skipped")])
    with pytest.raises(UserError, match="no part 'colour'"):
        analyse(run, only=("colour",))
    with pytest.raises(UserError, match="need the model"):
        analyse(run, keys=[0])
    with pytest.raises(UserError, match=r"example 1 was not changed \(skipped\)\n  → .* such as 0"):
        analyse(run, victim=fake, keys=[1])
    with pytest.raises(UserError, match="example 7 was not attacked"):
        analyse(run, victim=fake, keys=[7])
    other = write_run(tmp_path / "other", load_fake("", labels=["positive", "negative"]), [changed(EDITS[0])])
    with pytest.raises(VictimError, match="not the model that was attacked"):
        analyse(other, victim=fake)
    empty = write_run(tmp_path / "empty", fake, [])
    with pytest.raises(RunFileError, match="no finished example"):
        analyse(empty)
