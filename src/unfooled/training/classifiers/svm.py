"""A linear SVM on tf-idf or word counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unfooled.training.families import Option, Range, Value
from unfooled.training.sklearn_families import OPTIONS, SklearnFamily, words_of


def build(options: Mapping[str, Value]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    classifier = SGDClassifier(
        loss="hinge", alpha=options["alpha"], max_iter=options["epochs"], random_state=options["seed"]
    )
    if options["features"] == "counts":
        return make_pipeline(CountVectorizer(**words_of(options)), classifier)
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, **words_of(options)), classifier)


FAMILY = SklearnFamily(
    name="svm",
    summary="linear SVM by stochastic gradient descent on the hinge loss, tf-idf or word counts",
    paper="LSTM-JSMA 2017, section 2",
    defaults={"alpha": 1e-4, "ngrams": 1, "min_count": 1, "epochs": 1000, "seed": 0, "features": "tfidf"},
    ranges={"alpha": Range(1e-6, 1e-2, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
    options={
        **OPTIONS,
        "features": Option(
            str, "what is read of a word: tf-idf, or how often it is there", choices=("tfidf", "counts")
        ),
    },
    build=build,
)
