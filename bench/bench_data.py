"""Labelled rows and the places where the benchmark keeps its things. Runs in both environments."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LABELS = ("negative", "positive")


class Row(NamedTuple):
    text: str
    label: int


def data_source() -> str:
    """Where rows come from; a victim trained on one source must not be attacked with the other."""
    return "UNFOOLED_DATA" if os.environ.get("UNFOOLED_DATA") else "movie-reviews"


def read_rows(name: str, split: str) -> list[Row]:
    """Rows of `mr` or `imdb`: from `$UNFOOLED_DATA` if set, else from the embedded movie reviews."""
    folder = os.environ.get("UNFOOLED_DATA")
    if folder:
        return read_jsonl(Path(folder) / name / f"{split}.jsonl.gz")
    return _embedded_rows(name, split)


def _embedded_rows(name: str, split: str) -> list[Row]:
    """The embedded set has no test split of its own: every tenth row of a fixed shuffle is held out."""
    from unfooled.resources.datasets import movie_reviews

    rows = sorted({Row(text, label) for text, label in movie_reviews("mr" if name == "mr" else "imdb")})
    random.Random(0).shuffle(rows)
    return [row for index, row in enumerate(rows) if (index % 10 == 0) == (split == "test")]


def read_jsonl(path: Path) -> list[Row]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [Row(line["text"], int(line["label"])) for line in map(json.loads, lines)]


def write_jsonl(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps({"text": row.text, "label": row.label}, ensure_ascii=False) + "\n")
