"""TextHoaxer: decisions only; the changes as a matrix of word vectors, moved to be small and similar.

Ye, Miao, Wang, Ma: *TextHoaxer: Budgeted Hard-Label Adversarial Attacks on Text*, AAAI 2022.

    1. A random start that flips the label, and words put back, as HLBB does.
    2. The rows of a matrix are how far the vector of each changed word has moved from the original one.
    3. Add noise, take the nearest candidate of each row, and put these into the original, the longest rows
       first, until it flips; the slope of the similarity is the gradient along the noise.
    4. Step along it (and towards zero), and place the words again; then weigh the rows by how much similarity
       putting each back would restore, and place them once more.
    5. Keep the most similar flip; 100 rounds.

Versions
    @paper  noise 0.5, step 0.3, weight of the length 0.1; row weights from 0.3, step 0.05, threshold 0.1.

Differences from the authors' code
    - Queries are distinct texts asked. Candidates have the original word's part of speech.
    - Similarity is the cosine of whole texts by the encoder named (MiniLM), theirs of USE vectors.
    - Every round begins with the most similar text so far. Words without a vector keep their candidate.
    - Our counter-fitted vectors have length one; theirs nearly so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unfooled.attacks.parts.belief import Floats
from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import Ground, HardLabelVectors, word_vectors
from unfooled.core.attempt import Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class MovedVectors(HardLabelVectors):
    """Moves the vectors of the changed words by noise that made the text more similar."""

    rounds: int = 100
    noise: float = 0.5
    step: float = 0.3
    length: float = 0.1
    weight: float = 0.3
    weight_step: float = 0.05
    threshold: float = 0.1

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        vectors = yield from word_vectors(ground, self.table)
        weights = dict.fromkeys(ground.places, self.weight)
        for _ in range(self.rounds):
            now = most_similar_of(ground.a.best, now)
            places = [place for place in ground.changed(now.text) if ground.original.words[place] in vectors]
            if not places:
                return
            moved = np.array(
                [_vector(vectors, now, place) - vectors[ground.original.words[place]] for place in places]
            )
            noise = ground.a.rng.standard_normal(moved.shape)
            near = yield from self._placed(ground, vectors, places, moved + self.noise * noise)
            if near is None:
                continue
            slope = ((now.similarity or 0.0) - (near.similarity or 0.0)) / self.noise
            moved = moved - self.step * (slope * noise + 2.0 * self.length * moved)
            found = yield from self._placed(ground, vectors, places, moved)
            if found is None:
                continue
            scaled = yield from self._weighed(ground, vectors, weights, found)
            if scaled is not None:
                yield from self._placed(ground, vectors, *scaled)

    def _weighed(
        self, ground: Ground, vectors: Mapping[str, Floats], weights: dict[int, float], found: Scored
    ) -> Program[tuple[list[int], Floats] | None]:
        """The rows, each scaled as its weight changes: what restores similarity when put back, shrinks."""
        places = [place for place in ground.changed(found.text) if ground.original.words[place] in vectors]
        if not places:
            return None
        backs = yield from ground.similarities([ground.back(found.text, place) for place in places])
        rows = []
        for place, similarity in zip(places, backs, strict=True):
            old = weights[place]
            gain = (similarity - (found.similarity or 0.0)) / (old + 1e-4)
            shrink = np.sign(old) * max(abs(old) - self.threshold, 0.0)
            weights[place] = round(float(old - self.weight_step * (gain + shrink)), 9)
            row = _vector(vectors, found, place) - vectors[ground.original.words[place]]
            rows.append(row * (weights[place] / old if old else 0.0))
        return places, np.array(rows)

    def _placed(
        self, ground: Ground, vectors: Mapping[str, Floats], places: list[int], rows: Floats
    ) -> Program[Scored | None]:
        """The candidates nearest to where the rows point, put into the original, the longest row first, until
        the label flips; None where it does not."""
        text = ground.original
        for number in np.argsort(-np.round((rows**2).sum(axis=1), 9), kind="stable").tolist():
            place = places[number]
            options = [word for word in ground.words[place] if word in vectors]
            if not options:
                continue
            target = vectors[ground.original.words[place]] + rows[number]
            distances = ((np.array([vectors[word] for word in options]) - target) ** 2).sum(axis=1)
            text = text.replace(place, options[int(np.round(distances, 9).argmin())])
            flipped = yield from ground.flips(text)
            if flipped is not None:
                return flipped
        return None


def most_similar_of(best: Scored | None, now: Scored) -> Scored:
    """The best text of the attempt where it flips."""
    return best if best is not None and best.success else now


def _vector(vectors: Mapping[str, Floats], now: Scored, place: int) -> Floats:
    """Of the present word; of the original one where that has none."""
    return vectors.get(now.text.words[place], vectors[now.text.root.words[place]])


RECIPES: dict[str, Recipe] = decision_versions(
    {"paper": MovedVectors()},
    name="texthoaxer",
    summary="by decisions alone: moves the vectors of changed words until they are near",
    paper="Ye et al. 2022, AAAI 2022",
)
