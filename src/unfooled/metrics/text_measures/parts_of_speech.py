"""Parts of speech of the words that an attack changed: kept by the replacement, and how many of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from unfooled.core.result import Result
from unfooled.metrics.measures import Ask, Measure
from unfooled.text import Text

CONTEXT = 4  # words on either side that the tagger sees


def kept(ask: Ask, results: Sequence[Result]) -> list[float]:
    """Share of the replaced words that keep their part of speech."""
    return [_kept(ask, result) for result in results]


def changed(ask: Ask, results: Sequence[Result]) -> list[Mapping[str, float]]:
    """How many words of each part of speech were replaced or deleted."""
    return [Counter(tag for tag, *_ in _tagged(ask, result)) for result in results]


def _kept(ask: Ask, result: Result) -> float:
    tags = [found for found in _tagged(ask, result) if len(found) == 2]
    return round(sum(own == new for own, new in tags) / len(tags), 6) if tags else 1.0


def _tagged(ask: Ask, result: Result) -> list[tuple[str, ...]]:
    """Of each word that is gone its tag, and that of the word in its place where there is one."""
    words = Text(result.original).words
    items = []
    for edit in result.edits:
        if edit.kind in ("replace", "delete") and edit.position < len(words):
            first = max(0, edit.position - CONTEXT)
            context = words[first : edit.position + CONTEXT + 1]
            items.append((context, edit.position - first, (edit.after,) if edit.kind == "replace" else ()))
    return [tuple(tags) for tags in ask(items)]


_OF_TAGS = partial(Measure, oracle="tag", default="perceptron-tagger")
SAME = _OF_TAGS(
    name="same-pos", title="replaced words that keep their part of speech", better="high", values=kept
)
CHANGED = _OF_TAGS(name="changed-pos", title="words replaced or deleted", better="low", values=changed)
