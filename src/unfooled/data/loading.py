"""From what the user typed to a `Dataset`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from unfooled.data.dataset import Dataset, Selection, build
from unfooled.data.delimited import Delimited
from unfooled.data.readers import Held, JsonLines, Opened, Parquet, Source, not_regular, open_regular
from unfooled.errors import DataError

VARIABLE = "UNFOOLED_DATA"
FORMATS = ".csv, .tsv, .jsonl (each also .gz), .parquet, a folder of the datasets library, hf:org/name"
_LARGEST_LIST = 1 << 20  # bytes of labels.json
_DELIMITED, _JSON, _PARQUET = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson", ".json"), (".parquet", ".pq")

# Where data is asked for in Python, any of these will do.
Given: TypeAlias = Dataset | str | Path | Held

__all__ = [
    "Dataset",
    "Given",
    "as_dataset",
    "find_named_folder",
    "is_table",
    "load_data",
    "named_sets",
    "named_splits",
    "open_table",
]


def load_data(
    source: str | Path | Held,
    *,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    edit: str | None = None,
    labels: Sequence[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    offset: int = 0,
    sample: int | None = None,
    seed: int = 0,
    encoding: str = "utf-8-sig",
    clean: str | Sequence[str] | None = None,
) -> Dataset:
    """Open a file, a folder, a hub name (`hf:org/name`, `hf:org/name:config`) or a named set.

    Or what is in memory already: a list of pairs (text, label), a dict of columns, a list of rows, a pandas
    DataFrame or a `datasets.Dataset`.

    Columns are guessed unless `text` (one name, or two of a pair) and `label` say otherwise. `edit` names
    the field of a pair that may be changed, the last one by default. `labels` names the classes in the
    data's order. Of the rows from `offset` on, the first `limit` are taken, and of these a random `sample`.
    `clean` names steps that every text goes through first, such as "tweets".

    Example:

        >>> data = unfooled.load_data("reviews.csv", limit=4)
        >>> data.labels, len(data)
        (('negative', 'positive'), 4)
    """
    opened = Opened(_open(source, split, encoding)) if isinstance(source, str | Path) else _held(source)
    dataset = build(
        opened.source,
        text=text or opened.text,
        label=label or opened.label,
        edit=edit,
        labels=labels,
        selection=Selection(offset=offset, limit=limit, sample=sample, seed=seed),
    )
    return dataset.cleaned(clean) if clean else dataset


def as_dataset(given: Given, *, labels: Sequence[str] | None = None) -> Dataset:
    """Whatever a caller gave as data; `labels` names the classes of pairs that are in memory, in order."""
    if isinstance(given, Dataset):
        return given
    if isinstance(given, str | Path):
        return load_data(given)
    opened = _held(given)
    # Pairs are written for one model, so their numbers are its classes; a table may have an order of its own.
    names = labels if opened.label is not None else None
    return build(opened.source, text=opened.text, label=opened.label, labels=names)


def _held(given: Held) -> Opened:
    from unfooled.data.held import open_held

    return open_held(given)


def named_sets() -> list[str]:
    """Names that `load_data` knows beside files: folders of $UNFOOLED_DATA that hold splits."""
    root = os.environ.get(VARIABLE, "")
    if not root or not Path(root).is_dir():
        return []
    return sorted(folder.name for folder in Path(root).iterdir() if named_splits(folder))


def _open(source: str | Path, split: str, encoding: str) -> Source:
    if isinstance(source, str) and source.startswith("hf:"):
        repository, _, configuration = source.removeprefix("hf:").partition(":")
        if not repository:
            raise DataError("hf: needs the name of a data set", "for example hf:stanfordnlp/sst2")
        from unfooled.data.huggingface import HubName

        return HubName(repository, configuration, split)
    try:
        return _open_path(source, split, encoding)
    except (OSError, RuntimeError) as error:  # names that are too long, folders that may not be looked into
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{str(source)[:200]}: cannot be opened ({reason})", "check the path") from error


def _open_path(source: str | Path, split: str, encoding: str) -> Source:
    path = Path(source).expanduser()
    if isinstance(source, str) and path.name == source and source in named_sets():
        return _named(Path(os.environ[VARIABLE]) / source, split, encoding)
    if path.is_dir():
        from unfooled.data.huggingface import SavedFolder, is_saved_folder

        if is_saved_folder(path):
            return SavedFolder(path, split)
        if named_splits(path):
            return _named(path, split, encoding)
        raise DataError(f"{path}: this folder holds no data set", f"known formats: {FORMATS}")
    if path.is_file():
        return open_table(path, encoding)
    if path.exists():
        raise not_regular(path)
    if path.name == str(source) and not path.suffix:
        raise _unknown(str(source))
    raise DataError(f"{path}: no such file", f"known formats: {FORMATS}")


def find_named_folder(source: str) -> Path | None:
    """A folder, given by its path or by its name under $UNFOOLED_DATA."""
    path = Path(source).expanduser()
    root = os.environ.get(VARIABLE, "")
    if not path.is_dir() and root and path.name == source:
        path = Path(root) / source
    return path if path.is_dir() else None


def is_table(path: Path) -> bool:
    """Whether the file's ending is that of a table."""
    return path.name.lower().removesuffix(".gz").endswith((*_DELIMITED, *_JSON, *_PARQUET))


def open_table(path: Path, encoding: str) -> Source:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(_DELIMITED):
        return Delimited(path, encoding)
    if name.endswith(_JSON):
        return JsonLines(path, encoding)
    if path.name.lower().endswith(_PARQUET):
        return Parquet(path)
    raise DataError(f"{path}: this format is not known", f"known formats: {FORMATS}")


def named_splits(folder: Path) -> list[str]:
    """The splits of a folder of `SPLIT.jsonl.gz` files; none where it is no such folder."""
    if not (folder / "labels.json").is_file():
        return []
    return sorted(file.name.removesuffix(".jsonl.gz") for file in folder.glob("*.jsonl.gz"))


def _named(folder: Path, split: str, encoding: str) -> Source:
    splits = named_splits(folder)
    if split not in splits:
        raise DataError(
            f"{folder.name}: there is no split {split!r}", f"choose --split from {', '.join(splits)}"
        )
    with open_regular(folder / "labels.json") as file:
        content = file.read(_LARGEST_LIST + 1)
    if len(content) > _LARGEST_LIST:
        raise DataError(f"{folder / 'labels.json'}: over {_LARGEST_LIST:,} bytes are no list of classes")
    try:
        classes = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{folder / 'labels.json'}: broken JSON ({error})") from error
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{folder / 'labels.json'}: a list of the classes' names in order is expected")
    return JsonLines(folder / f"{split}.jsonl.gz", encoding, tuple(classes), title=folder.name)


def _unknown(name: str) -> DataError:
    known = named_sets()
    if known:
        return DataError(f"there is no file and no named set {name!r}", f"named sets: {', '.join(known)}")
    root = os.environ.get(VARIABLE)
    state = (
        f"${VARIABLE} is not set" if not root else f"${VARIABLE} points to {root}, which holds no data sets"
    )
    return DataError(
        f"there is no file {name!r}, and {state}",
        f"give a file ({FORMATS}), or set {VARIABLE} to a folder of named sets",
    )
