"""How far an edit moves the embeddings: word by word, layer by layer, and of the sentence as a whole.

Compared are the words that both texts have and that the model reads (words behind the cut of a long text have
no embedding). The change of a word is the Euclidean length of the difference of its vectors. Per layer:

    R_e        ‖Z − Z_adv‖ / ‖Z‖ over the matrix of the shared words' vectors
    on edited  share of the summed change that lies on the replaced words
    Hoyer      (√n − ‖c‖₁/‖c‖₂) / (√n − 1) of the n changes c: 1 where one word holds all, 0 where equal
    Gini       0 where all are equal, (n − 1)/n where one word holds all

and once per text R_e = ‖z − z_adv‖ / ‖z‖ of the sentence vector z, which is what the classifier's last layer
reads. The paper does not say which of the two its z is; the sentence vector is our reading of "the embeddings
of the original sentence".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unfooled.internals.pairs import TextPair
from unfooled.metrics.summary import Mean
from unfooled.victims.torch.whitebox import WordEmbeddings

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerChange:
    """One example and one layer; nan where a number is not defined (see the functions below)."""

    key: int
    layer: int  # 0: what the first layer reads
    words: int  # compared
    l2: float  # mean over words
    relative: float  # R_e of the layer
    on_edited: float
    hoyer: float
    gini: float


@dataclass(frozen=True, slots=True, eq=False)
class ExampleEmbeddings:
    """Everything of one example, for a picture."""

    key: int
    before: tuple[str, ...]  # the compared words
    after: tuple[str, ...]
    edited: tuple[bool, ...]
    places: tuple[int, ...]  # of each word in the original
    l2: Numbers  # [layers, words]
    lengths: Numbers  # [layers, words], of the vectors before the attack
    relative: tuple[float, ...]  # R_e of each layer


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The whole run: per layer and per sentence, and the examples chosen for pictures."""

    changes: tuple[LayerChange, ...]
    sentences: tuple[tuple[int, float], ...]  # key and R_e of the sentence vector
    examples: tuple[ExampleEmbeddings, ...]
    unread: int  # texts of which the model reads none of the replaced words

    @property
    def layers(self) -> int:
        """Including layer 0."""
        return 1 + max((change.layer for change in self.changes), default=-1)

    def mean(self, what: str, layer: int | None = None) -> Mean:
        """Of `relative`, `hoyer` …, over the examples for which it is defined.

        Without a layer, of each example's mean of the layers from 1 on.
        """
        per_key: dict[int, list[float]] = {}
        for change in self.changes:
            chosen = change.layer > 0 if layer is None else change.layer == layer
            if chosen and math.isfinite(value := float(getattr(change, what))):
                per_key.setdefault(change.key, []).append(value)
        return Mean.of([float(np.mean(values)) for values in per_key.values()])

    @property
    def sentence(self) -> Mean:
        """R_e of the sentence vectors."""
        return Mean.of([value for _, value in self.sentences if math.isfinite(value)])


def compare_embeddings(pair: TextPair, before: WordEmbeddings, after: WordEmbeddings) -> ExampleEmbeddings:
    shared = [(i, j) for i, j in pair.shared if before.pieces[i] and after.pieces[j]]
    left, right = [i for i, _ in shared], [j for _, j in shared]
    changes, lengths, relative = [], [], []
    for first, then in zip(before.layers, after.layers, strict=True):
        old, new = first[left].astype(np.float64), then[right].astype(np.float64)
        changes.append(np.linalg.norm(old - new, axis=1))
        lengths.append(np.linalg.norm(old, axis=1))
        relative.append(relative_change(old, new))
    return ExampleEmbeddings(
        pair.key,
        tuple(before.words[i] for i in left),
        tuple(after.words[j] for j in right),
        tuple(i in pair.edited for i in left),
        tuple(left),
        np.array(changes),
        np.array(lengths),
        tuple(relative),
    )


def changes_of(example: ExampleEmbeddings) -> list[LayerChange]:
    edited = np.array(example.edited, dtype=bool)
    return [
        LayerChange(
            example.key,
            layer,
            len(change),
            float(change.mean()) if change.size else math.nan,
            example.relative[layer],
            share_on(change, edited),
            hoyer(change),
            gini(change),
        )
        for layer, change in enumerate(example.l2)
    ]


def relative_change(before: NDArray[np.floating], after: NDArray[np.floating]) -> float:
    """R_e = ‖z − z_adv‖ / ‖z‖ of vectors or matrices; nan where z is zero or empty."""
    length = float(np.linalg.norm(np.asarray(before, dtype=np.float64)))
    if not length:
        return math.nan
    return float(np.linalg.norm(np.asarray(before, dtype=np.float64) - np.asarray(after))) / length


def share_on(change: Numbers, edited: NDArray[np.bool_]) -> float:
    """The edited positions' share of all change; nan where nothing changed or no position is edited."""
    total = float(change.sum())
    return float(change[edited].sum()) / total if total and edited.any() else math.nan


def hoyer(change: Numbers) -> float:
    """Hoyer's sparsity: 1 for a single non-zero number, 0 for equal ones; nan below two or all zero."""
    n, length = change.size, float(np.linalg.norm(change))
    if n < 2 or not length:
        return math.nan
    value = (math.sqrt(n) - float(np.abs(change).sum()) / length) / (math.sqrt(n) - 1)
    return min(1.0, max(0.0, value))


def gini(change: Numbers) -> float:
    """Gini index: 0 for equal numbers, (n − 1)/n for a single non-zero one; nan below two or all zero."""
    n, total = change.size, float(change.sum())
    if n < 2 or not total:
        return math.nan
    ranks = np.arange(1, n + 1)
    value = 2 * float((ranks * np.sort(change)).sum()) / (n * total) - (n + 1) / n
    return min(1.0, max(0.0, value))
