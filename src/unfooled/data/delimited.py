"""CSV and TSV, read so that one stray quotation mark cannot swallow the rest of a file in silence."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from unfooled.data.readers import LONGEST_ROW, Digest, Row, check_width, digest_file, line_place, text_lines
from unfooled.errors import DataError

_MOST_LINES = 1 << 20  # of one record
# A spreadsheet runs a cell that begins as a formula. Our exports put an apostrophe before it and name in the
# last column, as a JSON list, which cells of the row got one; so that what is read back is what was written.
NEUTRALISED = "neutralised"
EXPORTED = ("key", "outcome", "label", "label_name")  # how the header of our exports begins
_QUOTED = re.compile(r'"(?:[^"]++|"")*+("?)')


class _DelimitedRecord(NamedTuple):
    first: int  # lines of the file
    last: int
    cells: list[str]


class _Feed:
    """Hands lines to the csv module and keeps those of the record being read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self.record: list[str] = []
        self.size = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.record.append(line)
            self.size += len(line)
            if self.full:
                raise csv.Error("too long")
            yield line
        self.ended = True

    @property
    def full(self) -> bool:
        return self.size > LONGEST_ROW or len(self.record) > _MOST_LINES

    def start(self) -> None:
        self.record.clear()
        self.size = 0


@dataclass(frozen=True, slots=True)
class Delimited:
    """CSV and TSV with a header, also gzipped."""

    path: Path
    encoding: str = "utf-8-sig"

    @property
    def name(self) -> str:
        return self.path.name

    def place(self, number: int) -> str:
        return line_place(number)

    def columns(self) -> tuple[str, ...]:
        with closing(self._records()) as records:
            return self._header(next(records, None))

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        with closing(self._records()) as records:
            names = self._header(next(records, None))
            for first, last, cells in records:
                if not cells:
                    continue  # a blank line is no row
                if len(cells) != len(names):
                    yield Row(first, None, _miscounted(len(cells), len(names), first, last))
                    continue
                values = dict(zip(names, cells, strict=True))
                if _is_neutralised(names):
                    problem = _restore(values)
                    if problem:
                        yield Row(first, None, problem)
                        continue
                yield Row(first, values)

    def class_names(self, column: str) -> tuple[str, ...]:
        return ()

    def digest(self, into: Digest) -> None:
        digest_file(self.path, into)
        into.update(self.encoding.encode())

    # -- inside ------------------------------------------------------------------------------------

    def _header(self, record: _DelimitedRecord | None) -> tuple[str, ...]:
        if record is None or not record.cells:
            raise DataError(
                f"{self.path}: the file is empty", "a first line with the columns' names is needed"
            )
        check_width(self.name, len(record.cells))
        names = tuple(name.strip().removeprefix("\ufeff") for name in record.cells)
        if _is_neutralised(names):
            from unfooled.files import FORMULA

            safe = re.compile("'+" + FORMULA.pattern)
            names = tuple(name[1:] if safe.match(name) else name for name in names)
        twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
        if twice:
            raise DataError(f"{self.path}: column {twice[0]!r} occurs twice in the header", "rename one")
        return names

    def _records(self) -> Generator[_DelimitedRecord, None, None]:
        dialect = self._dialect()
        with text_lines(self.path, self.encoding, "") as lines:
            feed = _Feed(lines)
            reader = csv.reader(feed, strict=True, **dialect)
            while True:
                first = reader.line_num + 1
                feed.start()
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error:
                    self._refuse(feed, first, dialect)
                    # Marks in odd places that stay within their line harm nobody: `"so" called,1`.
                    cells = next(csv.reader(feed.record, **dialect))
                yield _DelimitedRecord(first, reader.line_num, cells)

    def _refuse(self, feed: _Feed, first: int, dialect: dict[str, Any]) -> None:
        """Raise where reading on would lose rows."""
        quoted = dialect["quoting"] != csv.QUOTE_NONE
        skipped = _open_quote(feed.record, dialect["delimiter"]) if quoted else None
        last = first + len(feed.record) - 1
        if skipped is not None and (last > first or not feed.full):
            opened = first + skipped
            end = f"closed in the middle of a text on line {last}"
            if feed.ended:
                end = "never closed"
            elif feed.full:
                end = f"not closed within {LONGEST_ROW:,} characters"
                if feed.size <= LONGEST_ROW:
                    end = f"not closed within {_MOST_LINES:,} lines"
            lost = last - opened
            swallowed = f"; it swallows the {lost:,} lines after it" if lost > 1 else ""
            swallowed = "; it swallows the line after it" if lost == 1 else swallowed
            raise DataError(
                f"{self.path}: a quotation mark is opened on line {opened} and {end}{swallowed}",
                'close it, or write it twice ("") inside a quoted text where it belongs to the text',
            )
        if feed.full:
            raise DataError(
                f"{self.path}: a field on line {last} is too long (over {LONGEST_ROW:,} characters)",
                "shorten or remove that row",
            )

    def _dialect(self) -> dict[str, Any]:
        csv.field_size_limit(2**31 - 1)
        with text_lines(self.path, self.encoding, "") as lines:
            header = next(lines, "")
            delimiter = "\t" if ".tsv" in self.path.name.lower() else ","
            if delimiter not in header:
                delimiter = next((mark for mark in "\t;|," if mark in header), delimiter)
            # The whole file is looked at: a bare mark may stand in its last line.
            quoted = delimiter != "\t" or _quotes_are_syntax(header, lines)
        return {"delimiter": delimiter, "quoting": csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE}


def _is_neutralised(names: Sequence[str]) -> bool:
    return tuple(names[: len(EXPORTED)]) == EXPORTED and names[-1] == NEUTRALISED


def _restore(values: dict[str, str]) -> str:
    """Take the apostrophes of an export away again; what is wrong with the row, where something is."""
    marked = values[NEUTRALISED]
    if not marked:
        return ""
    try:
        names = json.loads(marked)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list):
        return f"the column {NEUTRALISED} is no list of columns"
    for name in names:
        if not isinstance(name, str) or not values.get(name, "").startswith("'"):
            return (
                f"the column {NEUTRALISED} names {str(name)[:40]!r}, which does not begin with an apostrophe"
            )
        values[name] = values[name][1:]
    return ""


def _open_quote(record: Sequence[str], delimiter: str) -> int | None:
    """The line, counted from 0, of the first quotation mark whose text goes on to where it should not."""
    text = "".join(record)
    at = 0
    while at < len(text):
        if text[at] == '"':
            field = _QUOTED.match(text, at)
            assert field is not None
            proper = field[1] and text[field.end() : field.end() + 1] in ("", delimiter, "\r", "\n")
            # A mark within one line is the writer's sloppiness; one over several lines eats rows.
            if not proper and (not field[1] or "\n" in field[0] or "\r" in field[0]):
                return _line_at(record, at)
            at = field.end()
        found = text.find(delimiter, at)
        if found < 0:
            return None
        at = found + 1
    return None


def _line_at(record: Sequence[str], at: int) -> int:
    for number, line in enumerate(record):
        at -= len(line)
        if at < 0:
            return number
    return len(record) - 1


def _miscounted(cells: int, names: int, first: int, last: int) -> str:
    hint = "; a text with a comma needs quotation marks around it" if cells > names else ""
    span = f" (the row goes on to line {last})" if last > first else ""
    return f"{cells} {'column' if cells == 1 else 'columns'} where the header has {names}{span}{hint}"


def _quotes_are_syntax(header: str, lines: Iterable[str]) -> bool:
    """Whether a tab-separated file quotes its cells; many hold bare quotation marks as plain text."""
    width = header.count("\t")
    for line in chain([header], lines):
        if '"' not in line:
            continue
        if line.count("\t") != width:
            return True
        for cell in line.rstrip("\r\n").split("\t"):
            if cell.startswith('"') and not (
                len(cell) > 1 and cell.endswith('"') and '"' not in cell[1:-1].replace('""', "")
            ):
                return False
    return True
