"""Word vectors: the packaged ones by name, and text files of one word and its numbers per line.

As an oracle, `vectors:counter-fitted` or another name or path: item a word, answer its vector, or None.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.resources import store

Matrix = npt.NDArray[np.float32]

NAMES = ("glove-6b-50d", "glove-840b", "counter-fitted")


def load_word_vectors(name_or_path: str | Path) -> tuple[list[str], Matrix]:
    """Words, most frequent first where that is known, and a float32 matrix with a row for each.

    One of `NAMES`, or the path of a text file. Packaged matrices are mapped, not copied, into memory.
    """
    name = str(name_or_path)
    if name == "glove-840b":
        return read_vectors(store.path(name) / "glove.840B.300d_filtered.txt")
    if name == "glove-6b-50d":
        folder = store.path(name)
        words = read_strings(folder / "glove_6B_index.parquet")
        return _fitting(words, folder / "glove_6B_50d_emb.npy")
    if name == "counter-fitted":
        folder = store.path(name)
        words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
        return _fitting(words, folder / "vectors.npy")
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        raise ResourceError(
            f"there are no word vectors called {name!r}, and no such file",
            f"use one of {', '.join(NAMES)}, or the path of a text file of word vectors",
        )
    return read_vectors(path)


class WordVectorOracle:
    """Looks words up as they are written; the packaged vectors know lower case only."""

    batch_size = 1 << 14

    def __init__(self, words: Sequence[str], matrix: Matrix) -> None:
        self._index = {word: row for row, word in enumerate(words)}
        self._matrix = matrix

    def __call__(self, items: Sequence[str], /) -> list[Matrix | None]:
        rows = (self._index.get(word) for word in items)
        return [None if row is None else np.array(self._matrix[row]) for row in rows]


def open_vectors(variant: str = "") -> WordVectorOracle:
    return WordVectorOracle(*load_word_vectors(variant or "counter-fitted"))


def read_strings(path: Path) -> list[str]:
    """The only column of a Parquet file, which must be one of strings without empty rows."""
    with libraries_of(
        "train", "pyarrow", needed_for="these word vectors, whose words are in a Parquet file,"
    ):
        import pyarrow
        import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
        if table.schema.types != [pyarrow.string()] or table.column(0).null_count:
            raise ValueError("it has other columns, or empty rows")
        words: list[str] = table.column(0).to_pylist()
    except (OSError, ValueError, MemoryError, pyarrow.ArrowException) as error:
        raise ResourceError(
            f"{path} cannot be read as a Parquet file with one column of strings ({error})",
            "get the file again; it may be cut short",
        ) from error
    return words


def _fitting(words: list[str], path: Path) -> tuple[list[str], Matrix]:
    try:
        matrix: Matrix = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise ResourceError(
            f"{path} holds no vectors: {error}", "remove its folder and get it again"
        ) from error
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise ResourceError(
            f"{path} has the shape {matrix.shape}, but there are {len(words)} words",
            "remove its folder and get it again",
        )
    return words, matrix


def read_vectors(path: Path) -> tuple[list[str], Matrix]:
    """Words and a float32 matrix with a row for each. The first of two equal words wins."""
    words: list[str] = []
    rows: list[Matrix] = []
    seen: set[str] = set()
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            word, _, rest = line.rstrip("\r\n").partition(" ")
            row = _numbers(rest, path, number)
            if number == 1 and len(row) == 1 and word.isdigit():  # "33860 300": how many rows and columns
                continue
            if rows and len(row) != len(rows[0]):
                raise ResourceError(
                    f"{path}, line {number}: {len(row)} numbers, but the lines before have {len(rows[0])}",
                    "every line needs a word and the same count of numbers, with spaces between",
                )
            if word not in seen:
                seen.add(word)
                words.append(word)
                rows.append(row)
    if not rows:
        raise ResourceError(f"{path} has no vectors", "give a text file with a word and its numbers per line")
    return words, np.stack(rows)


def unit_rows(matrix: Matrix) -> Matrix:
    """Rows of length one; a row of zeros stays."""
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    unit: Matrix = (matrix / np.maximum(length, 1e-12)[:, None]).astype(np.float32)
    return unit


def _numbers(text: str, path: Path, number: int) -> Matrix:
    try:
        row: Matrix = np.array(text.split(), dtype=np.float32)
    except ValueError as error:
        raise ResourceError(
            f"{path}, line {number}: {error}",
            "every line needs a word and its numbers, with spaces between",
        ) from error
    if not len(row) or not np.isfinite(row).all():
        raise ResourceError(
            f"{path}, line {number}: no finite numbers after the word",
            "every line needs a word and its numbers, with spaces between",
        )
    return row
