"""Data sets of the `datasets` library: a folder it saved, or a name on the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from unfooled.data.readers import LONGEST_ROW, Digest, Row, TableOnDisk, digest_file, not_regular, row_place
from unfooled.errors import DataError
from unfooled.extras import libraries_of

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class SavedFolder(TableOnDisk):
    """A folder written by `save_to_disk`; memory-mapped, so its size does not matter."""

    split: str

    def columns(self) -> tuple[str, ...]:
        return tuple(_open_folder(self.path, self.split).column_names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        try:
            yield from rows_of(_open_folder(self.path, self.split), columns)
        except (ValueError, TypeError, OSError, ArithmeticError) as error:
            raise _unusable(self.path, error) from error

    def class_names(self, column: str) -> tuple[str, ...]:
        return class_names_of(_open_folder(self.path, self.split), column)

    def digest(self, into: Digest) -> None:
        folder = self.path / self.split if (self.path / "dataset_dict.json").exists() else self.path
        for file in sorted(folder.glob("*.arrow")):
            digest_file(file, into)
        digest_file(folder / "dataset_info.json", into)


@dataclass(frozen=True, slots=True)
class HubName:
    """A data set by its name on the hub, optionally with a configuration: `glue` and `sst2`."""

    repository: str
    configuration: str
    split: str

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.configuration}" if self.configuration else self.repository

    def place(self, number: int) -> str:
        return row_place(number)

    def columns(self) -> tuple[str, ...]:
        return tuple(self._table().column_names)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        return rows_of(self._table(), columns)

    def class_names(self, column: str) -> tuple[str, ...]:
        return class_names_of(self._table(), column)

    def digest(self, into: Digest) -> None:
        # The library's own fingerprint covers the downloaded files and how they were read.
        into.update(f"{self.name}\n{self.split}\n{self._table()._fingerprint}".encode())

    def _table(self) -> Any:
        return _open_hub(self.repository, self.configuration, self.split)


def is_saved_folder(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def saved_splits(path: Path) -> list[str]:
    """The splits of a folder that `DatasetDict.save_to_disk` wrote; none where it is no such folder."""
    if not (path / "dataset_dict.json").is_file():
        return []
    return sorted(file.parent.name for file in path.glob("*/state.json"))


def _library() -> Any:
    with libraries_of("data", "datasets", needed_for="reading a data set of the datasets library"):
        import datasets
    return datasets


@lru_cache(maxsize=4)
def _open_folder(path: Path, split: str) -> Any:
    library = _library()
    strange = next((file for file in path.rglob("*") if not file.is_file() and not file.is_dir()), None)
    if strange is not None:  # a pipe would be waited for without end
        raise not_regular(strange)
    try:
        loaded = library.load_from_disk(os.fspath(path))
    except Exception as error:
        raise _unusable(path, error) from error
    if not isinstance(loaded, library.DatasetDict):
        return loaded
    if split not in loaded:
        raise DataError(f"{path}: there is no split {split!r}", f"choose --split from {', '.join(loaded)}")
    return loaded[split]


@lru_cache(maxsize=4)
def _open_hub(repository: str, configuration: str, split: str) -> Any:
    library = _library()
    try:
        return library.load_dataset(repository, configuration or None, split=split)
    except ValueError as error:
        if "split" in str(error).lower():
            raise DataError(f"hf:{repository}: {error}", "choose another --split") from error
        raise _unreachable(repository, error) from error
    except Exception as error:
        # The library raises a different class for every way in which a hub can be out of reach.
        raise _unreachable(repository, error) from error


def _unusable(path: Path, error: Exception) -> DataError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return DataError(
        f"{path}: cannot be read as a saved data set ({reason})", "save it again with save_to_disk"
    )


def _unreachable(repository: str, error: Exception) -> DataError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return DataError(
        f"hf:{repository}: cannot be loaded from the hub ({reason})",
        "check the name and the network, or give a local file or a folder saved with save_to_disk",
    )


def rows_of(table: Any, columns: Sequence[str] | None) -> Iterator[Row]:
    number = 0
    if columns is not None:
        table = table.select_columns(list(columns))
    # What is dear to hold is taken row by row.
    step = _BATCH if table.data.nbytes <= LONGEST_ROW * max(1, len(table) // _BATCH) else 1
    for batch in table.with_format(None).iter(batch_size=step):
        names = list(batch)
        for cells in zip(*batch.values(), strict=True):
            number += 1
            yield Row(number, dict(zip(names, cells, strict=True)))


def class_names_of(table: Any, column: str) -> tuple[str, ...]:
    return tuple(getattr(table.features.get(column), "names", None) or ())
