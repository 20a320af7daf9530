"""The two main directions of a data set: do its classes lie apart?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import TextValue, Victim, join_fields
from unfooled.data.dataset import Dataset
from unfooled.errors import CapabilityError, DataError
from unfooled.extras import libraries_of
from unfooled.metrics.summary import Rate
from unfooled.training.preparation import text_value
from unfooled.victims.torch.whitebox import WhiteBoxVictim, is_white_box

Numbers = NDArray[np.float64]
Features: TypeAlias = Literal["tfidf", "sentence"]

MOST_WORDS = 20_000
_PORTION = 256  # texts between two steps of the progress bar
_HERE = {"tfidf": "bags of words (TF-IDF)", "sentence": "the victim's sentence vectors"}


@dataclass(frozen=True, eq=False)
class PcaProjection:
    """Every usable row in the plane of the first two principal components."""

    data: str
    features: str
    labels: tuple[str, ...]
    keys: tuple[int, ...]
    classes: NDArray[np.int64]
    points: Numbers  # [rows, 2]
    explained: tuple[float, float]  # shares of the variance
    nearest: Rate  # rows that lie nearest to their own class's mean, in the plane
    largest: float  # share of the largest class: what guessing would reach
    skipped: int  # rows that cannot be used

    @property
    def near(self) -> NDArray[np.bool_]:
        """Which rows lie nearest to their own class's mean."""
        return np.asarray(_nearest_class(self.points, self.classes) == self.classes, dtype=np.bool_)


def project(
    data: Dataset,
    *,
    features: Features = "tfidf",
    victim: Victim | None = None,
    seed: int = 0,
    told: Callable[[int], None] | None = None,
) -> PcaProjection:
    """PCA of bags of words, or of the sentence vectors of a victim that has them."""
    keys, texts, classes, skipped = _rows(data)
    if features == "tfidf":
        points, explained = _of_words(texts, data.name, seed)
        if told:
            told(len(texts))
    else:
        points, explained = principal(_sentences(texts, victim, told))
    points = np.round(points, 6)
    hits = int((_nearest_class(points, classes) == classes).sum())
    return PcaProjection(
        data.name,
        _HERE[features],
        data.labels,
        tuple(keys),
        classes,
        points,
        explained,
        Rate.of(hits, len(classes)),
        float(np.bincount(classes).max() / len(classes)),
        skipped,
    )


def require_vectors(victim: Victim | None) -> WhiteBoxVictim:
    """The victim, if it has sentence vectors."""
    if victim is None:
        raise CapabilityError("a PCA of sentence vectors needs a model", "give --model, or use --pca tfidf")
    if "embeddings" not in victim.capabilities or not is_white_box(victim):
        raise CapabilityError(f"{victim.name} gives no sentence vectors", "use --pca tfidf")
    return victim


def principal(vectors: NDArray[Any]) -> tuple[Numbers, tuple[float, float]]:
    """Rows of a dense matrix on its first two components, and the share of the variance of each.

    A component's sign is chosen so that its largest loading is positive.
    """
    centred = np.asarray(vectors, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :2]
    strongest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[strongest, [0, 1]])
    total = float(np.maximum(variances, 0).sum())
    shares = np.maximum(variances[::-1][:2], 0) / total if total else np.zeros(2)
    return centred @ directions, (float(shares[0]), float(shares[1]))


def _rows(data: Dataset) -> tuple[list[int], list[TextValue], NDArray[np.int64], int]:
    rows = list(data)
    usable = [example for example in rows if not example.problem]
    if len(usable) < 3:
        raise DataError(
            f"{data.name}: {len(usable)} usable rows are too few for a PCA", "give at least three rows"
        )
    classes = np.array([example.label for example in usable], dtype=np.int64)
    texts = [text_value(example) for example in usable]
    return [example.key for example in usable], texts, classes, len(rows) - len(usable)


def _of_words(texts: Sequence[TextValue], name: str, seed: int) -> tuple[Numbers, tuple[float, float]]:
    with libraries_of("sklearn", "sklearn", needed_for="the PCA of bags of words"):
        from sklearn.decomposition import PCA
        from sklearn.feature_extraction.text import TfidfVectorizer
    try:
        bags = TfidfVectorizer(max_features=MOST_WORDS).fit_transform([join_fields(text) for text in texts])
    except ValueError as error:
        raise DataError(f"{name}: no words for a PCA ({error})", "check the text column") from None
    if min(bags.shape) <= 3:
        return principal(bags.toarray() if bags.shape[1] > 1 else np.pad(bags.toarray(), ((0, 0), (0, 1))))
    # Sparse all the way: centring is done inside, without ever filling the matrix.
    fitted = PCA(n_components=2, svd_solver="arpack", random_state=seed).fit(bags)
    points = np.asarray(fitted.transform(bags), dtype=np.float64)
    shares = fitted.explained_variance_ratio_
    return points, (float(shares[0]), float(shares[1]))


def _sentences(
    texts: Sequence[TextValue], victim: Victim | None, told: Callable[[int], None] | None
) -> NDArray[Any]:
    reader = require_vectors(victim)
    parts = []
    for start in range(0, len(texts), _PORTION):
        portion = texts[start : start + _PORTION]
        parts.append(reader.sentence_vectors(portion))
        if told:
            told(len(portion))
    return np.concatenate(parts)


def _nearest_class(points: Numbers, classes: NDArray[np.int64]) -> NDArray[np.int64]:
    present = np.unique(classes)
    centres = np.array([points[classes == label].mean(axis=0) for label in present])
    distances = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    return cast(NDArray[np.int64], present[distances.argmin(axis=1)])
