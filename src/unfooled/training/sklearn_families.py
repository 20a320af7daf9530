"""Naive Bayes and the linear SVM on bags of words, saved with skops."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.core.victim import join_fields
from unfooled.errors import DataError, MissingExtraError
from unfooled.files import whole_file
from unfooled.training.families import Family, Value
from unfooled.training.metrics import scores
from unfooled.training.preparation import Prepared
from unfooled.training.watching import TrainObserver

FILE = "model.skops"


def fit(
    family: Family, options: Mapping[str, Value], data: Prepared, out: Path, observer: TrainObserver
) -> dict[str, Any]:
    """Fit, measure on the validation rows, write `model.skops`; returns the metrics."""
    import skops.io

    observer.started(1, 0)
    pipeline = build(family.name, options)
    # Names instead of numbers: the file then says by itself what its classes are.
    names = np.array(data.labels, dtype=object)
    try:
        with warnings.catch_warnings():
            # The epochs are an option: reaching them is no news.
            warnings.filterwarnings("ignore", "Maximum number of iteration reached")
            pipeline.fit(
                [join_fields(text) for text in data.train.texts], names[data.train.labels].astype(str)
            )
    except ValueError as error:
        if "vocabulary" not in str(error) and "no terms" not in str(error).lower():
            raise
        raise DataError(
            f"no word is left to learn from ({error})", "add rows, or lower the bound: --set min_count=1"
        ) from None
    metrics: dict[str, Any] = {"epochs": 1}
    if len(data.valid):
        place = {name: index for index, name in enumerate(data.labels)}
        predicted = [
            place[str(name)] for name in pipeline.predict([join_fields(t) for t in data.valid.texts])
        ]
        metrics["valid"] = scores(data.valid.labels, predicted, len(data.labels))
        observer.evaluated(1, metrics["valid"])
    observer.step(1, None)
    with whole_file(out / FILE) as part:
        skops.io.dump(pipeline, part)
    return metrics


def require(name: str) -> None:
    """Load the libraries, so that their loading is no part of the training time."""
    try:
        import skops.io  # noqa: F401
        from sklearn import feature_extraction, linear_model, naive_bayes, pipeline  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"training {name}", "sklearn") from None


def build(name: str, options: Mapping[str, Value]) -> Any:
    """The unfitted pipeline."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    words = {"ngram_range": (1, options["ngrams"]), "min_df": options["min_count"]}
    if name == "naive-bayes":
        return make_pipeline(CountVectorizer(**words), MultinomialNB(alpha=options["alpha"]))
    classifier = SGDClassifier(
        loss="hinge", alpha=options["alpha"], max_iter=options["epochs"], random_state=options["seed"]
    )
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, **words), classifier)
