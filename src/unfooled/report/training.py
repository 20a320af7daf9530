"""What is told of a model that was trained."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from unfooled.report.tables import duration
from unfooled.training.families import find_family
from unfooled.training.trainer import ClassifierFamily, Trained


def score_line(trained: Trained) -> str:
    valid = trained.metrics.get("valid")
    kept = f", epoch {trained.metrics['best_epoch']} kept" if "best_epoch" in trained.metrics else ""
    score = ""
    if valid and "bleu" in valid:
        score = f": validation BLEU {valid['bleu']:.2f}{kept}"
    elif valid:
        score = f": validation accuracy {valid['accuracy']:.1%}, macro F1 {valid['macro_f1']:.1%}{kept}"
    return f"{trained.family} trained in {duration(trained.seconds)}{score}"


def attack_options(trained: Trained, data: Mapping[str, Any]) -> str:
    """What an attack on the model needs too: how its data was read, and an attack for its task."""
    more = "".join(f" --{name.replace('_', '-')} {quote(value)}" for name, value in data.items() if value)
    classifies = isinstance(find_family(trained.family), ClassifierFamily)
    return more if classifies else f"{more} --attack typo"
