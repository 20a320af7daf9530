"""decision-learner: ours; learns from decisions which swaps flip the label, and asks only for nearer flips.

No paper: written for this toolkit, after measuring what hard-label attacks spend their queries on. HLBB puts
words back one by one and never leaves the places of its random start; similarity costs no query, decisions do.

    1. Drawn synonyms in 1, 2, 4, 8, … drawn content words until the label flips.
    2. Put original words back in halves, quarters, … down to single words, while the label stays flipped.
    3. For each changed word ask about the candidates that make the text more similar, the most similar first, and
       take the first that keeps the flip; put back what can be; until nothing changes.
    4. A probit regression learns from all decisions so far: an effect of each place, and of each direction that a
       word's vector moves in. Weights are drawn from what it believes (Thompson sampling), and the cheapest set of
       swaps that flips under these is asked about, if it is more similar than the best text so far.
    5. A flip is a new best text, improved as in 3. Draws that propose nothing new are spread wider, then it ends.

Versions
    @1  the steps above, with HLBB's candidates: 50 counter-fitted neighbours of the same part of speech.

The loss of similarity of several swaps is taken as the sum of their losses, each measured alone, to choose what to
propose; what is asked about is measured as it is. On long texts only the `pairs` nearest swaps are proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unfooled.attacks.parts.belief import Belief, Floats, cheapest_flip
from unfooled.attacks.parts.goals import AnotherDecision
from unfooled.attacks.parts.hard_label import MOST_STARTS, Ground, HardLabel, more_similar
from unfooled.core.attempt import Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, recipe_versions
from unfooled.text import Text


class Swaps(NamedTuple):
    """Every swap that may be proposed: by place and option, what it costs in similarity, and its features."""

    words: list[tuple[str, ...]]  # of each place
    costs: Floats  # [places, options], infinite where there is no option
    features: Floats  # [places, options, features]

    def of(self, ground: Ground, text: Text) -> Floats | None:
        """The features of a text, or None where one of its words is not among the swaps."""
        total = np.zeros(self.features.shape[2])
        for place, words in zip(ground.places, self.words, strict=True):
            word = text.words[place]
            if word == ground.original.words[place]:
                continue
            if word not in words:
                return None
            total += self.features[ground.places.index(place), words.index(word)]
        return np.concatenate([[1.0], total])


@dataclass(frozen=True, kw_only=True)
class LearnedFlips(HardLabel):
    """Local improvement first, then proposals of what was learned.

    `directions` is how many directions of word vectors it tells apart, `pairs` how many swaps it knows at most.
    """

    table: str = "counter-fitted"
    directions: int = 24
    pairs: int = 1000
    bias: tuple[float, float] = (-2.0, 1.0)
    place_deviation: float = 1.0
    direction_deviation: float = 1.5
    patience: int = 20

    @property
    def asks(self) -> tuple[str, ...]:
        return (*super().asks, f"vectors:{self.table}")

    def find(self, ground: Ground) -> Program[None]:
        flipped = yield from doubling_start(ground)
        if flipped is None:
            return
        best = yield from reduce_by_halves(ground, flipped)
        best = yield from descend(ground, best)
        yield from self.refine(ground, best)

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        swaps = yield from self._swaps(ground)
        count, kinds = len(ground.places), swaps.features.shape[2]
        belief = Belief(
            np.concatenate([[self.bias[0]], np.zeros(kinds)]),
            np.concatenate(
                [
                    [self.bias[1]],
                    np.full(count, self.place_deviation),
                    np.full(kinds - count, self.direction_deviation),
                ]
            ),
        )
        belief.learn(np.eye(1 + kinds)[0], False)
        learned, seen = 0, set[Text]()
        spread, idle = 1.0, 0
        while spread <= 4.0:
            for scored in ground.asked[learned:]:
                seen.add(scored.text)
                features = swaps.of(ground, scored.text)
                if features is not None:
                    belief.learn(features, scored.success)
            learned = len(ground.asked)
            weights = belief.draw(ground.a.rng, spread)
            effects = np.where(np.isfinite(swaps.costs), swaps.features @ weights[1:], -np.inf)
            text = ground.original
            for row, column in cheapest_flip(float(weights[0]), effects, np.minimum(swaps.costs, 1e9)):
                text = text.replace(ground.places[row], swaps.words[row][column])
            fresh = text not in seen and text is not ground.original
            seen.add(text)
            nearer = fresh and (yield from ground.similarities([text]))[0] > (now.similarity or 0.0)
            if not nearer:
                idle += 1
                if idle >= self.patience:
                    idle, spread = 0, spread * 2.0
                continue
            idle = 0
            flipped = yield from ground.flips(text)
            if flipped is not None:
                spread = 1.0
                now = yield from descend(ground, flipped)

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
        words = dict.fromkeys(word.lower() for place, new in pairs for word in (ground.original.words[place], new))
        vectors = dict(zip(words, (yield from ask(f"vectors:{self.table}", list(words))), strict=True))
        size = next((len(vector) for vector in vectors.values() if vector is not None), 1)
        moves = np.zeros((len(pairs), size))
        for number, (place, new) in enumerate(pairs):
            old_vector, new_vector = vectors[ground.original.words[place].lower()], vectors[new.lower()]
            if old_vector is not None and new_vector is not None:
                moves[number] = np.asarray(new_vector, dtype=np.float64) - np.asarray(old_vector, dtype=np.float64)
        _, _, directions = np.linalg.svd(moves, full_matrices=False)
        return np.asarray(moves @ directions[: self.directions].T)


def doubling_start(ground: Ground) -> Program[Scored | None]:
    """Drawn words in 1, 2, 4, … places in a drawn order, then in all, again and again, until the label flips."""
    order = [ground.places[place] for place in ground.a.rng.permutation(len(ground.places))]
    counts = [1 << power for power in range(len(order).bit_length()) if 1 << power < len(order)]
    for count in [*counts, *[len(order)] * MOST_STARTS]:
        flipped = yield from ground.flips(ground.drawn(order[:count]))
        if flipped is not None:
            return flipped
    return None


def reduce_by_halves(ground: Ground, now: Scored) -> Program[Scored]:
    """Puts words back in groups, each half as large as before, those first that restore most similarity."""
    changed = ground.changed(now.text)
    gains = yield from ground.similarities([ground.back(now.text, place) for place in changed])
    order = [place for _, place in sorted(zip(gains, changed, strict=True), key=lambda pair: (-pair[0], pair[1]))]
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
    """Improves one changed word after the other until none can be: put back, or the most similar candidate that
    keeps the flip."""
    settled: set[int] = set()
    while places := [place for place in ground.changed(now.text) if place not in settled]:
        backs = yield from ground.similarities([ground.back(now.text, place) for place in places])
        place = max(zip(backs, places, strict=True), key=lambda pair: (pair[0], -pair[1]))[1]
        better = yield from more_similar(ground, now, place)
        settled.add(place)
        if better is not None:
            now, settled = better, {place}
    return now


RECIPES: dict[str, Recipe] = recipe_versions(
    {"1": LearnedFlips()},
    name="decision-learner",
    summary="by decisions alone: learns which synonyms flip, asks about the most similar that should",
    paper="ours; no paper",
    goal=AnotherDecision(),
    needs=(),
)
