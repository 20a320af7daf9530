"""Counting the words of each class: all that a multinomial naive Bayes learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from unfooled.core.result import Example
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError
from unfooled.resources.class_words import ClassWords
from unfooled.text import WORD


def count_class_words(data: Dataset, examples: Iterable[Example] | None = None) -> ClassWords:
    """Words in lower case, split as attacks split them; of a pair, those of the field that may be edited.

    `examples` are those of `data`, where somebody watches them go by.
    """
    counts: list[Counter[str]] = [Counter() for _ in data.labels]
    for example in data if examples is None else examples:
        if not example.problem:
            string = dict(example.content)[example.edit]
            counts[example.label].update(map(str.lower, WORD.findall(string)))
    empty = [label for label, count in zip(data.labels, counts, strict=True) if not count]
    if len(data.labels) < 2 or len(empty) == len(data.labels):
        raise DataError(
            f"{data.name}: words are compared between classes, and there is only one",
            "give rows of at least two classes, or name the right column with --label-column",
        )
    if empty:
        raise DataError(f"{data.name}: no row has a word for the class {empty[0]!r}", "give more rows")
    return ClassWords.of(data.labels, counts, data=data.name, fingerprint=data.fingerprint())
