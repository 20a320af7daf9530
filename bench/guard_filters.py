"""Filters of others, from the package index, as functions for `--model guard_filters.py:NAME`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any


def better_profanity(texts: Sequence[str]) -> list[str]:
    from better_profanity import profanity

    return ["abuse" if profanity.contains_profanity(text) else "fine" for text in texts]


def profanity_check(texts: Sequence[str]) -> list[list[float]]:
    from profanity_check import predict_prob

    return [[1 - score, score] for score in predict_prob(texts)]


def cloneguard(texts: Sequence[str]) -> list[str]:
    said = [_cloneguard().classify(text).verdict for text in texts]
    return ["benign" if verdict == "SAFE" else "injection" for verdict in said]


@cache
def _cloneguard() -> Any:
    from cloneguard.mini_semantic import MiniSemanticClassifier

    return MiniSemanticClassifier()
