"""Multinomial naive Bayes on word counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unfooled.training.families import Range, Value
from unfooled.training.sklearn_families import OPTIONS, SklearnFamily, words_of


def build(options: Mapping[str, Value]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    return make_pipeline(CountVectorizer(**words_of(options)), MultinomialNB(alpha=options["alpha"]))


FAMILY = SklearnFamily(
    name="naive-bayes",
    summary="multinomial naive Bayes on word counts, Laplace smoothing",
    paper="LSTM-JSMA 2017, section 2",
    defaults={"alpha": 1.0, "ngrams": 1, "min_count": 1, "seed": 0},
    ranges={"alpha": Range(0.01, 10, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
    options=OPTIONS,
    build=build,
)
