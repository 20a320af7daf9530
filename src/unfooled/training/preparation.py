"""From a data set to rows in memory: usable ones only, checked, and split into training and validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.result import Example
from unfooled.core.victim import TextValue
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.errors import DataError

DEFAULT_SHARE = 0.1


@dataclass(frozen=True)
class LabelledTexts:
    """Texts (or pairs) and their classes, in the order of the file."""

    texts: list[TextValue]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: Sequence[int] | NDArray[Any]) -> LabelledTexts:
        return LabelledTexts(
            [self.texts[i] for i in indices], self.labels[np.asarray(indices, dtype=np.int64)]
        )


@dataclass(frozen=True)
class Prepared:
    """What a family learns from."""

    train: LabelledTexts
    valid: LabelledTexts  # empty where every row is trained on
    labels: tuple[str, ...]
    fields: int
    skipped: int  # rows that cannot be used
    fingerprint: str


def prepare(data: Dataset, valid: Given | float = DEFAULT_SHARE, *, seed: int = 0) -> Prepared:
    """`valid` is a data set of its own, or the share of the rows that is kept out of training."""
    if isinstance(valid, float | int) and not 0 <= valid < 1:
        raise DataError(f"the validation share is {valid}", "give a number from 0 to below 1, such as 0.1")
    rows, skipped = read_rows(data)
    _check(rows, data)
    fingerprint = data.fingerprint()
    if not isinstance(valid, float | int):
        valid = as_dataset(valid)
        held = _aligned(valid, data)
        if len(held.fields) != len(data.fields):
            raise DataError(
                f"{valid.name} has {len(held.fields)} text columns, but {data.name} has {len(data.fields)}",
                "give validation rows with the columns of the training rows",
            )
        other, bad = read_rows(held)
        return Prepared(
            rows, other, data.labels, len(data.fields), skipped + bad, f"{fingerprint}+{held.fingerprint()}"
        )
    kept_out = stratified(rows.labels, float(valid), seed)
    train = np.setdiff1d(np.arange(len(rows)), kept_out)
    return Prepared(
        rows.take(train),
        rows.take(kept_out),
        data.labels,
        len(data.fields),
        skipped,
        f"{fingerprint}+{valid:g}",
    )


def read_rows(data: Dataset) -> tuple[LabelledTexts, int]:
    """The usable rows, and how many are not."""
    texts: list[TextValue] = []
    labels: list[int] = []
    skipped = 0
    for example in data:
        if example.problem:
            skipped += 1
            continue
        texts.append(text_value(example))
        labels.append(example.label)
    return LabelledTexts(texts, np.array(labels, dtype=np.int64)), skipped


def text_value(example: Example) -> TextValue:
    values = tuple(value for _, value in example.content)
    return values[0] if len(values) == 1 else values


def stratified(labels: NDArray[np.int64], share: float, seed: int) -> NDArray[np.int64]:
    """Sorted indices of a random share of each class; the last row of a class is never taken away."""
    rng = np.random.default_rng(seed)
    taken: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        size = min(int(np.ceil(share * len(members))), len(members) - 1)
        taken.append(rng.permutation(members)[:size])
    return np.sort(np.concatenate(taken)).astype(np.int64)


def _aligned(valid: Dataset, data: Dataset) -> Dataset:
    try:
        return valid.aligned(data.labels)
    except DataError:
        raise DataError(
            f"{valid.name}: the labels of the validation rows ({', '.join(valid.labels)}) "
            f"are not those of the training rows ({', '.join(data.labels)})",
            "correct the labels, or leave out what was not trained",
        ) from None


def _check(rows: LabelledTexts, data: Dataset) -> None:
    if not len(rows):
        raise DataError(f"{data.name}: no row can be used for training", "check the text and label columns")
    found = np.unique(rows.labels)
    if len(found) < 2:
        raise DataError(
            f"{data.name}: all {len(rows)} rows have the label {data.labels[int(found[0])]!r}; "
            "there is nothing to tell apart",
            "give rows of at least two classes, or name the right column with --label-column",
        )


def joined(rows: LabelledTexts, more: Sequence[tuple[TextValue, int]]) -> LabelledTexts:
    """The rows with more texts and classes behind them."""
    labels = np.array([label for _, label in more], dtype=np.int64)
    return LabelledTexts([*rows.texts, *(text for text, _ in more)], np.concatenate([rows.labels, labels]))
