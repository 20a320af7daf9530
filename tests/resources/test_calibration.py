"""Thresholds carried from one encoder to another, on encoders whose answers are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from reviews import sentences, write_csv
from unfooled.cli.app import app
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError, UserError
from unfooled.metrics.calibration import (
    Calibration,
    Threshold,
    WordReplacement,
    calibrate,
    make_pairs,
    measure,
    plot,
)
from unfooled.resources import store

NEAR = {"awful": ["terrible", "bad"], "dull": ["slow"], "great": ["good"], "superb": ["great"]}


def nearest(word: str) -> list[str]:
    return NEAR.get(word, [])


def turned(angles: dict[str, float]) -> Any:
    """A text points in the direction of its angle."""

    def encode(texts: Any) -> list[Any]:
        return [np.array([np.cos(angles[text]), np.sin(angles[text])]) for text in texts]

    return encode


# -- pairs ---------------------------------------------------------------------------------------------


def test_a_pair_is_a_real_text_with_one_word_replaced() -> None:
    data = Dataset.from_pairs(sentences(40))
    pairs = make_pairs(data, nearest, count=60)
    assert len(pairs) == 60
    originals = {text for text, _ in sentences(40)}
    vocabulary = {word.strip(",.").lower() for text in originals for word in text.split()}
    for pair in pairs:
        assert pair.before in originals
        old, new = ([word.strip(",.") for word in text.split()] for text in (pair.before, pair.after))
        ((was, became),) = ((a, b) for a, b in zip(old, new, strict=True) if a != b)
        assert became.lower() in (NEAR[was] if pair.kind == "neighbours" else vocabulary)
    assert {pair.kind for pair in pairs} == {"neighbours", "random"}
    assert make_pairs(data, nearest, count=60) == pairs
    assert make_pairs(data, nearest, count=60, seed=1) != pairs


def test_windows_and_one_kind_alone() -> None:
    data = Dataset.from_pairs([("one two three awful five six seven", 0), ("eight awful nine", 1)])
    pairs = make_pairs(data, nearest, count=3, kinds="neighbours", window=3)
    assert {pair.before for pair in pairs} <= {"three awful five", "eight awful nine"}
    assert make_pairs(data, None, count=3, kinds="random")


def test_texts_without_anything_to_replace_are_an_error() -> None:
    data = Dataset.from_pairs([("the of and", 0), ("it is", 1)])
    with pytest.raises(DataError, match="no words to replace"):
        make_pairs(data, nearest)
    with pytest.raises(DataError, match="no pairs of the kind"):
        make_pairs(data, nearest, kinds="all")  # type: ignore[arg-type]


# -- by hand -------------------------------------------------------------------------------------------


def hundred() -> tuple[list[WordReplacement], np.ndarray, np.ndarray]:
    """The source says 0.01 to 1.00; the target says the square of that."""
    pairs = [WordReplacement("random" if i < 50 else "neighbours", f"a{i}", f"b{i}") for i in range(100)]
    ours = np.arange(1, 101) / 100
    return pairs, ours, ours**2


def test_equal_shares_by_hand() -> None:
    pairs, ours, theirs = hundred()
    found = calibrate(Threshold("a", "cosine", 0.805), ("b", "cosine"), pairs, ours, theirs)
    # 80 values lie below; the 80th percentile of the squares lies between 0.80² and 0.81².
    assert found.passing == pytest.approx(0.2)
    assert 0.64 <= found.target.value <= 0.6561
    assert found.low <= found.target.value <= found.high
    assert found.agreement == 1.0
    assert found.correlation == pytest.approx(1.0)
    assert found.passing_by_kind == {"neighbours": (0.4, 0.4), "random": (0.0, 0.0)}
    middle = {p: (a, b) for p, a, b in found.curve}[50]
    assert middle == pytest.approx((0.505, 0.2551), abs=1e-4)


def test_an_encoder_is_its_own_equal() -> None:
    pairs, ours, _ = hundred()
    found = calibrate(Threshold("a", "cosine", 0.5), ("a", "cosine"), pairs, ours, ours)
    assert found.target.value == pytest.approx(0.5, abs=0.006)


def test_encoders_that_disagree_show_it() -> None:
    pairs, ours, _ = hundred()
    found = calibrate(Threshold("a", "cosine", 0.505), ("b", "cosine"), pairs, ours, ours[::-1])
    assert found.correlation == pytest.approx(-1.0)
    assert found.agreement == 0.0


@pytest.mark.parametrize(("threshold", "message"), [(0.0, "every"), (2.0, "none")])
def test_a_threshold_outside_of_what_was_seen_cannot_be_carried(threshold: float, message: str) -> None:
    pairs, ours, theirs = hundred()
    with pytest.raises(DataError, match=f"{message} of the 100 pairs"):
        calibrate(Threshold("a", "cosine", threshold), ("b", "cosine"), pairs, ours, theirs)


def test_measuring_asks_each_text_once_and_uses_the_scale() -> None:
    pairs = [WordReplacement("random", "a", "b"), WordReplacement("random", "a", "c")]
    asked: list[str] = []

    def encode(texts: Any) -> Any:
        asked.extend(texts)
        return turned({"a": 0.0, "b": 0.3, "c": 1.0})(texts)

    told: list[tuple[int, int]] = []
    found = measure(pairs, encode, "arccos", progress=lambda *seen: told.append(seen))
    assert found.tolist() == pytest.approx([0.7, 0.0], abs=1e-5)
    assert sorted(asked) == ["a", "b", "c"]
    assert told == [(0, 3)]
    angular = measure(pairs, encode, "angular")
    assert angular.tolist() == pytest.approx([1 - 0.3 / np.pi, 1 - 1 / np.pi], abs=1e-5)


def test_it_can_be_written_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pairs, ours, theirs = hundred()
    found = calibrate(Threshold("a", "cosine", 0.8), ("b", "angular"), pairs, ours, theirs, data="toy")
    plot(found, ours, theirs, [tmp_path / "c.svg", tmp_path / "c.png"])
    assert (tmp_path / "c.svg").stat().st_size > 1000
    assert (tmp_path / "c.png").stat().st_size > 1000
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["source"] == {"encoder": "a", "scale": "cosine", "value": 0.8}
    assert set(stored) == set(Calibration.__dataclass_fields__)


# -- the command ---------------------------------------------------------------------------------------


def unfooled(*arguments: str) -> str:
    """What the command prints; mistakes come as exceptions."""
    done = CliRunner().invoke(app, ["calibrate", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "use", "--to", "minilm"], "ENCODER:THRESHOLD"),
        (["--from", "use:high", "--to", "minilm"], "ENCODER:THRESHOLD"),
        (["--from", "use:0.9", "--to", "minilm", "--scale", "dot"], "cosine, angular, arccos"),
        (["--from", "use:0.9", "--to", "minilm", "--window", "0"], "number of words"),
        (["--from", "use:0.9", "--to", "minilm", "--kind", "far", "--neighbours", "n.json"], "no pairs of"),
        (["--from", "use:0.9", "--to", "minilm", "--data", "none.csv"], "none.csv"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_mistakes_are_answered_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "d.csv", sentences(5))
    (tmp_path / "n.json").write_text(json.dumps(NEAR))
    with pytest.raises(UserError, match=message):
        unfooled("--data", "d.csv", *arguments)


def test_the_curve_is_shown_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("use", "potion"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    write_csv(tmp_path / "d.csv", sentences(60))
    (tmp_path / "n.json").write_text(json.dumps(NEAR))
    arguments = ["--from", "use:0.9", "--to", "potion", "--data", "d.csv", "--pairs", "100"]
    arguments += ["--neighbours", "n.json", "--out", "c"]
    shown = unfooled(*arguments)
    assert "use 0.9 (cosine) is potion 0." in shown
    assert "●" in shown
    stored = json.loads((tmp_path / "c/calibration.json").read_text())
    assert stored["pairs"] == 100
    assert stored["low"] <= stored["target"]["value"] <= stored["high"]
    again = json.loads(unfooled(*arguments, "--json"))
    assert again["target"] == stored["target"]
