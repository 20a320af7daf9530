"""Rows for tests that need many real-looking sentences for the fake victim."""

from __future__ import annotations

import csv
import random
from pathlib import Path

GOOD = ["superb", "great", "delightful", "charming", "funny", "moving"]
BAD = ["awful", "dull", "terrible", "lame", "tedious", "boring"]
PLAIN = ["the film", "this story", "a cast of unknowns", "every scene", "its second half", "the old director"]


def sentences(n: int, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        label = rng.choice(["negative", "positive"])
        words = GOOD if label == "positive" else BAD
        rows.append(
            (f"{rng.choice(PLAIN)} is {rng.choice(words)} and {rng.choice(words)}, number {i}.", label)
        )
    return rows


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(rows)
    return path
