"""A labelled data set that is read row by row, as often as needed, and never held in memory."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from unfooled.core.result import Example
from unfooled.data.columns import Columns, choose_columns
from unfooled.data.labels import MOST_LABELS, Coding, code_labels, label_value, match_labels
from unfooled.data.readers import Row, Source, check_width
from unfooled.errors import DataError

_PEEK = 200


@dataclass(frozen=True)
class Selection:
    """Which rows: those from `offset` on, at most `limit`, and of these a random `sample`."""

    offset: int = 0
    limit: int | None = None
    sample: int | None = None
    seed: int = 0

    def window(self, rows: int) -> int:
        """How many of so many rows are left before the sample is drawn."""
        left = max(0, rows - self.offset)
        return left if self.limit is None else min(left, self.limit)

    def drawn(self, rows: int) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Sorted keys of the sample; None where every row of the window is taken."""
        window = self.window(rows)
        if self.sample is None or self.sample >= window:
            return None
        chosen = np.random.default_rng(self.seed).choice(window, self.sample, replace=False)
        return np.sort(chosen).astype(np.int64) + self.offset


@dataclass(frozen=True)
class Dataset:
    """Yields one `Example` per row; a row that cannot be used is an example with a `problem`.

    Example:

        >>> data = unfooled.Dataset.from_pairs([("a superb film", "positive"), ("dull", "negative")])
        >>> [example.text().string for example in data]
        ['a superb film', 'dull']
    """

    name: str
    labels: tuple[str, ...]
    fields: tuple[str, ...]
    edit: str  # the field that may be edited
    bad_rows: int = field(repr=False)  # of the whole file
    _source: Source = field(repr=False)
    _columns: Columns = field(repr=False)
    _coding: Coding = field(repr=False)
    _selection: Selection = field(repr=False)
    _rows: int = field(repr=False)  # of the whole file
    _first: Mapping[str, int] = field(repr=False)  # number of the first row with each label value
    _declared: bool = field(repr=False)  # the source itself names its classes
    cleaning: tuple[str, ...] = ()  # steps that every text goes through; see `cleaning.py`
    _kept: array[int] | None = field(default=None, repr=False)  # keys, rising; None: the whole selection

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str | Mapping[str, str], int | str]],
        *,
        labels: Sequence[str] | None = None,
        edit: str | None = None,
        name: str = "pairs",
    ) -> Dataset:
        """Texts (or named fields) and labels that are in memory already."""
        from unfooled.data.held import pairs_or_rows

        opened = pairs_or_rows(pairs, name)
        return build(opened.source, text=opened.text, label=opened.label, edit=edit, labels=labels)

    def __len__(self) -> int:
        return self._sampled.size if self._sampled is not None else self._window

    def __iter__(self) -> Iterator[Example]:
        start = self._selection.offset
        stop = start + self._window
        wanted = None if self._sampled is None else map(int, self._sampled)
        following = start if wanted is None else next(wanted, stop)
        rows = self._source.rows((*self._columns.texts, self._columns.label))
        for key, row in islice(enumerate(rows), start, stop):
            if key != following:
                continue
            yield self._example(key, row)
            following = key + 1 if wanted is None else next(wanted, stop)
            if following >= stop:
                return

    def nth_key(self, n: int) -> int:
        """The key of the n-th example, counted from 0; keys rise in the order of iteration."""
        if not 0 <= n < len(self):
            raise IndexError(f"example {n} of {len(self)}")
        return int(self._sampled[n]) if self._sampled is not None else self._selection.offset + n

    def fingerprint(self) -> str:
        """Changes with the data, the columns, the labels and the choice of rows; not with the file's name."""
        return self._fingerprint

    def aligned(self, victim_labels: Sequence[str], label_map: Mapping[str, str] | None = None) -> Dataset:
        """The same rows, with labels in the victim's order."""
        # Classes that no row has need no partner: a file may lack one that the victim knows.
        used = [label for i, label in enumerate(self.labels) if i in self._coding.codes.values()]
        whole = self.labels if self._coding.ordered and len(self.labels) == len(victim_labels) else used
        first: dict[str, int] = {}
        for value, code in self._coding.codes.items():
            label = self.labels[code]
            first[label] = min(self._first[value], first.get(label, self._first[value]))
        partner = match_labels(
            whole,
            victim_labels,
            label_map=label_map,
            ordered=self._coding.ordered and whole is self.labels,
            places={label: self._source.place(number) for label, number in first.items()},
        )
        codes = {value: partner[self.labels[code]] for value, code in self._coding.codes.items()}
        names = tuple(victim_labels)
        return replace(self, labels=names, _coding=Coding(names, codes, True))

    def classes(self) -> list[int]:
        """The class of every example, in their order; -1 of a row without one. Reads the data once."""
        return [-1 if example.problem else example.label for example in self]

    def only(self, keys: Iterable[int]) -> Dataset:
        """Just the examples of these keys."""
        return replace(self, _kept=_rising(keys))

    def cleaned(self, steps: str | Sequence[str]) -> Dataset:
        """The same rows with every text cleaned, by the steps "tweets" stands for or those listed."""
        from unfooled.data.cleaning import require_steps

        return replace(self, cleaning=require_steps(steps))

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _window(self) -> int:
        return self._selection.window(self._rows)

    @cached_property
    def _sampled(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        if self._kept is not None:
            return np.array(self._kept, dtype=np.int64)
        return self._selection.drawn(self._rows)

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        self._source.digest(digest)
        chosen = self._selection
        settings: list[Any] = [
            self.fields, self.edit, self._columns.label, self.labels, sorted(self._coding.codes.items()),
            chosen.offset, chosen.limit, chosen.sample, chosen.seed if chosen.sample is not None else None,
        ]  # fmt: skip
        if self._kept is not None:
            settings.append(["only", *self._kept])
        if self.cleaning:
            from unfooled.data.cleaning import VERSION

            settings.append([VERSION, *self.cleaning])
        digest.update(json.dumps(settings).encode())
        return digest.hexdigest()

    def _example(self, key: int, row: Row) -> Example:
        content, value, problem = read_row(row, self._columns, self._declared)
        original = content
        if self.cleaning and not problem:
            from unfooled.data.cleaning import clean

            content = tuple((name, clean(text, self.cleaning).text) for name, text in original)
            empty = next((name for name, text in content if not text.strip()), None)
            problem = f"nothing is left after cleaning (column {empty!r})" if empty else ""
        code = self._coding.codes.get(value, -1)
        if not problem and code < 0:
            problem = f"label {value!r} was not in the file when it was first read"
        if problem:
            problem = f"{self._source.place(row.number)}: {problem}"
        return Example(key, content, code, self.edit, problem, () if content == original else original)


def _rising(keys: Iterable[int]) -> array[int]:
    """Eight bytes for each: of a million rows there may be as many."""
    kept = np.array(array("q", keys), dtype=np.int64)
    kept.sort()
    return array("q", kept.tobytes())


def build(
    source: Source,
    *,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    edit: str | None = None,
    labels: Sequence[str] | None = None,
    selection: Selection | None = None,
) -> Dataset:
    """Choose the columns, read the source once from end to end, and check everything that can be checked."""
    chosen = selection or Selection()
    check_selection(chosen)
    names = source.columns()
    if not names:
        raise _unreadable(source)
    check_width(source.name, len(names))
    columns = choose_columns(names, islice(source.rows(), _PEEK), where=source.name, text=text, label=label)
    if edit is not None and edit not in columns.texts:
        raise DataError(
            f"{source.name}: there is no text field {edit!r} to edit",
            f"choose from {', '.join(columns.texts)}",
        )
    classes = source.class_names(columns.label)
    rows, bad, values = _scan(source, columns, bool(classes))
    if chosen.offset >= rows:
        raise DataError(f"{source.name}: offset {chosen.offset} is past the last of {rows} rows")
    places = {value: source.place(number) for value, number in values.items()}
    coding = code_labels(values, labels or classes or None, places=places)
    return Dataset(
        name=source.name,
        labels=coding.labels,
        fields=columns.texts,
        edit=edit or columns.texts[-1],
        bad_rows=bad,
        _source=source,
        _columns=columns,
        _coding=coding,
        _selection=chosen,
        _rows=rows,
        _first=values,
        _declared=bool(classes),
    )


def read_row(row: Row, columns: Columns, declared: bool) -> tuple[tuple[tuple[str, str], ...], str, str]:
    """Content, label value and problem of a row. `declared`: the source names its classes, so -1 is none."""
    values = row.values
    if values is None:
        return tuple((name, "") for name in columns.texts), "", row.problem
    problem = ""
    content: list[tuple[str, str]] = []
    for name in columns.texts:
        try:
            content.append((name, text_of(values.get(name))))
        except ValueError as error:
            content.append((name, ""))
            problem = problem or f"{error} (column {name!r})"
    try:
        value = label_value(values.get(columns.label))
    except ValueError as error:
        return tuple(content), "", problem or f"{error} (column {columns.label!r})"
    # The publishers of SNLI mark rows without agreement by a dash, those of other sets by -1.
    unsettled = (declared and value == "-1") or (value == "-" and columns.label.casefold() == "gold_label")
    if not value or unsettled:
        return tuple(content), "", problem or f"no label (column {columns.label!r})"
    return tuple(content), value, problem


def text_of(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError("no text")
    if isinstance(value, list | dict | tuple | set | bytes):
        raise ValueError(f"a {type(value).__name__} where a text is expected")
    text = str(value)
    if not text.strip():
        raise ValueError("no text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text holds half of a surrogate pair") from error
    return text


def _scan(source: Source, columns: Columns, declared: bool) -> tuple[int, int, dict[str, int]]:
    """Rows, unusable rows and, for each label value, its first row's number: one pass over the source."""
    rows = bad = 0
    values: dict[str, int] = {}
    first = ""
    for row in source.rows((*columns.texts, columns.label)):
        rows += 1
        _, value, problem = read_row(row, columns, declared)
        if problem:
            bad += 1
            first = first or f"{source.place(row.number)}: {problem}"
        if value and value not in values:
            values[value] = row.number
            if len(values) > MOST_LABELS:
                raise DataError(
                    f"{source.name}: column {columns.label!r} has more than {MOST_LABELS} different values: "
                    "this looks like a text or id column",
                    "name the right one with --label-column",
                )
    if rows == 0:
        raise DataError(f"{source.name}: there are no rows", "check the file's path and content")
    if bad == rows:
        raise DataError(f"{source.name}: none of the {rows} rows can be used; {first}")
    return rows, bad, values


def _unreadable(source: Source) -> DataError:
    row = next(iter(source.rows()), None)
    if row is None:
        return DataError(f"{source.name}: the file is empty", "check the file's path and content")
    return DataError(f"{source.name}: no row can be read; {source.place(row.number)}: {row.problem}")


def check_selection(chosen: Selection) -> None:
    for name, value, least in (
        ("offset", chosen.offset, 0),
        ("limit", chosen.limit, 1),
        ("sample", chosen.sample, 1),
    ):
        if value is not None and value < least:
            raise DataError(f"{name} is {value}", f"give a number of at least {least}")
