"""Labelled rows and the places where the benchmark keeps its things. Runs in both environments."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LABELS = ("negative", "positive")


class Row(NamedTuple):
    text: str
    label: int


def read_rows(name: str, split: str) -> list[Row]:
    """Rows of `mr` or `imdb`: from `$UNFOOLED_DATA` if set, else from the embedded movie reviews."""
    folder = os.environ.get("UNFOOLED_DATA")
    if folder:
        return read_jsonl(Path(folder) / name / f"{split}.jsonl.gz")
    return _embedded_rows(name, split)


def _embedded_rows(name: str, split: str) -> list[Row]:
    """The embedded set has no test split of its own: every tenth row of a fixed shuffle is held out."""
    from unfooled.resources.datasets import movie_reviews

    rows = sorted({_as_row(item) for item in movie_reviews(name)})
    random.Random(0).shuffle(rows)
    return [row for index, row in enumerate(rows) if (index % 10 == 0) == (split == "test")]


def _as_row(item: Any) -> Row:
    if isinstance(item, dict):
        text, label = item["text"], item["label"]
    elif hasattr(item, "text"):
        text, label = item.text, item.label
    else:
        text, label = item
    return Row(str(text), LABELS.index(label) if isinstance(label, str) else int(label))


def read_jsonl(path: Path) -> list[Row]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [Row(one["text"], int(one["label"])) for one in map(json.loads, lines)]


def write_jsonl(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps({"text": row.text, "label": row.label}, ensure_ascii=False) + "\n")
