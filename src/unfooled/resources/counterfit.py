"""Counter-fitted word vectors: synonyms pulled together, antonyms pushed apart, the rest kept in place.

Mrkšić et al. (2016), "Counter-fitting Word Vectors to Linguistic Constraints". Three forces act on unit
vectors, all pairs at once, for a fixed number of rounds:

1. synonym attract: a pair below its target cosine moves together;
2. antonym repel: a pair above cosine 0 moves apart;
3. space preserve: a word's nearest neighbours of the original space are drawn back to their old cosine.

Differences from the authors' code: the input is GloVe without its mean and its ten strongest directions,
which carry frequency and topic; the constraints come from WordNet and the Open English WordNet (`lexicon`);
a synonym's target depends on its cosine before, so that a pair that shares only a rare sense ("boring",
"drilling") comes nearer but not next to each other; rounds are full batches, so no random order is involved.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.resources import lexicon
from unfooled.resources.neighbours import NeighbourTable
from unfooled.resources.store import Progress, Store, silent
from unfooled.resources.vectors import Matrix, read_vectors, unit_rows

VECTORS = "vectors.npy"
_GLOVE = "glove.840B.300d_filtered.txt"
_STRONG_DIRECTIONS = 10
_ROUNDS = 20
_STEP = 0.3
_ATTRACT_AT_MOST, _ATTRACT_BY = 0.85, 0.35
_REPEL_TO = 0.0
_PRESERVED = 8  # neighbours per word
_PRESERVE = 0.1  # strength, against 1 for synonyms and antonyms
_RELATED = 0.5  # strength for inflections and similar adjectives
_EDGES = 8192  # per block: the gathered vectors stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Force:
    """Directed pairs sorted by source; each pulls its source up to `target`, or pushes it down to it."""

    source: npt.NDArray[np.intp]
    other: npt.NDArray[np.intp]
    target: Matrix
    strength: float  # negative pushes

    def act(self, vectors: Matrix, moves: Matrix, counts: Matrix) -> None:
        starts = np.flatnonzero(np.diff(self.source, prepend=-1))
        begin = 0
        while begin < len(self.source):
            later = starts[np.searchsorted(starts, begin + _EDGES) :]  # a word's pairs stay in one block
            stop = int(later[0]) if len(later) else len(self.source)
            self._act(slice(begin, stop), vectors, moves, counts)
            begin = stop

    def _act(self, part: slice, vectors: Matrix, moves: Matrix, counts: Matrix) -> None:
        source, other = self.source[part], self.other[part]
        others = vectors[other]
        cosine = np.einsum("ij,ij->i", vectors[source], others)
        short = cosine < self.target[part] if self.strength > 0 else cosine > self.target[part]
        weight = (short * np.float32(self.strength)).astype(np.float32)
        first = np.flatnonzero(np.diff(source, prepend=-1))
        words = source[first]
        others *= weight[:, None]
        # The gradient of a cosine between unit vectors: towards the other, minus the part along oneself.
        along = np.add.reduceat(weight * cosine, first)
        moves[words] += np.add.reduceat(others, first, axis=0) - along[:, None] * vectors[words]
        counts[words] += np.add.reduceat(short.astype(np.float32), first)


def prepare(matrix: Matrix) -> Matrix:
    """Unit vectors without their mean and their strongest common directions."""
    unit = unit_rows(matrix)
    centred = unit - unit.mean(axis=0, dtype=np.float64).astype(np.float32)
    _, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    strong = directions[:, -min(_STRONG_DIRECTIONS, len(directions) // 10) :].astype(np.float32)
    return unit_rows(centred - (centred @ strong) @ strong.T)


def counter_fit(
    start: Matrix,
    constraints: lexicon.Constraints,
    neighbours: npt.NDArray[np.int32],
    progress: Progress = silent,
) -> Matrix:
    """Apply the forces to unit vectors. `constraints` hold row numbers; `neighbours` are those of `start`."""
    forces = [
        _attract(start, constraints.synonyms, 1.0),
        _attract(start, constraints.related, _RELATED),
        _repel(constraints.antonyms),
        _preserve(start, neighbours, constraints.antonyms),
    ]
    vectors = start.copy()
    for done in range(_ROUNDS):
        progress("counter-fitting", done / _ROUNDS)
        moves, counts = np.zeros_like(vectors), np.zeros(len(vectors), dtype=np.float32)
        for force in forces:
            force.act(vectors, moves, counts)
        moves *= (_STEP / np.maximum(counts, 1))[:, None]
        vectors = unit_rows(vectors + moves)
    return vectors


def _both_ways(pairs: lexicon.Rows) -> lexicon.Rows:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def _cosines(vectors: Matrix, pairs: lexicon.Rows) -> Matrix:
    found: list[Matrix] = [
        np.einsum("ij,ij->i", vectors[part[:, 0]], vectors[part[:, 1]])
        for part in np.array_split(pairs, len(pairs) // _EDGES + 1)
    ]
    return np.concatenate(found)


def _attract(start: Matrix, pairs: lexicon.Rows, strength: float) -> Force:
    both = _both_ways(pairs)
    target = np.minimum(_ATTRACT_AT_MOST, _cosines(start, both) + _ATTRACT_BY).astype(np.float32)
    return Force(both[:, 0], both[:, 1], target, strength)


def _repel(pairs: lexicon.Rows) -> Force:
    both = _both_ways(pairs)
    return Force(both[:, 0], both[:, 1], np.full(len(both), _REPEL_TO, dtype=np.float32), -1.0)


def _preserve(start: Matrix, neighbours: npt.NDArray[np.int32], antonyms: lexicon.Rows) -> Force:
    pairs = np.stack(
        [np.repeat(np.arange(len(start)), neighbours.shape[1]), neighbours.ravel().astype(np.intp)], axis=1
    )
    apart = _both_ways(antonyms)
    size = len(start)
    pairs = pairs[~np.isin(pairs[:, 0] * size + pairs[:, 1], apart[:, 0] * size + apart[:, 1])]
    return Force(pairs[:, 0], pairs[:, 1], _cosines(start, pairs), _PRESERVE)


def build(store: Store, folder: Path, progress: Progress = silent) -> dict[str, Any]:
    """Write vectors and neighbour table into `folder`; returns what is worth recording about them."""
    progress("reading word vectors", None)
    words, matrix = read_vectors(store.path("glove-840b") / _GLOVE)
    kept = [i for i, word in enumerate(words) if _is_word(word)]
    words, before = [words[i] for i in kept], unit_rows(matrix[kept])
    start = prepare(before)
    progress("reading synonyms and antonyms", None)
    constraints = lexicon.read_constraints(store.path("wordnet"), store.path("thesaurus"), words, start)
    near = NeighbourTable.from_vectors(words, start, k=_PRESERVED, progress=progress)
    vectors = counter_fit(start, constraints, near.ids, progress)
    NeighbourTable.from_vectors(words, vectors, progress=progress).save(folder)
    np.save(folder / VECTORS, vectors)
    facts: dict[str, Any] = {
        "words": len(words),
        "synonyms": len(constraints.synonyms),
        "antonyms": len(constraints.antonyms),
        "related": len(constraints.related),
    }
    simlex = Path(os.environ.get("UNFOOLED_DATA", "")) / "words" / "SimLex-999.txt"
    if os.environ.get("UNFOOLED_DATA") and simlex.is_file():
        facts["simlex_before"] = round(simlex_correlation(simlex, words, before), 4)
        facts["simlex_after"] = round(simlex_correlation(simlex, words, vectors), 4)
    progress("counter-fitted vectors are ready", 1.0)
    return facts


def _is_word(text: str) -> bool:
    """Numbers and foreign signs have neighbours too, but exchanging them is no paraphrase."""
    return text.isascii() and text.replace("'", "").replace("-", "").isalpha()


def simlex_correlation(path: Path, words: Sequence[str], vectors: Matrix) -> float:
    """Spearman correlation of cosines with human similarity judgements, over the pairs that are known."""
    index = {word: i for i, word in enumerate(words)}
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    known = [
        (index[row[0]], index[row[1]], float(row[3])) for row in rows if row[0] in index and row[1] in index
    ]
    cosines = np.array([float(vectors[a] @ vectors[b]) for a, b, _ in known])
    return float(np.corrcoef(_ranks(cosines), _ranks(np.array([score for *_, score in known])))[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: npt.NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return shared
