"""Data that a Python caller holds: pairs, rows, columns, a pandas frame, a table of the `datasets` library.

pandas and `datasets` are known by the name of their module: neither is needed, nor loaded, here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unfooled.data.huggingface import class_names_of, rows_of
from unfooled.data.readers import Digest, Held, Memory, Opened, Row, row_place
from unfooled.errors import DataError

TEXT, LABEL = "text", "label"
FORMS = (
    "give pairs of text and label, a dict of columns, a pandas DataFrame, a datasets.Dataset, a file's path "
    "or what load_data returns"
)


@dataclass(frozen=True, slots=True)
class HeldColumns:
    """Lists of equal length, one per column."""

    names: tuple[str, ...]
    cells: tuple[Sequence[Any], ...]
    name: str = "columns"

    def place(self, number: int) -> str:
        return row_place(number)

    def columns(self) -> tuple[str, ...]:
        return self.names

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        for number, cells in enumerate(zip(*self.cells, strict=True), start=1):
            yield Row(number, dict(zip(self.names, cells, strict=True)))

    def class_names(self, column: str) -> tuple[str, ...]:
        return ()

    def digest(self, into: Digest) -> None:
        _digest_rows(self.rows(), into)


@dataclass(frozen=True, slots=True)
class LibraryTable:
    """A `datasets.Dataset`, wherever it lies."""

    table: Any
    name: str = "datasets.Dataset"

    def place(self, number: int) -> str:
        return row_place(number)

    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        return rows_of(self.table, columns)

    def class_names(self, column: str) -> tuple[str, ...]:
        return class_names_of(self.table, column)

    def digest(self, into: Digest) -> None:
        # The library's own fingerprint is another one each time that the same rows are made.
        _digest_rows(self.rows(), into)


def has_columns(given: object) -> bool:
    """Whether this is a table of any kind, not a list of pairs."""
    libraries = (("pandas", "DataFrame"), ("datasets", "Dataset"), ("datasets", "DatasetDict"))
    return isinstance(given, Mapping) or any(_is_of(given, library, kind) for library, kind in libraries)


def open_held(given: Held) -> Opened:
    """What the caller holds, as rows."""
    kind = type(given).__name__
    if _is_of(given, "pandas", "DataFrame"):
        return Opened(_frame(given))
    if _is_of(given, "datasets", "Dataset"):
        return Opened(LibraryTable(given))
    if _is_of(given, "datasets", "DatasetDict"):
        raise DataError("this is a datasets.DatasetDict, of several splits", 'give one of them: data["test"]')
    if _is_of(given, "datasets", "IterableDataset"):
        raise DataError(
            "a datasets.IterableDataset can be read only once", "give list(data.take(1000)) or a file"
        )
    if isinstance(given, Mapping):
        return Opened(_columns(given))
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"{kind} is no labelled data", FORMS)
    return pairs_or_rows(given)


def pairs_or_rows(given: Iterable[Any], name: str = "pairs") -> Opened:
    """A list of (text, label), of ({field: text, …}, label), or of rows {column: value, …}."""
    items = list(given)
    if items and all(isinstance(item, Mapping) for item in items):
        return Opened(Memory(tuple({str(key): cell for key, cell in item.items()} for item in items), name))
    rows = tuple(_pair(item, number) for number, item in enumerate(items, start=1))
    return Opened(
        Memory(rows, name), tuple(field for field in rows[0] if field != LABEL) if rows else None, LABEL
    )


def _pair(item: Any, number: int) -> dict[str, Any]:
    where = row_place(number)
    if isinstance(item, str | bytes):
        raise DataError(f"{where} is a text without a label", FORMS)
    try:
        content, label = item
    except (TypeError, ValueError):
        parts = f" of {len(item)}" if hasattr(item, "__len__") else ""
        raise DataError(
            f"{where} is a {type(item).__name__}{parts}, not a pair of text and label", FORMS
        ) from None
    if isinstance(content, int) and isinstance(label, str):
        raise DataError(f"{where} is a pair of label and text", "the text comes first: (text, label)")
    return {**(content if isinstance(content, Mapping) else {TEXT: content}), LABEL: label}


def _columns(given: Mapping[Any, Any]) -> HeldColumns:
    lengths: dict[str, int] = {}
    for name, cells in given.items():
        if isinstance(cells, str | bytes | Mapping) or not hasattr(cells, "__len__"):
            raise DataError(
                f"{name!r} holds a {type(cells).__name__}, not a list of one value per row", FORMS
            )
        lengths[str(name)] = len(cells)
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{name!r} {length:,}" for name, length in list(lengths.items())[:20])
        raise DataError(f"the columns have different numbers of rows: {counted}", "give lists of one length")
    return HeldColumns(tuple(lengths), tuple(_plain(cells) for cells in given.values()))


def _frame(given: Any) -> HeldColumns:
    names = [str(name) for name in given.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"column {twice!r} occurs twice in the DataFrame", "rename one")
    cells = [given.iloc[:, place] for place in range(len(names))]
    known = [column.notna().tolist() for column in cells]
    return HeldColumns(
        tuple(names),
        tuple(
            [value if there else None for value, there in zip(column.tolist(), present, strict=True)]
            for column, present in zip(cells, known, strict=True)
        ),
        "DataFrame",
    )


def _plain(cells: Any) -> Sequence[Any]:
    """Python's own numbers, of which an array has none."""
    return cells.tolist() if hasattr(cells, "tolist") else list(cells)


def _is_of(given: object, library: str, kind: str) -> bool:
    return any(
        base.__name__ == kind and base.__module__.partition(".")[0] == library for base in type(given).__mro__
    )


def _digest_rows(rows: Iterable[Row], into: Digest) -> None:
    for row in rows:
        into.update(json.dumps([[name, str(value)] for name, value in (row.values or {}).items()]).encode())
