"""Scikit-learn pipelines: files, labels, scores, and the shortcut that must give the same numbers."""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")
pytest.importorskip("skops")

from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from skops.io import dump, load

from unfooled.errors import VictimError
from unfooled.victims.checks import check_victim
from unfooled.victims.loading import load_victim
from unfooled.victims.preflight import preflight
from unfooled.victims.sklearn import bag_of_words as bagofwords
from unfooled.victims.sklearn.content_digest import stable_digest
from unfooled.victims.sklearn.pipeline import SklearnVictim
from unfooled.victims.sklearn.plain_skops import NotPlainError, read_plain

SENTENCES = [
    ("a great film with a wonderful cast", "pos"),
    ("the best movie of the year, truly moving. I loved it", "pos"),
    ("good fun and a clever, witty script", "pos"),
    ("naïve but charming; été à la plage", "pos"),
    ("a dull film with a terrible cast", "neg"),
    ("the worst movie of the year. it isn't even funny", "neg"),
    ("bad, boring and a lazy script. don't go", "neg"),
    ("an awful mess that nobody needs", "neg"),
]
X = [text for text, _ in SENTENCES]
Y = [label for _, label in SENTENCES]
THREE = ["pos", "meh", "pos", "meh", "neg", "neg", "meh", "neg"]


def fitted(*steps: Any, y: list[Any] | None = None) -> Any:
    return make_pipeline(*steps).fit(X, Y if y is None else y)


FAST: dict[str, Any] = {
    "tfidf": fitted(TfidfVectorizer(), LogisticRegression()),
    "count": fitted(CountVectorizer(), MultinomialNB()),
    "count and tfidf": fitted(CountVectorizer(), TfidfTransformer(), LogisticRegression()),
    "pairs": fitted(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()),
    "pairs, pruned": fitted(CountVectorizer(ngram_range=(1, 2), max_features=25), LogisticRegression()),
    "stop words": fitted(TfidfVectorizer(stop_words="english", ngram_range=(1, 2)), LogisticRegression()),
    "accents": fitted(TfidfVectorizer(strip_accents="unicode", sublinear_tf=True), LogisticRegression()),
    "binary": fitted(CountVectorizer(binary=True, dtype=np.float32), LogisticRegression()),
    "cased, short": fitted(
        TfidfVectorizer(lowercase=False, token_pattern=r"(?u)\b\w+\b"), LogisticRegression()
    ),
    "no norm": fitted(TfidfVectorizer(norm=None, use_idf=False), LogisticRegression()),
    "fixed vocabulary": fitted(CountVectorizer(vocabulary=["film", "great", "dull"]), LogisticRegression()),
}
ORDINARY: dict[str, Any] = {
    "characters": fitted(TfidfVectorizer(analyzer="char_wb"), LogisticRegression()),
    "own tokenizer": fitted(TfidfVectorizer(tokenizer=str.split, token_pattern=None), LogisticRegression()),
    "own preprocessor": fitted(TfidfVectorizer(preprocessor=str.upper), LogisticRegression()),
    "own pattern": fitted(TfidfVectorizer(token_pattern=r"\S+ ?"), LogisticRegression()),
    "ascii": fitted(TfidfVectorizer(strip_accents="ascii"), LogisticRegression()),
    "triples": fitted(TfidfVectorizer(ngram_range=(1, 3)), LogisticRegression()),
    "hashing": fitted(HashingVectorizer(n_features=64), LogisticRegression()),
}

# Words of the vocabulary, in any case and between any spaces and marks, and any other text.
WORDS = [word for text in X for word in text.replace(",", " ").replace(".", " ").split()]
GLUE = st.sampled_from(
    [" ", "  ", ". ", ", ", ".", "-", "'", "\n", "\t", "\x85", "\xa0", "\u2028", "\u3000", "_"]
)
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(str.upper),
    st.sampled_from(
        ["ΟΔΟΣ", "ΟΔΟΣ.", "ﬁlm", "İt", "e\u0301te\u0301", "\u0301", "a", "¨", "x" * 200, "don't", "🙂"]
    ),
    st.text(max_size=8),
)
GENERATED = st.lists(st.tuples(PIECES, GLUE), max_size=14).map(lambda parts: "".join(a + b for a, b in parts))


@pytest.mark.parametrize("name", FAST)
def test_the_shortcut_is_taken(name: str) -> None:
    assert SklearnVictim(FAST[name]).words is not None
    assert SklearnVictim(FAST[name], fast=False).words is None


@pytest.mark.parametrize("name", ORDINARY)
def test_the_shortcut_is_left_alone_where_it_would_not_be_exact(name: str) -> None:
    victim = SklearnVictim(ORDINARY[name])
    assert victim.words is None
    assert np.array_equal(victim.predict(X), ORDINARY[name].predict_proba(X))


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(GENERATED, min_size=1, max_size=6))
def test_the_shortcut_gives_the_pipelines_numbers(name: str, texts: list[str]) -> None:
    pipeline = FAST[name]
    victim = VICTIMS.setdefault(name, SklearnVictim(pipeline))
    assert victim.words is not None
    ours, theirs = victim.words.matrix(texts), pipeline.steps[0][1].transform(texts)
    assert (ours != theirs).nnz == 0
    assert np.abs(victim.predict(texts) - pipeline.predict_proba(texts)).max() <= 1e-12


VICTIMS: dict[str, SklearnVictim] = {}  # kept over examples, so that the memory of words is tested too


def test_the_shortcut_forgets_before_it_fills_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bagofwords, "_MOST_BYTES", 10_000)
    pipeline = FAST["pairs"]
    victim = SklearnVictim(pipeline)
    assert victim.words is not None
    for start in range(0, 400, 40):
        texts = [f"a great film number {i} of w{i * 7}. truly moving" for i in range(start, start + 40)]
        assert np.array_equal(victim.predict(texts), pipeline.predict_proba(texts))
        assert len(victim.words.sentences) <= 90
        assert len(victim.words.sentences.words) <= 60


def test_a_row_of_20_000_words_and_an_empty_one() -> None:
    texts = [" ".join(WORDS * 400), "", "🙂 🙂"]
    assert len(texts[0].split()) > 18_000
    victim = SklearnVictim(FAST["tfidf"])
    assert np.array_equal(victim.predict(texts), FAST["tfidf"].predict_proba(texts))


# -- scores and labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pipeline", "score", "hard"),
    [
        (FAST["tfidf"], "predict_proba", False),
        (fitted(TfidfVectorizer(), LogisticRegression(), y=THREE), "predict_proba", False),
        (fitted(TfidfVectorizer(), LinearSVC()), "sigmoid(decision_function)", False),
        (fitted(TfidfVectorizer(), LinearSVC(), y=THREE), "softmax(decision_function)", False),
        (fitted(TfidfVectorizer(), Perceptron()), "sigmoid(decision_function)", False),
    ],
)
def test_scores_of_all_kinds(pipeline: Any, score: str, hard: bool) -> None:
    victim = SklearnVictim(pipeline)
    assert victim.score == score
    assert victim.capabilities == {"probabilities"}
    predicted = [victim.labels[i] for i in victim.predict(X).argmax(axis=1)]
    assert predicted == pipeline.predict(X).tolist()
    check_victim(victim, X)


class Decided(NearestCentroid):  # type: ignore[misc]
    """Gives a class and nothing else."""

    @property
    def decision_function(self) -> Any:
        raise AttributeError("decision_function")

    predict_proba = decision_function


def test_decided_labels_only() -> None:
    pipeline = fitted(TfidfVectorizer(), Decided(), y=THREE)
    victim = SklearnVictim(pipeline)
    assert victim.score == "predict"
    assert victim.capabilities == frozenset()
    assert [victim.labels[i] for i in victim.predict(X).argmax(axis=1)] == pipeline.predict(X).tolist()
    check_victim(victim, X)


@pytest.mark.parametrize(
    ("classes", "given_labels", "expected"),
    [
        ([1, 1, 1, 1, 0, 0, 0, 0], ("neg", "pos"), ("neg", "pos")),
        ([1, 1, 1, 1, 0, 0, 0, 0], None, ("0", "1")),
        ([True] * 4 + [False] * 4, ("neg", "pos"), ("neg", "pos")),
        ([1.0] * 4 + [0.0] * 4, ("neg", "pos"), ("neg", "pos")),
        (Y, ("pos", "neg"), ("pos", "neg")),
    ],
)
def test_labels(classes: list[Any], given_labels: tuple[str, ...] | None, expected: tuple[str, ...]) -> None:
    victim = SklearnVictim(fitted(TfidfVectorizer(), LogisticRegression(), y=classes), labels=given_labels)
    assert victim.labels == expected
    good = expected.index("pos") if "pos" in expected else 1
    assert victim.predict(["a wonderful film"])[0].argmax() == good


def test_pairs_are_joined_by_a_line_break_or_passed_on() -> None:
    victim = SklearnVictim(FAST["tfidf"])
    assert np.array_equal(victim.predict([("great", "film")]), victim.predict(["great\nfilm"]))
    check_victim(victim, [("great", "film"), ("dull", "film"), ("", "x")])
    pipeline = make_pipeline(CountVectorizer(analyzer=list), LogisticRegression())
    pipeline.fit([("great", "film"), ("dull", "mess")], [1, 0])
    passed = SklearnVictim(pipeline, pairs="pass")
    assert np.array_equal(passed.predict([("great", "mess")]), pipeline.predict_proba([("great", "mess")]))


# -- files ---------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.skops"
    dump(FAST["tfidf"], path)
    return path


def test_a_skops_file(saved: Path) -> None:
    victim = load_victim(str(saved))
    assert isinstance(victim, SklearnVictim)
    assert victim.name == "reviews"
    assert np.array_equal(victim.predict(X), FAST["tfidf"].predict_proba(X))
    again = load_victim(victim.spec, **victim.options)
    copy = pickle.loads(pickle.dumps(victim))
    assert victim.fingerprint() == again.fingerprint() == copy.fingerprint()
    assert np.array_equal(copy.predict(X), victim.predict(X))
    dump(FAST["pairs"], saved)
    assert load_victim(f"sklearn:{saved}").fingerprint() != victim.fingerprint()


PLAIN: dict[str, Any] = {
    **FAST,
    "characters": ORDINARY["characters"],
    "hashing": ORDINARY["hashing"],
    "numbers as classes": fitted(TfidfVectorizer(), LinearSVC(), y=[1, 1, 1, 1, 0, 0, 0, 0]),
    "objects as classes": make_pipeline(TfidfVectorizer(), LinearSVC()).fit(X, np.array(Y, dtype=object)),
    "stochastic": fitted(TfidfVectorizer(), SGDClassifier(random_state=0)),
    "stochastic, log": fitted(TfidfVectorizer(), SGDClassifier(loss="log_loss", random_state=0)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_short_way_through_a_skops_file_leads_to_the_same_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    dump(PLAIN[name], path)
    ours, theirs = read_plain(path), load(path)
    assert stable_digest(ours) == stable_digest(theirs)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_the_short_way_leaves_to_skops_what_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    for strange in (fitted(TfidfVectorizer(), Perceptron()), ORDINARY["own tokenizer"], {1.5: "a"}):
        dump(strange, path)
        with pytest.raises(NotPlainError):
            read_plain(path)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(NotPlainError):
        read_plain(path)


@pytest.mark.parametrize(
    ("loader", "module", "name"),
    [
        ("ObjectNode", "subprocess", "Popen"),
        ("ObjectNode", "sklearn.pipeline", "os"),
        ("LossNode", "os", "system"),
        ("TypeNode", "builtins", "eval"),
        ("TypeNode", "numpy", "load"),
        ("NdArrayNode", "numpy", "fromfile"),
        ("FunctionNode", "os", "system"),
        ("DictNode", "os", "environ"),
        ("ListNode", "collections", "deque"),
        ("TupleNode", "os", "stat_result"),
    ],
)
def test_the_short_way_looks_nothing_else_up(loader: str, module: str, name: str, tmp_path: Path) -> None:
    plain = {"__class__": "dict", "__module__": "builtins", "__loader__": "JsonNode", "content": "{}"}
    schema: dict[str, Any] = {"__class__": name, "__module__": module, "__loader__": loader, "protocol": 2}
    schema |= {"type": "numpy", "file": "x.npy", "__reduce__": {"args": plain}, "content": plain}
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
        with archive.open("x.npy", "w") as file:
            np.save(file, np.zeros(3))
    with pytest.raises(NotPlainError, match=name if loader != "FunctionNode" else loader):
        read_plain(path)


def test_a_pickle_needs_trust(tmp_path: Path) -> None:
    import joblib  # type: ignore[import-untyped]

    for path in (tmp_path / "model.joblib", tmp_path / "model.pkl"):
        joblib.dump(FAST["tfidf"], path)
        with pytest.raises(VictimError, match="can run any code") as caught:
            load_victim(str(path))
        assert "--trust-pickle" in caught.value.remedy
        victim = load_victim(str(path), trust_pickle=True)
        assert np.array_equal(victim.predict(X), FAST["tfidf"].predict_proba(X))


def test_a_pickle_is_not_opened_without_trust(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    path = tmp_path / "trap.pkl"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(VictimError, match="can run any code"):
        load_victim(str(path))
    assert not (tmp_path / "sprung").exists()


def test_unknown_types_in_a_skops_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "strange.skops"
    dump(fitted(TfidfVectorizer(), Decided()), path)
    with pytest.raises(VictimError, match=r"not known to be harmless: .*Decided"):
        load_victim(str(path))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    torn = tmp_path / "torn.skops"
    torn.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(VictimError, match="cannot be read as a skops file"):
        load_victim(str(torn))
    torn.rename(torn.with_suffix(".pkl"))
    with pytest.raises(VictimError, match="cannot be unpickled"):
        load_victim(str(torn.with_suffix(".pkl")), trust_pickle=True)
    dump([1, 2], tmp_path / "list.skops")
    with pytest.raises(VictimError, match="holds a list, which cannot predict"):
        load_victim(str(tmp_path / "list.skops"))
    dump(make_pipeline(TfidfVectorizer(), LogisticRegression()), tmp_path / "unfitted.skops")
    with pytest.raises(VictimError, match="not fitted"):
        load_victim(str(tmp_path / "unfitted.skops"))
    with pytest.raises(VictimError, match="pairs=both is not known"):
        load_victim(str(tmp_path / "unfitted.skops"), pairs="both")


def test_a_pipeline_in_memory_has_the_same_fingerprint_in_every_process() -> None:
    code = (
        "from sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from unfooled.victims.sklearn.pipeline import SklearnVictim\n"
        "texts = ['good film', 'bad film', 'fine plot', 'dull plot'] * 3\n"
        "def fitted(c):\n"
        "    pipeline = make_pipeline(TfidfVectorizer(stop_words=['the']), LogisticRegression(C=c))\n"
        "    return SklearnVictim(pipeline.fit(texts, [1, 0, 1, 0] * 3))\n"
        "first = fitted(1.0)\n"
        "first.predict(['the good film'])\n"
        "print(first.fingerprint(), fitted(2.0).fingerprint())\n"
    )
    command = [sys.executable, "-c", code]
    outputs = {
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
    first, second = outputs.pop().split()
    assert first != second


def test_the_fingerprint_follows_what_was_fitted() -> None:
    def fingerprint(pipeline: Any) -> str:
        return SklearnVictim(pipeline).fingerprint()

    pipeline = FAST["stop words"]
    plain = fingerprint(pipeline)
    copy = pickle.loads(pickle.dumps(pipeline))
    assert fingerprint(copy) == plain
    copy.steps[0][1]._stop_words_id = 12345
    copy.steps[1][1].n_jobs = 2
    assert fingerprint(copy) == plain
    copy.steps[1][1].coef_[0, 0] += 1e-12
    assert fingerprint(copy) != plain
    vocabulary = pickle.loads(pickle.dumps(pipeline))
    words = vocabulary.steps[0][1].vocabulary_
    first, second = list(words)[:2]
    words[first], words[second] = words[second], words[first]
    assert fingerprint(vocabulary) != plain


def test_states_of_all_kinds_have_stable_digests() -> None:
    def cut(length: int) -> Any:
        return lambda text: text.split()[:length]

    assert stable_digest(cut(1)) == stable_digest(cut(1))
    assert stable_digest(cut(1)) != stable_digest(cut(2))  # the same name, another closure
    assert stable_digest({"b": 1, "a": {3, 4}}) == stable_digest({"a": {4, 3}, "b": 1})
    assert stable_digest(["a", "b"]) != stable_digest(["ab"])
    # The gaps between the fields of a record hold whatever was in memory.
    gaps = np.dtype([("flag", "u1"), ("value", "f8")], align=True)
    low, high = (np.frombuffer(bytes([byte]) * 32, dtype=gaps).copy() for byte in (0, 255))
    for records in (low, high):
        records["flag"], records["value"] = 1, 2.0
    assert low.tobytes() != high.tobytes()
    assert stable_digest(low) == stable_digest(high)
    matrix = csr_matrix([[0.0, 1.0], [2.0, 3.0]])
    before = stable_digest(matrix)
    assert matrix.has_sorted_indices  # remembered in the matrix from here on
    assert stable_digest(matrix) == before != stable_digest(matrix * 2)
    circle: list[Any] = [1]
    circle.append(circle)
    assert stable_digest(circle) == stable_digest(pickle.loads(pickle.dumps(circle)))
    random = np.random.RandomState(1)
    before = stable_digest(random)
    random.rand()
    assert stable_digest(random) == before
    assert stable_digest(threading.Lock()) == stable_digest(threading.Lock())


def test_margins_are_not_called_probabilities() -> None:
    texts, labels = ["a great film", "a dull film"] * 10, [1, 0] * 10
    victim = SklearnVictim(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, labels))
    lines = {check.name: check.message for check in preflight(victim, texts, labels).checks}
    assert lines["answers"].startswith("sigmoid(decision_function): distances from the decision boundary")
    assert "no calibrated probabilities" in lines["answers"]
    assert lines["capabilities"] == "scores (no probabilities)"


def test_pipelines_for_several_labels_at_once_are_not_supported() -> None:
    texts, labels = ["a great film", "a dull film", "great and dull"] * 4, [[1, 0], [0, 1], [1, 1]] * 4
    for model in (
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(LinearSVC()),
        MultiOutputClassifier(LogisticRegression()),
        RidgeClassifier(),
        KNeighborsClassifier(2),
    ):
        pipeline = make_pipeline(TfidfVectorizer(), model).fit(texts, labels)
        with pytest.raises(VictimError, match="several labels at once") as caught:
            SklearnVictim(pipeline)
        assert "not supported yet" in caught.value.remedy


def packed(path: Path, *, claimed: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A skops file of some kilobytes with a hundred megabytes of blanks in its schema."""
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("schema.json", "w") as file:
        for _ in range(100):
            file.write(b" " * (1 << 20))
    if claimed is not None:  # the size in the list at the archive's end, which readers believe
        content = bytearray(path.read_bytes())
        struct.pack_into("<L", content, content.rindex(b"PK\x01\x02") + 24, claimed)
        path.write_bytes(content)
    return path


@pytest.mark.parametrize("claimed", [None, 100])
def test_a_skops_file_that_unpacks_to_far_more_than_it_is_is_not_unpacked(
    tmp_path: Path, claimed: int | None
) -> None:
    path = packed(tmp_path / "bomb.skops", claimed=claimed)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(VictimError, match="unpacked, far too many") as caught:
            load_victim(str(path))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert "without compression" in caught.value.remedy


def test_a_skops_file_packed_in_an_unusual_way_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VictimError, match="unusual way"):
        load_victim(str(packed(tmp_path / "bomb.skops", method=zipfile.ZIP_LZMA)))
