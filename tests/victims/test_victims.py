"""Fake and function victims, specs, labels, and the checks every victim goes through."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.core.victim_oracle import AsyncVictimOracle, VictimOracle, oracle_for, validate
from unfooled.errors import MissingExtraError, UnknownNameError, VictimError
from unfooled.plugins import registry
from unfooled.retrying import retry_after
from unfooled.victims.answers import find_labels, interpret
from unfooled.victims.checks import check_victim
from unfooled.victims.fake import WEIGHTS, FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.labels import settle_labels
from unfooled.victims.loading import load_victim, split_spec

TEXTS = ["A great film, truly wonderful.", "dull and tedious", "It is a film.", "", "good bad", "GREAT!"]


def score_by_length(texts: Sequence[TextValue]) -> Probabilities:
    """P(long), module-level so that it can be pickled."""
    lengths = np.array([len("".join(text)) for text in texts], dtype=np.float64)
    long = lengths / (10.0 + lengths)
    return np.stack([1.0 - long, long], axis=1)


# -- the fake ------------------------------------------------------------------------------------------


def test_the_fake_reads_english() -> None:
    victim = FakeVictim()
    scores = victim.predict(TEXTS)
    assert victim.labels == ("negative", "positive")
    assert scores[:, 1].round(3).tolist() == [0.98, 0.109, 0.475, 0.475, 0.475, 0.87]
    assert sum(weight > 0 for weight in WEIGHTS.values()) >= 60
    assert sum(weight < 0 for weight in WEIGHTS.values()) >= 60
    check_victim(victim, TEXTS)
    check_victim(victim, [("a great", "film"), ("a bad", "film"), ("x", "y")])


def test_the_fake_has_faults_to_order() -> None:
    victim = load_victim("fake", poison="arsenic", nan_on="hole")
    with pytest.raises(VictimError, match="chokes on 'arsenic'"):
        victim.predict(["fine", "with arsenic"])
    with pytest.raises(VictimError, match=r"1 of 2 rows contain NaN"):
        VictimOracle(victim)(["fine", "a hole"])
    assert len(VictimOracle(victim)(["fine"])) == 1


# -- functions -----------------------------------------------------------------------------------------

ROW_FORMS: list[tuple[str, Any, bool]] = [
    ("array", np.array([[0.25, 0.75], [1.0, 0.0]]), False),
    ("float32 array", np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32), False),
    ("lists", [[0.25, 0.75], [1.0, 0.0]], False),
    ("second class", [0.75, 0.0], False),
    ("column", np.array([[0.75], [0.0]]), False),
    ("by name", [{"no": 0.25, "yes": 0.75}, {"yes": 0.0, "no": 1.0}], False),
    (
        "label and score",
        [
            [{"label": "yes", "score": 0.75}, {"label": "no", "score": 0.25}],
            [{"label": "no", "score": 1}, {"label": "yes", "score": 0}],
        ],
        False,
    ),
    ("names", ["yes", "no"], True),
    ("numbers", np.array([1, 0]), True),
    ("truth", [True, False], True),
]


@pytest.mark.parametrize(("raw", "hard"), [row[1:] for row in ROW_FORMS], ids=[row[0] for row in ROW_FORMS])
def test_every_form_of_answer(raw: Any, hard: bool) -> None:
    answers = interpret(raw, 2, ("no", "yes"))
    expected = [[0.0, 1.0], [1.0, 0.0]] if hard else [[0.25, 0.75], [1.0, 0.0]]
    assert answers.hard == hard
    assert answers.scores.dtype == np.float64
    assert answers.scores.tolist() == expected


def test_torch_tensors_are_answers_too() -> None:
    torch = pytest.importorskip("torch")
    answers = interpret(torch.tensor([[2.0, 0.0]], requires_grad=True), 1, ("a", "b"), logits=True)
    assert answers.scores.round(4).tolist() == [[0.8808, 0.1192]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([[0.1, 0.9]], "2 texts were sent, but 1 answers came back"),
        ([[0.1, 0.2, 0.7]] * 2, "3 scores per text, but there are 2 labels"),
        (["maybe", "no"], "answered the label 'maybe'; the labels are no, yes"),
        ([2, 0], "2 is not the number of one of the 2 classes"),
        ([{"yes": 0.3}, {"yes": 0.2}], "no score for no: the answer names yes"),
        ("yes", "the answer is a str"),
        ([[None, 1.0]] * 2, "an answer reads"),
        ([[{"label": "yes"}]] * 2, "an answer reads"),
    ],
)
def test_nonsense_is_named(raw: Any, message: str) -> None:
    with pytest.raises(VictimError, match=message):
        interpret(raw, 2, ("no", "yes"))


def test_labels_seen_in_an_answer() -> None:
    assert find_labels([[0.1, 0.2, 0.7]]) == ("0", "1", "2")
    assert find_labels([0.4]) == ("0", "1")
    assert find_labels([[{"label": "pos", "score": 0.9}, {"label": "neg", "score": 0.1}]]) == ("neg", "pos")
    numbered = [{"label": f"LABEL_{i}", "score": 0.0} for i in (11, 3, 10, 0, 1, 2, 4, 5, 6, 7, 8, 9)]
    assert find_labels([numbered]) == tuple(f"LABEL_{i}" for i in range(12))
    with pytest.raises(VictimError, match="--labels"):
        find_labels(["pos"])


def test_a_function_is_a_victim() -> None:
    victim = FunctionVictim(score_by_length, labels=("short", "long"))
    check_victim(victim, TEXTS)
    copy = pickle.loads(pickle.dumps(victim))
    assert np.array_equal(copy.predict(TEXTS), victim.predict(TEXTS))
    assert copy.fingerprint() == victim.fingerprint()
    assert victim.name == "score_by_length"
    assert victim.capabilities == {"probabilities"}
    assert FunctionVictim(score_by_length, labels=("a", "b")).fingerprint() != victim.fingerprint()


def test_a_function_of_decided_labels_has_no_probabilities() -> None:
    victim = FunctionVictim(
        lambda texts: ["long" if len(t) > 9 else "short" for t in texts], labels=("short", "long")
    )
    assert victim.capabilities == frozenset()
    assert victim.predict(["x", "a longer text"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_function_for_pairs_is_looked_at_with_a_pair() -> None:
    victim = FunctionVictim(lambda pairs: [[float(a == b), float(a != b)] for a, b in pairs if len(a) > 1])
    assert victim.labels == ("0", "1")
    assert victim.predict([("one", "one"), ("one", "two")])[:, 0].tolist() == [1.0, 0.0]


def test_a_function_that_fails_says_why() -> None:
    def broken(texts: list[str]) -> None:
        raise RuntimeError("no weights")

    with pytest.raises(VictimError, match=r"broken fails on .* RuntimeError: no weights"):
        _ = FunctionVictim(broken).labels


# -- specs ---------------------------------------------------------------------------------------------


@pytest.fixture
def my_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module in the folder one stands in."""
    (tmp_path / "my_victims.py").write_text(
        "LABELS = ('cold', 'hot')\n"
        "def classify(texts):\n    return [[0.2, 0.8] if 'sun' in text else [0.9, 0.1] for text in texts]\n"
        "def logits(texts):\n    return [[-1.0, 3.0] for _ in texts]\n"
        "class Box:\n    def predict(self, texts):\n        return [1 for _ in texts]\n"
        "box = Box()\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_victims", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "spec", ["python:my_victims:classify", "my_victims:classify", "my_victims.py:classify"]
)
def test_functions_by_name(my_module: Path, spec: str) -> None:
    victim = load_victim(spec)
    assert victim.labels == ("cold", "hot")
    assert victim.predict(["sunny", "rain"])[:, 1].tolist() == [0.8, 0.1]
    again = load_victim(victim.spec, **victim.options)  # type: ignore[attr-defined]
    assert again.fingerprint() == victim.fingerprint()
    check_victim(victim, ["sun", "rain", "snow"])


def test_methods_and_logits_by_name(my_module: Path) -> None:
    assert load_victim("my_victims:box.predict").capabilities == frozenset()
    victim = load_victim("my_victims:logits", logits="true", labels="a,b")
    assert victim.labels == ("a", "b")
    assert VictimOracle(victim)(["x"])[0].tolist() == [0.017986, 0.982014]
    with pytest.raises(VictimError, match="these look like logits") as caught:
        VictimOracle(load_victim("my_victims:logits"))(["x"])
    assert "--victim-option logits=true (in Python: logits=True)" in caught.value.remedy


def test_a_file_may_import_its_neighbours_now_and_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "near_by.py").write_text("SCORES = [0.25, 0.75]\n", encoding="utf-8")
    (folder / "far_off.py").write_text("def score(text):\n    return [0.5, 0.5]\n", encoding="utf-8")
    (folder / "mine.py").write_text(
        "from near_by import SCORES\n"
        "def now(texts):\n    return [SCORES for _ in texts]\n"
        "def later(texts):\n    import far_off\n    return [far_off.score(text) for text in texts]\n",
        encoding="utf-8",
    )
    (folder / "needy.py").write_text("import not_to_be_found\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_victim(f"{folder}/mine.py:now").predict(["x"]).tolist() == [[0.25, 0.75]]
    assert load_victim(f"{folder}/mine.py:later").predict(["x"]).tolist() == [[0.5, 0.5]]
    with pytest.raises(VictimError, match="No module named 'not_to_be_found'") as caught:
        load_victim(f"{folder}/needy.py:f")
    assert "beside it" in caught.value.remedy
    for name in ("near_by", "far_off"):
        monkeypatch.delitem(sys.modules, name)


def test_a_plain_function_that_gets_pairs_hears_of_columns() -> None:
    victim = FunctionVictim(
        lambda texts: [[1.0, 0.0] if text.lower() else [0.0, 1.0] for text in texts], labels=("a", "b")
    )
    with pytest.raises(VictimError, match="fails on pairs of texts: AttributeError") as caught:
        victim.predict([("one", "two")])
    assert "--text-column" in caught.value.remedy
    with pytest.raises(AttributeError):
        victim.predict([7])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("nothing_like_it", {}, "'nothing_like_it' is not a model"),
        ("sklearn", {}, "but not which"),
        ("./no/such/folder", {}, "there is no file or folder"),
        ("missing.skops", {}, "there is no file missing.skops"),
        ("sklearn:missing.skops", {}, "there is no file missing.skops"),
        ("hf:./missing", {}, "there is no folder"),
        ("empty", {}, "holds no model: it has no config.json"),
        ("hf:empty", {}, "holds no model: it has no config.json"),
        ("notes.txt", {}, "is not a model file"),
        ("fake:x", {}, "takes no name"),
        ("fake", {"colour": "red"}, "fake victims have no option 'colour'"),
        ("fake", {"delay": "soon"}, "delay=soon is not a number"),
        ("fake", {"delay": -1}, "delay=-1.0 makes no sense"),
        ("hf:empty", {"max_length": -1}, "max_length=-1 makes no sense"),
        ("json:loads", {"batch_size": 0}, "batch_size=0 makes no sense: it must be at least 1"),
        ("json:loads", {"batch_size": "-3"}, "batch_size=-3 makes no sense"),
        ("json:loads", {"batch_size": 2.5}, "batch_size=2.5 is not a whole number"),
        ("json:loads", {"batch_size": True}, "batch_size=True is not a whole number"),
        ("json:loads", {"logits": "maybe"}, "logits=maybe is neither true nor false"),
        ("fake", {"labels": "a,b,c"}, "3 labels given"),
        ("fake", {"labels": "a,,c"}, "a label is empty"),
        ("no_such_module:f", {}, "there is no Python module no_such_module"),
        ("json:no_such_function", {}, "json has no 'no_such_function'"),
        ("json:__name__", {}, "is a str, not a function"),
        ("nowhere.py:f", {}, "there is no file nowhere.py"),
        ("broken:f", {}, "importing broken failed: ZeroDivisionError"),
        ("python:f", {}, "names no function"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(VictimError, match=message) as caught:
        load_victim(spec, **options)
    assert caught.value.remedy
    assert "\n" not in caught.value.cause


def test_specs_lead_to_kinds(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert split_spec(str(tmp_path)) == ("hf", str(tmp_path))
    assert split_spec("some-org/some-model") == ("hf", "some-org/some-model")
    assert split_spec("https://host:8000/x?y=1") == ("https", "https://host:8000/x?y=1")
    assert split_spec("a/b.joblib") == ("sklearn", "a/b.joblib")


def test_plug_ins_load_by_their_kind() -> None:
    registry.register(
        "victim", "shouting", lambda rest, *, labels, trust_pickle, **options: FakeVictim(**options)
    )
    try:
        victim = load_victim("shouting:x", poison="!")
    finally:
        registry.unregister("victim", "shouting")
    assert isinstance(victim, FakeVictim)
    told = {name: value for name, value in victim.options.items() if name != "device"}
    assert told == {"labels": None, "trust_pickle": False, "poison": "!"}
    with pytest.raises(UnknownNameError):
        registry.load("victim", "shouting")


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [("httpx", "http://127.0.0.1:9/x", "http"), ("transformers", "hf:some/model", "torch")],
)
def test_a_missing_extra_names_itself(
    monkeypatch: pytest.MonkeyPatch, module: str, spec: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"unfooled\[{extra}\]"):
        load_victim(spec, labels=("a", "b")).predict(["x"])


# -- labels --------------------------------------------------------------------------------------------


def test_labels_are_matched_not_guessed() -> None:
    assert settle_labels(["LABEL_0", "LABEL_1"], ("no", "yes")) == (("no", "yes"), None)
    assert settle_labels(["neg", "pos"], ("POS", "NEG")) == (("POS", "NEG"), [1, 0])
    assert settle_labels(["neg", "pos"], None) == (("neg", "pos"), None)
    for given, message in [
        (("a", "b"), "are not the model's"),
        (("a",), "1 labels given"),
        (("a", "a"), "given twice"),
    ]:
        with pytest.raises(VictimError, match=message):
            settle_labels(["neg", "pos"], given)


def test_given_labels_move_the_columns() -> None:
    plain, swapped = FakeVictim(), FakeVictim(labels=("positive", "negative"))
    assert np.array_equal(plain.predict(TEXTS)[:, ::-1], swapped.predict(TEXTS))


# -- the oracle and the conformance check --------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[0.5, 0.5]], r"shape \[1, 2\] to 2 texts"),
        ([[0.2, 0.2, 0.6]] * 2, r"shape \[2, 3\]"),
        ([[0.5, float("nan")], [0.5, 0.5]], "1 of 2 rows contain NaN"),
        ([[0.5, float("inf")], [0.5, 0.5]], "1 of 2 rows contain infinite"),
        ([[3.4, 0.01], [0.5, 0.5]], "rows sum to 3.41: these look like logits"),
        ([[0.9, 0.9], [0.5, 0.5]], "rows sum to 1.8, not to 1"),
        (["a", "b"], "not a table of numbers"),
    ],
)
def test_bad_answers_are_named(answers: Any, message: str) -> None:
    with pytest.raises(VictimError, match=message) as caught:
        validate(answers, 2, ("no", "yes"), "v")
    assert caught.value.remedy


def test_the_oracle_rounds_and_hands_out_rows() -> None:
    victim = FunctionVictim(lambda texts: np.array([[1 / 3, 2 / 3]] * len(texts)), labels=("a", "b"))
    oracle = oracle_for(victim)
    assert type(oracle) is VictimOracle
    assert oracle.batch_size == victim.batch_size
    rows = oracle(["x", "y"])
    assert [row.tolist() for row in rows] == [[0.333333, 0.666667]] * 2
    assert oracle([]) == []


class Neighbourly(FakeVictim):
    """Looks at the rest of the batch."""

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        second = np.full(len(texts), len(texts) / (len(texts) + 1.0))
        return np.stack([1.0 - second, second], axis=1)


class Forgetful(FakeVictim):
    count = 0

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.count += 1
        second = np.full(len(texts), 1.0 / (1 + self.count))
        return np.stack([1.0 - second, second], axis=1)


class Single(FakeVictim):
    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return super().predict(texts).astype(np.float32)


@pytest.mark.parametrize(
    ("victim", "message"),
    [
        (Neighbourly(), "depend on the other texts"),
        (Forgetful(), "asked twice"),
        (Single(), "float64"),
        (
            FunctionVictim(lambda texts: [0.5 for _ in texts], labels=("a", "b")),
            "no spec and cannot be pickled",
        ),
    ],
)
def test_the_conformance_check_finds_faults(victim: Victim, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_victim(victim, TEXTS)


def test_retry_after_may_be_a_date() -> None:
    assert retry_after("2.5") == 2.5
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("Wed, 21 Oct 2999 07:28:00 GMT") > 1e6
    assert retry_after("soon") == retry_after("") == 0.0


def test_an_oracle_that_is_not_async_is_refused() -> None:
    with pytest.raises(TypeError, match="no async answer"):
        AsyncVictimOracle(FakeVictim())


def test_a_probability_written_as_a_whole_number_is_no_label() -> None:
    answers = interpret([1, 0.25, 0], 3, ("a", "b"))
    assert not answers.hard
    assert answers.scores.tolist() == [[0.0, 1.0], [0.75, 0.25], [1.0, 0.0]]
    assert interpret([1, 0], 2, ("a", "b")).hard
    margins = interpret([0, 3], 2, ("a", "b"), logits=True)
    assert not margins.hard
    assert margins.scores[:, 1].round(3).tolist() == [0.5, 0.953]
    with pytest.raises(VictimError, match=r"an answer reads '0\.5'"):
        interpret([0.5, "yes"], 2, ("no", "yes"))


def test_a_batch_of_ones_and_zeros_does_not_take_the_scores_away() -> None:
    victim = FunctionVictim(
        lambda texts: [1 if text == "sure" else 0.25 for text in texts], labels=("a", "b")
    )
    victim.predict(["sure"])
    victim.predict(["sure", "x"])
    victim.predict(["sure"])
    assert victim.capabilities == {"probabilities"}
