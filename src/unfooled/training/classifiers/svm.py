"""A linear SVM on tf-idf, word counts, or the mean of word vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unfooled.errors import DataError
from unfooled.resources.vectors import load_word_vectors
from unfooled.training.families import Option, Range, Value
from unfooled.training.sklearn_families import OPTIONS, SklearnFamily, words_of


def _classifier(options: Mapping[str, Value]) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss="hinge", alpha=options["alpha"], max_iter=options["epochs"], random_state=options["seed"]
    )


def build(options: Mapping[str, Value]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    if options["features"] == "counts":
        return make_pipeline(CountVectorizer(**words_of(options)), _classifier(options))
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, **words_of(options)), _classifier(options))


def learn(options: Mapping[str, Value], texts: list[str], names: Any) -> Any:
    if options["features"] == "mean":
        return _on_means(options, texts, names)
    return build(options).fit(texts, names)


def _on_means(options: Mapping[str, Value], texts: list[str], names: Any) -> Any:
    """Fitted on the mean vector of a text's words, those left out that have no vector.

    A weight per direction is a weight per word: what is saved reads shares of words, and gives the same.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    words, vectors = load_word_vectors(str(options["vectors"]))
    rows = {word: row for row, word in enumerate(words)}
    seen = CountVectorizer(min_df=options["min_count"]).fit(texts).get_feature_names_out()
    known = [word for word in seen if word in rows]
    if not known:
        raise DataError(
            f"no word of these texts has a vector in {options['vectors']}", "choose other vectors, or counts"
        )
    counter = CountVectorizer(vocabulary=known)
    shares = Normalizer("l1")
    table = np.asarray(vectors[[rows[word] for word in known]], dtype=np.float64)
    classifier = _classifier(options).fit(shares.fit_transform(counter.fit_transform(texts)) @ table, names)
    classifier.coef_ = np.ascontiguousarray(classifier.coef_ @ table.T)
    classifier.n_features_in_ = len(known)
    return make_pipeline(counter, shares, classifier)


FAMILY = SklearnFamily(
    name="svm",
    summary="linear SVM by stochastic gradient descent on the hinge loss: tf-idf, counts or mean vectors",
    paper="LSTM-JSMA 2017, section 2",
    defaults={
        "alpha": 1e-4,
        "ngrams": 1,
        "min_count": 1,
        "epochs": 1000,
        "seed": 0,
        "features": "tfidf",
        "vectors": "glove-6b-50d",
    },
    ranges={"alpha": Range(1e-6, 1e-2, log=True), "ngrams": Range(1, 3), "min_count": Range(1, 5)},
    options={
        **OPTIONS,
        "features": Option(
            str,
            "what is read of a text: tf-idf, how often each word is there, or the mean of their vectors",
            choices=("tfidf", "counts", "mean"),
        ),
        "vectors": Option(str, "word vectors of features=mean: a name or a file"),
    },
    build=build,
    learn=learn,
)
