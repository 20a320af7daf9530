"""One small reader per file format. Each can be read again and again and never holds more than a few rows."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from unfooled.errors import DataError

# What a file may do to the memory and the time of who reads it. Parquet keeps to the same numbers.
LONGEST_ROW = 1 << 24  # characters of a row; no text to attack is longer
MOST_GROWTH = 200  # how many times its size a packed file may have unpacked; text reaches 3 to 20
MOST_COLUMNS = 10_000
PACKED_FREELY = 16 << 20  # bytes that any packed file may have unpacked

_CHUNK = 1 << 20
_PEEK = 200
_HEAD = 4096
_GZIP = b"\x1f\x8b"
_KINDS = {
    _GZIP: "gzip data",
    b"PK\x03\x04": "a zip archive",
    b"BZh": "bzip2 data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"SQLite format 3": "an SQLite file",
}
_MARKS = {  # the longer ones first: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Which of four bytes in a row are zero in most characters of a file with a Latin header and line ends.
_ZEROS = {"utf-16-le": (1, 3), "utf-16-be": (0, 2), "utf-32-le": (1, 2, 3), "utf-32-be": (0, 1, 2)}
# Codecs of Python that read no files: of names of hosts, of its own source, of nothing.
_NO_FILES = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}


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


class Opened(NamedTuple):
    """Rows, and the columns of text and label where these need no guess."""

    source: Source
    text: tuple[str, ...] | None = None
    label: str | None = None


# What may be given where data is asked for in Python, beside what is loaded already (see `held.py`).
Held: TypeAlias = Mapping[str, Any] | Iterable[Any]


def line_place(number: int) -> str:
    return f"line {number} of the file"


def row_place(number: int) -> str:
    return f"row {number} of the data"


def check_width(name: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name}: there are {columns:,} columns", f"name at most {MOST_COLUMNS:,} in the first line"
        )


def digest_file(path: Path, into: Digest) -> None:
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            into.update(chunk)


# -- text files ------------------------------------------------------------------------------------------


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, read up to where it grows beyond all measure."""

    def __init__(self, packed: io.BufferedReader, path: Path) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self._path = path
        self._packed = packed
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        count = self._file.readinto(into)
        self._done += count
        # Against what was read of it so far: a file of any size is stopped early.
        if self._done > max(PACKED_FREELY, MOST_GROWTH * self._packed.tell()):
            raise too_much_packed(self._path)
        return count

    def close(self) -> None:
        self._packed.close()
        super().close()


def too_much_packed(path: Path) -> DataError:
    return DataError(
        f"{path}: unpacked, this is more than {MOST_GROWTH} times as large as packed, and more than "
        f"{PACKED_FREELY >> 20} MB",
        "no text packs so well; if it is really data, unpack it first",
    )


def open_regular(path: Path) -> io.BufferedReader:
    """The file's bytes. A pipe or a device, which may never end, is refused without waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_regular(path)
    return open(descriptor, "rb")


def not_regular(path: Path) -> DataError:
    return DataError(f"{path}: this is not a regular file", "save the data to a file first")


def _binary(path: Path) -> io.BufferedReader:
    file = open_regular(path)
    try:
        if path.suffix.lower() != ".gz":
            return file
        head = file.peek(_HEAD)[:_HEAD]
        if head and not head.startswith(_GZIP):
            raise DataError(
                f"{path}: damaged gzip data (it begins like {_kind(head) or 'something else'})",
                "copy or download the file again, or give it the ending that it should have",
            )
        return io.BufferedReader(_Unpacked(file, path))
    except BaseException:
        file.close()
        raise


@contextmanager
def text_lines(path: Path, encoding: str, newline: str | None) -> Iterator[Iterator[str]]:
    """The lines of a file; whatever is wrong with its bytes becomes an error that says where.

    No more than one line is held, and none that is longer than `LONGEST_ROW` characters.
    """
    check_encoding(encoding)
    try:
        with _binary(path) as raw:
            _check_kind(path, raw.peek(_HEAD)[:_HEAD], encoding)
            with io.TextIOWrapper(raw, encoding=encoding, newline=newline) as text:
                yield _lines(path, text)
    except UnicodeDecodeError as error:
        offset, line = _bad_byte(path, encoding)
        raise DataError(
            f"{path}: byte {offset} (line {line}) is not valid {encoding}",
            "name the file's encoding, for example --encoding latin-1 or --encoding utf-16",
        ) from error
    except UnicodeError as error:
        raise DataError(
            f"{path}: is not valid {encoding} ({error})", "name the file's encoding with --encoding"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip data ({error})", "copy or download the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _lines(path: Path, text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST_ROW + 1):
        number += 1
        if len(line) > LONGEST_ROW:
            raise DataError(
                f"{path}: a field on line {number} is too long (over {LONGEST_ROW:,} characters)",
                "shorten or remove that row",
            )
        yield line


def check_encoding(encoding: str) -> None:
    """Refuse names that are no encoding, and those of Python's codecs that are no encoding of files."""
    try:
        known = codecs.lookup(encoding)
        "".encode(encoding)  # codecs that turn bytes into bytes are refused here
        usable = known.name not in _NO_FILES
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise DataError(f"there is no encoding {encoding!r} of files", "--encoding utf-8 is the usual one")


def _check_kind(path: Path, head: bytes, encoding: str) -> None:
    """Refuse what can be read in the given encoding but means something else."""
    if kind := _kind(head):
        raise DataError(f"{path}: this is {kind}, not text", "unpack or convert it first")
    name = codecs.lookup(encoding).name
    wide = _wide(head)
    if name.startswith(("utf-16", "utf-32")):
        marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
        if name.endswith(("-le", "-be")) or marked or not head:
            return
        found = wide or ("utf-8" if _is_utf8(head) else f"{name}-le or {name}-be")
        raise DataError(
            f"{path}: there is no byte order mark, so this is no plain {name}", f"pass --encoding {found}"
        )
    if wide:
        raise DataError(
            f"{path}: this looks like {wide.upper()}, not {encoding}", f"pass --encoding {wide.lower()}"
        )


def _kind(head: bytes) -> str:
    return next((kind for start, kind in _KINDS.items() if head.startswith(start)), "")


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _wide(head: bytes) -> str:
    """The encoding of two or four bytes per character that these bytes show, by its mark or its zeros."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    zeros = [head[place::4].count(0) / max(1, len(head[place::4])) for place in range(4)]
    for name, at in _ZEROS.items():
        if len(head) >= 8 and all((zeros[place] > 0.5) == (place in at) for place in range(4)):
            return name
    return ""


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
                    yield Row(number, None, f"broken JSON ({_json_problem(error)})")
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


def _json_problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else "a number with too many digits"


def _json_array(path: Path) -> DataError:
    return DataError(
        f"{path}: this is one JSON array, which cannot be read row by row",
        "write one object per line (jq -c '.[]' does) or save as CSV",
    )


# -- Arrow -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableOnDisk:
    """Rows without lines, in a file or a folder that is named after itself."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def place(self, number: int) -> str:
        return row_place(number)


@dataclass(frozen=True, slots=True)
class Parquet(TableOnDisk):
    def columns(self) -> tuple[str, ...]:
        with self._file() as file:
            return tuple(file.schema_arrow.names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        number = 0
        with self._file() as file:
            wanted = list(file.schema_arrow.names if columns is None else columns)
            for batch in file.iter_batches(batch_size=self._batch_size(file, set(wanted)), columns=wanted):
                # What is dear to hold is taken row by row.
                step = len(batch) if batch.nbytes <= LONGEST_ROW else 1
                for start in range(0, len(batch), max(1, step)):
                    piece = batch.slice(start, step)
                    if piece.nbytes > 4 * LONGEST_ROW and len(piece) == 1:
                        raise DataError(
                            f"{self.path}: row {number + 1} is too long (over {4 * LONGEST_ROW:,} bytes)",
                            "shorten or remove that row",
                        )
                    for values in piece.to_pylist():
                        number += 1
                        yield Row(number, values)

    def class_names(self, column: str) -> tuple[str, ...]:
        """The `datasets` library writes class names into the file's metadata."""
        with self._file() as file:
            about = (file.schema_arrow.metadata or {}).get(b"huggingface", b"{}")
        try:
            feature = json.loads(about)
            for key in ("info", "features", column):
                feature = feature.get(key) or {}
            names = feature.get("names") or [] if isinstance(feature, dict) else []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("class names that are no list of names")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{self.path}: its note about columns cannot be read ({type(error).__name__}: {error})",
                "write the file again without the entry `huggingface` in its metadata",
            ) from error
        return tuple(names)

    def digest(self, into: Digest) -> None:
        digest_file(self.path, into)

    def _batch_size(self, file: Any, wanted: set[str]) -> int:
        """Rows to unpack at once. A row of few bytes may point to a long text that is stored once."""
        packed = unpacked = longest = 0
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            for place in range(about.num_columns):
                column = about.column(place)
                if column.path_in_schema.partition(".")[0] not in wanted:
                    continue
                packed += column.total_compressed_size
                unpacked += column.total_uncompressed_size
                if column.has_dictionary_page:
                    shared = column.data_page_offset - (column.dictionary_page_offset or 0)
                    others = max(0, column.total_compressed_size - shared)
                    longest = max(longest, column.total_uncompressed_size - others)
        if unpacked > max(PACKED_FREELY, MOST_GROWTH * packed):
            raise too_much_packed(self.path)
        return max(1, min(1024, 4 * PACKED_FREELY // max(1, longest)))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        from unfooled.extras import libraries_of

        with libraries_of("data", "pyarrow", needed_for="reading Parquet"):
            import pyarrow
            import pyarrow.parquet
        try:
            with open_regular(self.path) as raw, pyarrow.parquet.ParquetFile(raw) as file:
                names = file.schema_arrow.names
                if len(set(names)) < len(names):
                    twice = next(name for name in names if names.count(name) > 1)
                    raise DataError(f"{self.path}: column {twice!r} occurs twice", "rename one")
                yield file
        except (pyarrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise DataError(
                f"{self.path}: cannot be read as Parquet ({reason})", "write or download the file again"
            ) from error


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
