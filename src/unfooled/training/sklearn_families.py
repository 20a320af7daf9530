"""Families of scikit-learn: a pipeline on bags of words, saved with skops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from unfooled.core.victim import join_fields
from unfooled.errors import DataError
from unfooled.extras import libraries_of
from unfooled.files import whole_file
from unfooled.rates import scores
from unfooled.training.families import Option, Value
from unfooled.training.trainer import ClassifierFamily, Fitting

FILE = "model.skops"
OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "alpha": Option(float, "smoothing of naive Bayes, regularisation of the SVM", 1e-9, 1e3),
        "ngrams": Option(int, "longest run of words counted as one feature", 1, 5),
    }
)


@dataclass(frozen=True, kw_only=True)
class SklearnFamily(ClassifierFamily):
    """`build` gives the unfitted pipeline; it is fitted on texts and the names of their classes.

    `learn` does both, where what is fitted is not yet what is saved.
    """

    build: Callable[[Mapping[str, Value]], Any]
    learn: Callable[[Mapping[str, Value], list[str], Any], Any] | None = None

    def require(self) -> None:
        with libraries_of("sklearn", "skops", "sklearn", needed_for=f"training {self.name}"):
            import skops.io  # noqa: F401
            from sklearn import feature_extraction, linear_model, naive_bayes, pipeline  # noqa: F401

    def fit(self, given: Fitting) -> dict[str, Any]:
        return _fit(given, self.learn or self._learned)

    def _learned(self, options: Mapping[str, Value], texts: list[str], names: Any) -> Any:
        return self.build(options).fit(texts, names)


def words_of(options: Mapping[str, Value]) -> dict[str, Any]:
    """What both vectorizers take."""
    return {"ngram_range": (1, options["ngrams"]), "min_df": options["min_count"]}


def _fit(given: Fitting, learn: Callable[[Mapping[str, Value], list[str], Any], Any]) -> dict[str, Any]:
    """Fit, measure on the validation rows, write `model.skops`; returns the metrics."""
    import skops.io

    data, observer = given.data, given.observer
    observer.started(1, 0)
    # Names instead of numbers: the file then says by itself what its classes are.
    names = np.array(data.labels, dtype=object)
    try:
        with warnings.catch_warnings():
            # The epochs are an option: reaching them is no news.
            warnings.filterwarnings("ignore", "Maximum number of iteration reached")
            texts = [join_fields(text) for text in data.train.texts]
            pipeline = learn(given.options, texts, names[data.train.labels].astype(str))
    except ValueError as error:
        # The last one: fewer rows than a word must occur in.
        if not any(said in str(error).lower() for said in ("vocabulary", "no terms", "than min_df")):
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
    with whole_file(given.out / FILE) as part:
        skops.io.dump(pipeline, part)
    return metrics
