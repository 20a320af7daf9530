"""Trainings of seconds: few rows and tiny networks."""

from __future__ import annotations

from typing import Any

from reviews import sentences
from unfooled.data.dataset import Dataset
from unfooled.training.families import find_family

TINY: dict[str, Any] = {
    "epochs": 2,
    "vectors": "none",
    "hidden": 8,
    "layers": 1,
    "batch": 16,
    "max_length": 24,
}
SKLEARN = ("naive-bayes", "svm")


def singles(n: int = 60) -> Dataset:
    return Dataset.from_pairs(sentences(n), name="tiny")


def options_of(family: str, **more: Any) -> dict[str, Any]:
    known = find_family(family).defaults
    return {name: value for name, value in TINY.items() if name in known and family not in SKLEARN} | more
