"""A function's run is its own only as long as its answers are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from notices import Notices
from unfooled.data.dataset import Dataset
from unfooled.errors import RunFileError
from unfooled.runs.attack import attack
from unfooled.victims.function import PROBES, FunctionVictim

LABELS = ("calm", "loud")
ROWS = [("what a fine day", "calm"), ("STOP THAT NOW", "loud")]


class Helper:
    """Something that a function calls and whose change its own source does not show."""

    limit = 0.5


def classify(texts: list[str]) -> list[list[float]]:
    shares = [sum(char.isupper() for char in text) / max(1, len(text)) for text in texts]
    return [[0.2, 0.8] if share > Helper.limit else [0.9, 0.1] for share in shares]


def chance(texts: list[str]) -> list[list[float]]:
    """As a network with some randomness left in it: the same decisions, other last digits."""
    return [
        [calm - noise, loud + noise] for calm, loud in classify(texts) if (noise := 1e-4 * random.random())
    ]


def test_a_changed_helper_makes_another_victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Dataset.from_pairs(ROWS, labels=LABELS)
    before = FunctionVictim(classify, labels=LABELS)
    attack(before, data, "deepwordbug", out=tmp_path / "r")
    assert FunctionVictim(classify, labels=LABELS).fingerprint() == before.fingerprint()
    monkeypatch.setattr(Helper, "limit", 0.01)
    changed = FunctionVictim(classify, labels=LABELS)
    assert changed.fingerprint() != before.fingerprint()
    with pytest.raises(RunFileError, match="other settings"):
        attack(changed, data, "deepwordbug", out=tmp_path / "r")


def test_a_function_with_chance_in_it_can_be_resumed(tmp_path: Path) -> None:
    victims = [FunctionVictim(chance, labels=LABELS) for _ in range(2)]
    assert victims[0].fingerprint() == victims[1].fingerprint()
    assert victims[0].unsteady
    told = Notices()
    attack(
        victims[0], Dataset.from_pairs(ROWS, labels=LABELS), "deepwordbug", out=tmp_path / "r", observer=told
    )
    assert any("answers the same texts differently" in notice for notice in told.notices)


def test_the_texts_are_asked_twice_and_only_once_per_victim() -> None:
    asked: list[str] = []

    def counting(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return classify(texts)

    victim = FunctionVictim(counting, labels=LABELS)
    assert victim.fingerprint() == victim.fingerprint()
    assert asked == [*PROBES, *PROBES]


def test_functions_for_pairs_and_functions_that_fail_have_fingerprints_too() -> None:
    def pairs(texts: list[tuple[str, str]]) -> list[list[float]]:
        return [[0.9, 0.1] if first == second else [0.2, 0.8] for first, second in texts]

    def fails(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("not today")

    assert (
        FunctionVictim(pairs, labels=LABELS).fingerprint()
        != FunctionVictim(fails, labels=LABELS).fingerprint()
    )
    assert (
        FunctionVictim(fails, labels=LABELS).fingerprint()
        == FunctionVictim(fails, labels=LABELS).fingerprint()
    )
