"""Sentences and their translations: two text files line by line, or two columns of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, cast

import numpy as np

from unfooled.core.result import Example
from unfooled.data.dataset import Selection, check_selection, text_of
from unfooled.data.held import has_columns, open_held
from unfooled.data.loading import find_named_folder, is_table, open_table
from unfooled.data.readers import (
    Digest,
    Held,
    Memory,
    Row,
    Source,
    digest_file,
    line_place,
    row_place,
    text_lines,
)
from unfooled.errors import DataError

SOURCE, TARGET = "source", "target"
FORMS = (
    "give SOURCE_FILE,TARGET_FILE with as many lines each, a table with --text-column SOURCE,TARGET, or a "
    "folder of SPLIT.LANGUAGE files with --text-column SOURCE,TARGET"
)


@dataclass(frozen=True, slots=True)
class TextFiles:
    """One file per language, a sentence per line; also gzipped. The second may be missing."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    encoding: str = "utf-8-sig"
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.paths[0].name

    def place(self, number: int) -> str:
        return line_place(number)

    def columns(self) -> tuple[str, ...]:
        return self.names

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        if len(self.paths) == 1:
            with text_lines(self.paths[0], self.encoding, "\n") as lines:
                for number, line in enumerate(lines, start=1):
                    yield Row(number, {self.names[0]: line.rstrip("\r\n")})
            return
        first, second = self.paths
        with text_lines(first, self.encoding, "\n") as left, text_lines(second, self.encoding, "\n") as right:
            for number, pair in enumerate(zip_longest(left, right), start=1):
                if None in pair:
                    shorter, longer = (first, second) if pair[0] is None else (second, first)
                    raise DataError(
                        f"{shorter} ends after {number - 1} lines, {longer} goes on: they are not parallel",
                        "give two files of which each line translates the same line of the other",
                    )
                yield Row(number, {k: line.rstrip("\r\n") for k, line in zip(self.names, pair, strict=True)})

    def class_names(self, column: str) -> tuple[str, ...]:
        return ()

    def digest(self, into: Digest) -> None:
        for path in self.paths:
            digest_file(path, into)
        into.update(json.dumps([self.encoding, self.names]).encode())


@dataclass(frozen=True)
class ParallelText:
    """Yields one `Example` per row: the sentence as its only field, the translation as its reference.

    It has no labels; beside that it is used like a `Dataset`.
    """

    name: str
    fields: tuple[str, ...]  # the name of the source column
    target: str  # the name of the column of translations; "" where there is none
    _source: Source = field(repr=False)
    _selection: Selection = field(repr=False)
    _rows: int = field(repr=False)
    labels: tuple[str, ...] = ()
    cleaning: tuple[str, ...] = ()
    _kept: tuple[int, ...] | None = field(default=None, repr=False)  # keys, rising; None: the whole selection

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str] | str], *, name: str = "pairs") -> ParallelText:
        """Sentences, or pairs of a sentence and its translation, that are in memory already."""
        items = [_pair(given, number) for number, given in enumerate(pairs, start=1)]
        if not items:
            raise DataError("there are no sentences", "give some")
        rows = Memory(tuple({SOURCE: source, TARGET: target} for source, target in items), name)
        return cls(name, (SOURCE,), TARGET, rows, Selection(), len(items))

    @property
    def edit(self) -> str:
        return self.fields[0]

    def __len__(self) -> int:
        return self._drawn.size if self._drawn is not None else self._selection.window(self._rows)

    def __iter__(self) -> Iterator[Example]:
        start = self._selection.offset
        wanted = None if self._drawn is None else set(self._drawn.tolist())
        rows = self._source.rows([column for column in (self.edit, self.target) if column])
        for key, row in islice(enumerate(rows), start, start + self._selection.window(self._rows)):
            if wanted is None or key in wanted:
                yield self._example(key, row)

    def nth_key(self, n: int) -> int:
        """The key of the n-th example, counted from 0; keys rise in the order of iteration."""
        if not 0 <= n < len(self):
            raise IndexError(f"example {n} of {len(self)}")
        return int(self._drawn[n]) if self._drawn is not None else self._selection.offset + n

    def fingerprint(self) -> str:
        """Changes with the data, the columns and the choice of rows; not with the file's name."""
        digest = hashlib.sha256()
        self._source.digest(digest)
        chosen = self._selection
        drawn = chosen.seed if chosen.sample is not None else None
        settings: list[Any] = [self.fields, self.target, chosen.offset, chosen.limit, chosen.sample, drawn]
        if self._kept is not None:
            settings.append(["only", *self._kept])
        digest.update(json.dumps(settings).encode())
        return digest.hexdigest()

    def classes(self) -> list[int]:
        """Sentences have none: all are of one kind."""
        return [0] * len(self)

    def only(self, keys: Iterable[int]) -> ParallelText:
        """Just the sentences of these keys."""
        return replace(self, _kept=tuple(sorted(keys)))

    def aligned(
        self, victim_labels: Sequence[str], label_map: Mapping[str, str] | None = None
    ) -> ParallelText:
        """The same: there are no labels to match."""
        return self

    @cached_property
    def _drawn(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        if self._kept is not None:
            return np.array(self._kept, dtype=np.int64)
        return self._selection.drawn(self._rows)

    def _example(self, key: int, row: Row) -> Example:
        values = row.values or {}
        text, reference, problem = "", "", row.problem
        try:
            text = text_of(values.get(self.edit)) if not problem else ""
            if self.target and values.get(self.target):
                reference = text_of(values.get(self.target))
        except ValueError as error:
            problem = str(error)
        if problem:
            problem = f"{self._source.place(row.number)}: {problem}"
        return Example(key, ((self.edit, text),), 0, self.edit, problem, reference=reference)


def load_parallel(
    source: str | Path,
    *,
    columns: Sequence[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    offset: int = 0,
    sample: int | None = None,
    seed: int = 0,
    encoding: str = "utf-8-sig",
) -> ParallelText:
    """Open parallel text: two files with a comma between, one file of sentences, a table, or a folder.

    `columns` names the source and the target of a table, or the two languages of a folder (or a named set)
    that holds files such as `train.en` and `train.de.gz`.
    """
    chosen = Selection(offset=offset, limit=limit, sample=sample, seed=seed)
    check_selection(chosen)
    opened = _open(str(source), columns, split, encoding)
    names = opened.columns()
    wanted = tuple(columns) if columns and not isinstance(opened, TextFiles) else names[:2]
    if not wanted or len(wanted) > 2 or any(name not in names for name in wanted):
        raise DataError(
            f"{opened.name}: the columns {', '.join(wanted) or '(none)'} are not two of {', '.join(names)}",
            "name source and target with --text-column SOURCE,TARGET",
        )
    if not isinstance(opened, TextFiles) and not columns and len(names) != 2:
        raise DataError(
            f"{opened.name}: which of the columns {', '.join(names)} is the source, which the target?",
            "name them with --text-column SOURCE,TARGET",
        )
    rows = sum(1 for _ in opened.rows(wanted))
    if offset >= rows:
        raise DataError(f"{opened.name}: there are {rows} rows, none from {offset} on", "check the file")
    target = wanted[1] if len(wanted) == 2 else ""
    return ParallelText(opened.name, wanted[:1], target, opened, chosen, rows)


def as_parallel(given: ParallelText | str | Path | Held) -> ParallelText:
    """Whatever a caller gave as parallel text: a path, pairs, or a table of one or two columns."""
    if isinstance(given, ParallelText):
        return given
    if isinstance(given, str | Path):
        return load_parallel(given)
    if not has_columns(given):
        return ParallelText.from_pairs(cast(Iterable[Any], given))
    source = open_held(given).source
    names = source.columns()
    if not 1 <= len(names) <= 2:
        raise DataError(
            f"{source.name}: which of the {len(names)} columns {', '.join(names)} is the source?",
            "give two columns, the source first",
        )
    rows = sum(1 for _ in source.rows(names))
    if not rows:
        raise DataError("there are no sentences", "give some")
    return ParallelText(
        source.name, names[:1], names[1] if len(names) == 2 else "", source, Selection(), rows
    )


def _pair(given: Any, number: int) -> tuple[str, str]:
    if isinstance(given, str):
        return given, ""
    if not isinstance(given, tuple | list) or len(given) != 2:
        size = f" of {len(given)}" if hasattr(given, "__len__") else ""
        raise DataError(
            f"{row_place(number)} is a {type(given).__name__}{size}, not a sentence or a pair of sentences",
            "give pairs of a sentence and its translation, or what load_parallel returns",
        )
    return given[0], given[1]


def _open(source: str, columns: Sequence[str] | None, split: str, encoding: str) -> Source:
    try:
        return _open_parts(source, columns, split, encoding)
    except (OSError, RuntimeError) as error:  # names that are too long, folders that may not be looked into
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{source[:200]}: cannot be opened ({reason})", "check the path") from error


def _open_parts(source: str, columns: Sequence[str] | None, split: str, encoding: str) -> Source:
    parts = [Path(part).expanduser() for part in source.split(",")]
    if len(parts) > 2:
        raise DataError(f"{source} names {len(parts)} files", FORMS)
    folder = find_named_folder(source)
    if folder is not None:
        return _in_folder(folder, columns, split, encoding)
    for path in parts:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file or named set", FORMS)
    if len(parts) == 1 and is_table(parts[0]):
        return open_table(parts[0], encoding)
    names = [_language(path) for path in parts]
    if "" in names or len(set(names)) < len(names):
        names = [SOURCE, TARGET][: len(parts)]
    return TextFiles(tuple(parts), tuple(names), encoding)


def _in_folder(folder: Path, columns: Sequence[str] | None, split: str, encoding: str) -> Source:
    """`SPLIT.LANGUAGE` or `SPLIT.LANGUAGE.gz` of each of the two languages."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".gz")
        if path.is_file() and (language := _language(path)):
            found.setdefault(name.removesuffix(f".{language}"), {})[language] = path
    found = {name: files for name, files in found.items() if len(files) > 1}
    if not found:
        raise DataError(f"the folder {folder} holds no parallel text", FORMS)
    if split not in found:
        raise DataError(
            f"{folder.name}: there is no split {split!r}", f"choose --split from {', '.join(sorted(found))}"
        )
    files = found[split]
    if not columns or len(columns) != 2 or any(column not in files for column in columns):
        raise DataError(
            f"{folder.name}: from which language to which?",
            f"name two of {', '.join(sorted(files))} in order: --text-column {','.join(sorted(files)[:2])}",
        )
    paths = tuple(files[column] for column in columns)
    return TextFiles(paths, tuple(columns), encoding, title=f"{folder.name}/{split}")


def _language(path: Path) -> str:
    """The ending that names a language: `en` of `train.en.gz`."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    return ending if ending != path.name.removesuffix(".gz") and 2 <= len(ending) <= 5 else ""
