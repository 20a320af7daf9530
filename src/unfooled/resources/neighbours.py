"""The nearest words of a word: a table made once, looked up in microseconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unfooled.errors import ResourceError
from unfooled.files import put_first, read_object, scratch_folder
from unfooled.resources import store
from unfooled.resources.store import Progress, silent
from unfooled.resources.vectors import Matrix, read_vectors, unit_rows

Item: TypeAlias = tuple[str, int, float]  # word in lower case, at most how many, least cosine

DEFAULT = "counter-fitted"
WORDS, IDS, COSINES = "words.json", "ids.npy", "cosines.npy"
_NEIGHBOURS = 100
_BLOCK = 512  # rows per matrix product; fixed, because the shape may change a product's last digits
_LIKELY = 0.3  # most words have more than k neighbours of at least this cosine
_REMEMBERED = 1 << 17


@dataclass(frozen=True, eq=False)
class NeighbourTable:
    """Row i of `ids` and `cosines` holds the neighbours of `words[i]`, best first; -1 fills short rows."""

    words: Sequence[str]
    ids: npt.NDArray[np.int32]
    cosines: npt.NDArray[np.float32]

    @classmethod
    def from_vectors(
        cls, words: Sequence[str], matrix: Matrix, *, k: int = _NEIGHBOURS, progress: Progress = silent
    ) -> NeighbourTable:
        """The k words of highest cosine, exactly; the word itself is left out, ties go by index."""
        unit = unit_rows(matrix)
        count, k = len(words), min(k, len(words) - 1)
        ids = np.empty((count, k), dtype=np.int32)
        cosines = np.empty((count, k), dtype=np.float32)
        for start in range(0, count, _BLOCK):
            progress("finding neighbours", start / count)
            block = unit[start : start + _BLOCK] @ unit.T
            for row, scores in enumerate(block, start=start):
                scores[row] = -2.0
                ids[row], cosines[row] = _best(scores, k)
        return cls(list(words), ids, cosines)

    @classmethod
    def from_lists(cls, lists: Mapping[str, Sequence[str]]) -> NeighbourTable:
        """Ready-made lists, best first. They have no cosines: every least cosine up to 1 lets them pass."""
        words = list(dict.fromkeys([*lists, *(other for others in lists.values() for other in others)]))
        index = {word: i for i, word in enumerate(words)}
        k = max((len(others) for others in lists.values()), default=0)
        ids = np.full((len(words), k), -1, dtype=np.int32)
        for word, others in lists.items():
            near = [index[other] for other in dict.fromkeys(others) if other != word]
            ids[index[word], : len(near)] = near
        return cls(words, ids, np.where(ids >= 0, 1.0, -2.0).astype(np.float32))

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / IDS, self.ids)
        np.save(folder / COSINES, self.cosines)
        (folder / WORDS).write_text(json.dumps(list(self.words), ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> NeighbourTable:
        """Maps the arrays into memory: processes on one machine share the pages."""
        words = json.loads((folder / WORDS).read_text(encoding="utf-8"))
        ids, cosines = (np.load(folder / name, mmap_mode="r") for name in (IDS, COSINES))
        return cls(words, np.asarray(ids), np.asarray(cosines))


def _best(scores: Matrix, k: int) -> tuple[npt.NDArray[np.intp], Matrix]:
    """The k highest, rounded so that the last digits of a product do not decide, ties by index."""
    near = np.flatnonzero(scores >= _LIKELY)  # far cheaper than a partition, and mostly enough
    if len(near) < k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        near = np.flatnonzero(scores >= least - 1e-6)
    rounded = np.round(scores[near], 6)
    order = np.argsort(-rounded, kind="stable")[:k]
    return near[order], rounded[order]


class NeighbourOracle:
    """Answers `neighbours` questions: item (word, k, least cosine) → words, best first."""

    batch_size = 1 << 16

    def __init__(self, table: NeighbourTable) -> None:
        self.table = table
        self._index = {word: i for i, word in enumerate(table.words)}
        self._look_up = lru_cache(maxsize=_REMEMBERED)(self._find)

    def __call__(self, items: Sequence[Item], /) -> list[tuple[str, ...]]:
        look_up = self._look_up
        return [look_up(word, k, least) for word, k, least in items]

    def _find(self, word: str, k: int, least: float) -> tuple[str, ...]:
        row = self._index.get(word)
        if row is None:
            return ()
        ids = self.table.ids[row, :k]
        words = self.table.words
        return tuple([words[i] for i in ids[(ids >= 0) & (self.table.cosines[row, :k] >= least)].tolist()])


def open_neighbours(variant: str = "") -> NeighbourOracle:
    """A registered table by name ("" is counter-fitted), or by path: a saved table's folder, a `.json` file
    of lists, or a text file of word vectors."""
    name = variant or DEFAULT
    path = Path(name)
    if name == DEFAULT:
        return NeighbourOracle(_load_table(store.path(DEFAULT)))
    if path.is_dir():
        return NeighbourOracle(_load_table(path))
    if not path.is_file():
        raise ResourceError(
            f"there are no neighbours called {name!r}, and no such file",
            f'use "{DEFAULT}", or the path of a JSON file of lists or of a text file of word vectors',
        )
    if path.suffix == ".json":
        return NeighbourOracle(NeighbourTable.from_lists(_read_lists(path)))
    return NeighbourOracle(_load_table(_table_of_vectors(path)))


def _load_table(folder: Path) -> NeighbourTable:
    try:
        return NeighbourTable.load(folder)
    except (OSError, ValueError) as error:
        raise ResourceError(
            f"{folder} does not hold a neighbour table: {error}",
            f"it needs the files {WORDS}, {IDS} and {COSINES}",
        ) from error


def _read_lists(path: Path) -> dict[str, list[str]]:
    form = 'write {"word": ["neighbour", …], …}'
    content = read_object(path, ResourceError, "holds no lists of neighbours", form)
    for word, others in content.items():
        if not (isinstance(others, list) and all(isinstance(other, str) for other in others)):
            raise ResourceError(
                f"{path}: the neighbours of {word!r} are not a list of words",
                'write {"word": ["neighbour", …]}',
            )
    return content


def _table_of_vectors(path: Path) -> Path:
    """The table of a user's vectors, made on first use and kept under the file's checksum."""
    with path.open("rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    root = store.cache_dir()
    folder = root / f"neighbours-{key}"
    if not folder.is_dir():
        words, matrix = read_vectors(path)
        table = NeighbourTable.from_vectors(words, matrix)
        with scratch_folder(root, "neighbours") as scratch:
            table.save(scratch / "new")
            put_first(scratch / "new", folder, folder)
    return folder
