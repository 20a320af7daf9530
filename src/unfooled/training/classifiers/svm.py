"""A linear SVM on tf-idf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unfooled.training.families import Range, Value
from unfooled.training.sklearn_families import OPTIONS, SklearnFamily, words_of


def build(options: Mapping[str, Value]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    classifier = SGDClassifier(
        loss="hinge", alpha=options["alpha"], max_iter=options["epochs"], random_state=options["seed"]
    )
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, **words_of(options)), classifier)


FAMILY = SklearnFamily(
    name="svm",
    summary="linear SVM by stochastic gradient descent on the hinge loss, tf-idf",
    paper="LSTM-JSMA 2017, section 2",
    defaults={"alpha": 1e-4, "ngrams": 1, "min_count": 1, "epochs": 1000, "seed": 0},
    ranges={"alpha": Range(1e-6, 1e-2, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
    options=OPTIONS,
    build=build,
)
