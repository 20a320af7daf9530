"""Rows by whether a filter should block them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from unfooled.data.dataset import Dataset
from unfooled.errors import DataError
from unfooled.victims.filtering import BLOCKED, LABELS, PASSED, Filter


def relabelled(data: Dataset, victim: Filter, label_map: Mapping[str, str] | None = None) -> Dataset:
    """The same rows, labelled `blocked` or `passed` by their own labels, those of the classifier."""
    own = data.aligned(victim.inner.labels, label_map)
    meant = [LABELS.index(BLOCKED if label in victim.flag else PASSED) for label in own.labels]
    codes = {value: meant[code] for value, code in own._coding.codes.items()}
    if LABELS.index(BLOCKED) not in codes.values():
        raise DataError(
            f"no row of the data is labelled {' or '.join(victim.flag)}, so there is nothing to block",
            f"its labels are {', '.join(data.labels)}; map them with --label-map",
        )
    coding = dataclasses.replace(own._coding, labels=LABELS, codes=codes, ordered=True)
    return dataclasses.replace(own, labels=LABELS, _coding=coding)
