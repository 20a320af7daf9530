"""Word vectors in text files: one word and its numbers per line, with or without a first line of sizes."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unfooled.errors import ResourceError

Matrix = npt.NDArray[np.float32]


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
