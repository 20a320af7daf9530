"""The classifier of `unfooled demo`: tf-idf and logistic regression on movie reviews."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from unfooled.extras import libraries_of
from unfooled.resources.datasets import movie_reviews

HELD_OUT = 1000  # sentences never trained on, from which the attacked ones come


def train_demo_victim(model: Path, data: Path) -> None:
    """Fit on all but `HELD_OUT` of the review sentences; write the model, and the rest as JSON lines."""
    with libraries_of("sklearn", "skops", "sklearn", needed_for="the demo"):
        import skops.io
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

    rows = list(movie_reviews("mr"))
    # The file is sorted by class; every n-th row is a fair sample and needs no random numbers.
    step = max(1, len(rows) // HELD_OUT)
    held, kept = rows[::step][:HELD_OUT], [row for i, row in enumerate(rows) if i % step]
    pipeline = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=4.0, max_iter=1000)
    )
    pipeline.fit([text for text, _ in kept], [label for _, label in kept])
    skops.io.dump(pipeline, model)
    order = sorted(range(len(held)), key=lambda i: (i * 7919) % len(held))
    data.write_text("".join(_lines(held[i] for i in order)), encoding="utf-8")


def _lines(rows: Iterator[tuple[str, int]]) -> Iterator[str]:
    for text, label in rows:
        yield json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n"
