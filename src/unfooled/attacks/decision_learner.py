"""decision-learner: learns from decisions which swaps flip the label, and asks about nearer flips only. Ours.

No paper: written for this toolkit after measuring what hard-label attacks spend their queries on. HLBB puts
words back one by one and never leaves the places of its random start. Similarity costs no query; decisions
do.

    1. Drawn synonyms in 1, 2, 4, 8, … drawn content words until the label flips.
    2. Put original words back in halves, quarters, … down to single words, while the label stays flipped.
    3. For each changed word ask about what makes the text more similar, the original word and then the most
       similar candidates first, and take the first that keeps the flip; until no word can be improved.
    4. A probit regression learns from all decisions so far: an effect of each place, and of each direction in
       which a word's vector moves. Weights are drawn from what it believes (Thompson sampling); the cheapest
       set of swaps that flips under these is asked about, if it is more similar than the best text so far.
    5. A flip is the new best text, improved as in 3. Draws that propose nothing new are spread wider, twice;
       then it ends, as it does after 1,000 proposals in a row that did not flip.

Versions
    @1      the steps above, with HLBB's candidates: 50 counter-fitted neighbours of the same part of speech.
    @quick  steps 1 to 3: a similar flip for few queries, where whether there is one matters most.

The loss of similarity of several swaps is taken as the sum of their losses, each measured alone, to choose
what to propose; what is asked about is measured as it is. Where a text has more than `search.pairs` swaps,
only the nearest words of each place are proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfooled.attacks.parts.belief import Belief, Floats, cheapest_flip
from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import (
    Ground,
    HardLabelVectors,
    draw_until_flip,
    more_similar,
    word_vectors,
)
from unfooled.core.attempt import Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.text import Text

_WIDEST = 4.0  # spread of the draws, against what is believed


class Swaps(NamedTuple):
    """Every swap that may be proposed: by place and option, what it costs in similarity, and its features."""

    words: list[tuple[str, ...]]  # of each place
    costs: Floats  # [places, options], infinite where there is no option
    features: Floats  # [places, options, features]

    def of(self, ground: Ground, text: Text) -> Floats | None:
        """The features of a text, or None where one of its words is not among the swaps."""
        total = np.zeros(self.features.shape[2])
        for row, place in enumerate(ground.places):
            word = text.words[place]
            if word == ground.original.words[place]:
                continue
            if word not in self.words[row]:
                return None
            total += self.features[row, self.words[row].index(word)]
        return np.concatenate([[1.0], total])

    def cheapest(self, ground: Ground, weights: Floats) -> Text:
        """The text that flips under these weights at the least cost; the original where none does."""
        there = np.isfinite(self.costs)
        effects = np.where(there, self.features @ weights[1:], -np.inf)
        text = ground.original
        for row, column in cheapest_flip(float(weights[0]), effects, np.where(there, self.costs, 1.0)):
            text = text.replace(ground.places[row], self.words[row][column])
        return text


@dataclass(frozen=True, kw_only=True)
class LearnedFlips(HardLabelVectors):
    """Local improvement first, then proposals from what was learned.

    `directions` is how many directions of word vectors it tells apart, `pairs` about how many swaps it knows
    at most, `patience` how many draws in a row may propose nothing new, `proposals` how many in a row may be
    asked about without a flip. The deviations are those of the prior.
    """

    directions: int = 24
    pairs: int = 1000
    bias: float = -2.0
    bias_deviation: float = 1.0
    place_deviation: float = 1.0
    direction_deviation: float = 1.5
    patience: int = 20
    proposals: int = 1000

    def find(self, ground: Ground) -> Program[None]:
        flipped = yield from doubling_start(ground)
        if flipped is None:
            return
        best = yield from reduce_by_halves(ground, flipped)
        best = yield from descend(ground, best)
        if self.proposals:
            yield from self.refine(ground, best)

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        swaps = yield from self._swaps(ground)
        belief = self._prior(len(ground.places), swaps.features.shape[2])
        learned, seen = 0, set[Text]()
        spread, idle, failed = 1.0, 0, 0
        while spread <= _WIDEST and failed < self.proposals:
            for scored in ground.asked[learned:]:
                seen.add(scored.text)
                features = swaps.of(ground, scored.text)
                if features is not None:
                    belief.learn(features, scored.success)
            learned = len(ground.asked)
            text = swaps.cheapest(ground, belief.draw(ground.a.rng, spread))
            fresh = text not in seen and text is not ground.original
            seen.add(text)
            if not fresh or (yield from ground.similarities([text]))[0] <= (now.similarity or 0.0):
                idle += 1
                if idle >= self.patience:
                    idle, spread = 0, spread * 2.0
                continue
            idle = 0
            flipped = yield from ground.flips(text)
            failed += 1
            if flipped is not None:
                spread, failed = 1.0, 0
                now = yield from descend(ground, flipped)

    def _prior(self, places: int, features: int) -> Belief:
        """What is believed before any decision but that on the original, which stands."""
        directions = np.full(features - places, self.direction_deviation)
        belief = Belief(
            np.concatenate([[self.bias], np.zeros(features)]),
            np.concatenate([[self.bias_deviation], np.full(places, self.place_deviation), directions]),
        )
        belief.learn(np.eye(1 + features)[0], False)
        return belief

    def _swaps(self, ground: Ground) -> Program[Swaps]:
        """Costs and features of the swaps, the nearest words of each place only where there are too many."""
        most = max(3, self.pairs // len(ground.places))
        words = [ground.words[place][:most] for place in ground.places]
        width = max(map(len, words))
        known = [
            (row, column, place, word)
            for row, place in enumerate(ground.places)
            for column, word in enumerate(words[row])
        ]
        similarities = yield from ground.similarities(
            [ground.original.replace(place, word) for _, _, place, word in known]
        )
        costs = np.full((len(words), width), np.inf)
        moves = yield from self._moves(ground, [(place, word) for _, _, place, word in known])
        features = np.zeros((len(words), width, len(words) + moves.shape[1]))
        for (row, column, _, _), similarity, move in zip(known, similarities, moves, strict=True):
            costs[row, column] = max(1.0 - similarity, 1e-5)
            features[row, column, row] = 1.0
            features[row, column, len(words) :] = move
        return Swaps(words, costs, features)

    def _moves(self, ground: Ground, pairs: Sequence[tuple[int, str]]) -> Program[Floats]:
        """How each swap moves the word's vector, along the directions in which the swaps differ most."""
        vectors = yield from word_vectors(ground, self.table)
        size = next((len(vector) for vector in vectors.values()), 1)
        moves = np.zeros((len(pairs), size))
        for number, (place, new) in enumerate(pairs):
            old = ground.original.words[place]
            if old in vectors and new in vectors:
                moves[number] = vectors[new] - vectors[old]
        _, _, directions = np.linalg.svd(moves, full_matrices=False)
        return np.asarray(moves @ directions[: self.directions].T)


def doubling_start(ground: Ground) -> Program[Scored | None]:
    """Drawn words in 1, 2, 4, … places in a drawn order, then in all, until the label flips."""
    count = len(ground.places)
    doubled = [1 << power for power in range(count.bit_length()) if 1 << power < count]
    return (yield from draw_until_flip(ground, doubled))


def reduce_by_halves(ground: Ground, now: Scored) -> Program[Scored]:
    """Puts words back in groups, each half as large as before, those first that restore most similarity."""
    changed = ground.changed(now.text)
    gains = yield from ground.similarities([ground.back(now.text, place) for place in changed])
    order = [
        place for _, place in sorted(zip(gains, changed, strict=True), key=lambda pair: (-pair[0], pair[1]))
    ]
    size = len(order) // 2
    while size:
        kept: list[int] = []
        for first in range(0, len(order), size):
            group = order[first : first + size]
            shorter = None
            if len(kept) + len(order) - first > len(group):  # a text without any change is the original
                shorter = yield from ground.flips(ground.back(now.text, *group))
            if shorter is None:
                kept += group
            else:
                now = shorter
        order = kept
        size //= 2
    return now


def descend(ground: Ground, now: Scored) -> Program[Scored]:
    """Improves one changed word after the other until none can be: put back, or the most similar candidate
    that keeps the flip."""
    settled: set[int] = set()
    while places := [place for place in ground.changed(now.text) if place not in settled]:
        backs = yield from ground.similarities([ground.back(now.text, place) for place in places])
        place = max(zip(backs, places, strict=True), key=lambda pair: (pair[0], -pair[1]))[1]
        better = yield from more_similar(ground, now, place)
        settled.add(place)
        if better is not None:
            now, settled = better, {place}
    return now


RECIPES: dict[str, Recipe] = decision_versions(
    {"1": LearnedFlips(), "quick": LearnedFlips(proposals=0)},
    name="decision-learner",
    summary="by decisions alone: learns which synonyms flip, asks about the most similar that should",
    paper="ours; no paper",
)
