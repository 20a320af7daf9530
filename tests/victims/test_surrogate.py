"""The linear stand-in for a victim: what it learns, and what it makes of files that are no surrogate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from unfooled.errors import ResourceError, UnfooledError
from unfooled.victims.surrogate import (
    LinearSurrogate,
    features_of,
    fingerprint,
    fit_surrogate,
    load_surrogate,
    log_odds,
    open_surrogate,
)

WORDS = [f"w{letter}" for letter in "abcdefghijklmnopqrst"]
TRUE = {word: (-1.0) ** n * (0.2 + 0.1 * n) for n, word in enumerate(WORDS)}


def answers(texts: list[str]) -> np.ndarray:
    odds = np.array([sum(TRUE.get(word, 0.0) for word in text.split()) for text in texts])
    positive = 1 / (1 + np.exp(-odds))
    return np.stack([1 - positive, positive], axis=1).round(6)


def fitted() -> LinearSurrogate:
    rng = np.random.default_rng(0)
    texts, groups, edits = [], [], []
    for group in range(60):
        base = rng.choice(WORDS, size=8).tolist()
        texts.append(" ".join(base))
        for _ in range(4):
            copy = [word if rng.random() > 0.3 else str(rng.choice(WORDS)) for word in base]
            texts.append(" ".join(copy))
        groups += [group] * 5
        edits += [0, 2, 2, 2, 2]
    return fit_surrogate(texts, answers(texts), groups, edits, {"queries": len(set(texts))})


def test_it_learns_what_words_are_worth() -> None:
    surrogate = fitted()
    base = " ".join(WORDS[:8])
    for word in WORDS[8:]:
        edited = base.replace("wa", word, 1)
        said = log_odds(surrogate.predict([base, edited]))[:, 1]
        true = log_odds(answers([base, edited]))[:, 1]
        assert said[1] - said[0] == pytest.approx(true[1] - true[0], abs=0.15)
    assert surrogate.facts["explained"] > 0.9
    assert 0.1 <= surrogate.facts["spread"] < 0.4
    assert surrogate.facts["queries"] <= 300


def test_chance_is_seen_in_what_it_explains() -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=8)) for _ in range(200)]
    chance = rng.random(200)
    said = fit_surrogate(
        texts, np.stack([chance, 1 - chance], axis=1), [n // 4 for n in range(200)], [1] * 200
    )
    assert said.facts["explained"] < 0.1


def test_what_it_sees_of_a_text() -> None:
    assert dict(features_of("A splendid film")) == {
        "a": 1.0,
        "splendid": 1.0,
        "splen*": 0.5,
        "film": 1.0,
        "a splendid": 0.5,
        "splendid film": 0.5,
    }
    assert [name for name, _ in features_of(("one", "two"))] == ["0|one", "1|two"]
    assert list(features_of("...")) == []


def test_saved_and_read_it_answers_the_same(tmp_path: Path) -> None:
    surrogate = fitted()
    surrogate.save(tmp_path / "s.json")
    again = load_surrogate(tmp_path / "s.json")
    texts = ["wa wb", "wc unknown", ""]
    assert again.predict(texts).tolist() == surrogate.predict(texts).tolist()
    assert again.facts == surrogate.facts
    assert len(fingerprint(str(tmp_path / "s.json"))) == 64
    fitted().save(tmp_path / "t.json")
    assert fingerprint(str(tmp_path / "s.json")) == fingerprint(str(tmp_path / "t.json"))
    oracle = open_surrogate(str(tmp_path / "s.json"))
    assert oracle(["wa"])[0].shape == (2,)  # type: ignore[operator]


def test_any_model_can_be_one() -> None:
    oracle = open_surrogate("fake")
    said = oracle(["a superb film"])[0]  # type: ignore[operator]
    assert said[1] > 0.5
    assert fingerprint("fake")


GOOD = {"format": "unfooled-surrogate-1", "facts": {}, "offset": [0.0, 0.0], "weights": {"a": [1.0, -1.0]}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "null",
        json.dumps(GOOD | {"format": "other"}),
        json.dumps(GOOD | {"offset": [0.0]}),
        json.dumps(GOOD | {"offset": "ab"}),
        json.dumps(GOOD | {"offset": [0.0, float("nan")]}),
        json.dumps(GOOD | {"weights": {"a": [1.0]}}),
        json.dumps(GOOD | {"weights": {"a": [1.0, "x"]}}),
        json.dumps(GOOD | {"weights": {"a": [1.0, float("inf")]}}),
        json.dumps(GOOD | {"weights": [1, 2]}),
        json.dumps(GOOD | {"facts": 3}),
        json.dumps({"format": "unfooled-surrogate-1"}),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ResourceError, match=r"s\.json") as caught:
        load_surrogate(tmp_path / "s.json")
    assert caught.value.remedy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for read in (open_surrogate, fingerprint):
        with pytest.raises(UnfooledError, match=r"none\.json"):
            read(str(tmp_path / "none.json"))


def test_a_file_without_words_answers_by_its_offset(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(GOOD | {"weights": {}, "offset": [0.0, 1.0]}))
    assert load_surrogate(tmp_path / "s.json").predict(["a"])[0, 1] == pytest.approx(1 / (1 + np.exp(-1)))
