"""One small reader per file format. Each can be read again and again and never holds more than a few rows."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from unfooled.errors import DataError, MissingExtraError

_CHUNK = 1 << 20
_PEEK = 200


class Row(NamedTuple):
    """One row. `number` is what an editor shows: the file's line where it has lines, counted from 1."""

    number: int
    values: Mapping[str, Any] | None
    problem: str = ""


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class Source(Protocol):
    """Where rows come from. Picklable, so that workers can open it on their own."""

    @property
    def name(self) -> str: ...

    def place(self, number: int) -> str:
        """How a row's number is shown: a line of a file where there are lines."""
        ...

    def columns(self) -> tuple[str, ...]: ...

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Every row from the first; `columns` says which will be looked at."""
        ...

    def class_names(self, column: str) -> tuple[str, ...]:
        """Names of the numbers in a label column, where the source itself knows them."""
        ...

    def digest(self, into: Digest) -> None:
        """Feed in everything that the rows depend on."""
        ...


def line_place(number: int) -> str:
    return f"line {number} of the file"


def row_place(number: int) -> str:
    return f"row {number} of the data"


def digest_file(path: Path, into: Digest) -> None:
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            into.update(chunk)


# -- text files ------------------------------------------------------------------------------------------


def _binary(path: Path) -> gzip.GzipFile | io.BufferedReader:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")
    return open(path, "rb")


@contextmanager
def text_lines(path: Path, encoding: str, newline: str | None) -> Iterator[IO[str]]:
    """The file as text; whatever is wrong with its bytes becomes an error that says where."""
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise DataError(f"there is no encoding {encoding!r}", "--encoding utf-8 is the usual one") from error
    try:
        with _binary(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline=newline) as text:
            yield text
    except UnicodeDecodeError as error:
        offset, line = _bad_byte(path, encoding)
        raise DataError(
            f"{path}: byte {offset} (line {line}) is not valid {encoding}",
            "name the file's encoding, for example --encoding latin-1 or --encoding utf-16",
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip data ({error})", "copy or download the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _bad_byte(path: Path, encoding: str) -> tuple[int, int]:
    """Offset and line of the first byte that cannot be decoded."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = lines = 0
    with _binary(path) as raw:
        while True:
            chunk = raw.read(_CHUNK)
            try:
                decoder.decode(chunk, not chunk)
            except UnicodeDecodeError as error:
                # The decoder saw what was left over from before (or less, after a byte order mark).
                seen = len(error.object) - len(chunk)
                before = chunk[: max(0, error.start - seen)]
                return done - seen + error.start, lines + before.count(b"\n") + 1
            done += len(chunk)
            lines += chunk.count(b"\n")
            if not chunk:
                return done, lines + 1


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One JSON object per line, also gzipped. `classes` names the numbers of the label column."""

    path: Path
    encoding: str = "utf-8-sig"
    classes: tuple[str, ...] = ()
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.path.name

    def place(self, number: int) -> str:
        return line_place(number)

    def columns(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for _, row in zip(range(_PEEK), self.rows(), strict=False):
            names.update(dict.fromkeys(row.values or ()))
        return tuple(names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        with text_lines(self.path, self.encoding, None) as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if number == 1 and line.strip().startswith("["):
                        raise _json_array(self.path) from error
                    yield Row(number, None, f"broken JSON ({getattr(error, 'msg', 'nested too deeply')})")
                    continue
                if isinstance(value, dict):
                    yield Row(number, value)
                elif number == 1 and isinstance(value, list):
                    raise _json_array(self.path)
                else:
                    yield Row(number, None, f"a JSON {type(value).__name__} where an object is expected")

    def class_names(self, column: str) -> tuple[str, ...]:
        return self.classes

    def digest(self, into: Digest) -> None:
        digest_file(self.path, into)
        into.update(json.dumps([self.encoding, self.classes]).encode())


def _json_array(path: Path) -> DataError:
    return DataError(
        f"{path}: this is one JSON array, which cannot be read row by row",
        "write one object per line (jq -c '.[]' does) or save as CSV",
    )


# -- Arrow -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parquet:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def place(self, number: int) -> str:
        return row_place(number)

    def columns(self) -> tuple[str, ...]:
        with self._file() as file:
            return tuple(file.schema_arrow.names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        number = 0
        with self._file() as file:
            for batch in file.iter_batches(
                batch_size=1024, columns=None if columns is None else list(columns)
            ):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)

    def class_names(self, column: str) -> tuple[str, ...]:
        """The `datasets` library writes class names into the file's metadata."""
        with self._file() as file:
            about = (file.schema_arrow.metadata or {}).get(b"huggingface", b"{}")
        feature = json.loads(about).get("info", {}).get("features", {}).get(column, {})
        return tuple(feature.get("names", ())) if isinstance(feature, dict) else ()

    def digest(self, into: Digest) -> None:
        digest_file(self.path, into)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError("reading Parquet", "data") from error
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{self.path}: cannot be read as Parquet ({error})") from error


# -- memory ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """Rows that the caller holds already."""

    items: tuple[Mapping[str, Any], ...]
    name: str = "pairs"

    def place(self, number: int) -> str:
        return row_place(number)

    def columns(self) -> tuple[str, ...]:
        return tuple(self.items[0]) if self.items else ()

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        for number, values in enumerate(self.items, start=1):
            yield Row(number, values)

    def class_names(self, column: str) -> tuple[str, ...]:
        return ()

    def digest(self, into: Digest) -> None:
        for values in self.items:
            into.update(json.dumps([[name, str(value)] for name, value in values.items()]).encode())
