"""HQA-Attack: decisions only; words put back, then each changed word exchanged along a direction of
similarity.

Liu, Xu, Zhang, Xu, Zhang, Ma, Chen, Yu, Zhang: *HQA-Attack: Toward High Quality Black-Box Hard-Label
Adversarial Attack on Text*, NeurIPS 2023, arXiv:2402.01806.

    1. A random start that flips the label, as HLBB's; put back original words, the most similar first.
    2. Go through the changed places in an order drawn by softmax(1 + cosine of old and new word).
    3. Ask about 5 drawn synonyms and take the most similar that flips; from 5 near neighbours of it (cosine
       over 0.8) estimate in which direction of the vectors the similarity rises.
    4. Ask about the original word's synonyms in order of agreement with that direction; the first that
       flips is put into the original, place after place, until that flips.
    5. 100 rounds; after 3 without change go 3 to 5 states back. One changed word: try all its synonyms, and
       stop.

Versions
    @paper  the steps above.

Differences from the authors' code
    - Queries are distinct texts asked, as there. Candidates have the original word's part of speech.
    - Similarity is the cosine of whole texts by the encoder named (MiniLM), theirs of USE vectors.
    - Where a word has fewer than 5 near neighbours those that there are serve; theirs raises an error.
    - A round whose text does not flip gives way to the text it began with; theirs mixes the two until it
      flips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unfooled.attacks.parts.belief import Floats
from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import Ground, HardLabelVectors, more_similar, word_vectors
from unfooled.attacks.parts.saliency import softmax
from unfooled.core.attempt import Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, require_counts
from unfooled.text import Text


@dataclass(frozen=True, kw_only=True)
class AlongDirections(HardLabelVectors):
    """Exchanges changed words along the direction in which their neighbours are more similar."""

    rounds: int = 100
    draws: int = 5
    neighbours: int = 5
    min_cosine: float = 0.8
    patience: int = 3

    def __post_init__(self) -> None:
        require_counts(self, "rounds", "draws", "neighbours", "patience")

    @property
    def asks(self) -> tuple[str, ...]:
        return (*super().asks, f"neighbours:{self.table}")

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        vectors = yield from word_vectors(ground, self.table)
        first, states, idle = now, [now], 0
        for _ in range(self.rounds):
            now = yield from self._put_back(ground, now)
            changed = ground.changed(now.text)
            if len(changed) == 1:
                yield from more_similar(ground, now, changed[0])
                return
            following = yield from self._round(ground, vectors, now)
            idle = idle + 1 if following.text == now.text else 0
            now = following
            states.append(now)
            if idle == self.patience:
                idle = 0
                back = int(ground.a.rng.integers(3, 6))
                states = states[:-back] or [first]
                now = states[-1]

    def _put_back(self, ground: Ground, now: Scored) -> Program[Scored]:
        """Puts words back one at a time, the first that keeps the flip in order of similarity."""
        while len(changed := ground.changed(now.text)) > 1:
            texts = [ground.back(now.text, place) for place in changed]
            similarities = yield from ground.similarities(texts)
            for number in np.argsort(-np.array(similarities), kind="stable").tolist():
                shorter = yield from ground.flips(texts[number])
                if shorter is not None:
                    now = shorter
                    break
            else:
                break
        return now

    def _round(self, ground: Ground, vectors: Mapping[str, Floats], now: Scored) -> Program[Scored]:
        """The original with the exchanged words, place after place, until it flips; else the present text."""
        places = ground.changed(now.text)
        old, new = ground.original.words, now.text.words
        near = [1.0 + _cosine(vectors.get(old[place]), vectors.get(new[place])) for place in places]
        order = ground.a.rng.choice(len(places), size=len(places), replace=False, p=softmax(near))
        built = ground.original
        for number in order.tolist():
            place = places[number]
            word = yield from self._exchanged(ground, vectors, now.text, place)
            built = built.replace(place, word)
            flipped = yield from ground.flips(built)
            if flipped is not None:
                return flipped
        return now

    def _exchanged(
        self, ground: Ground, vectors: Mapping[str, Floats], text: Text, place: int
    ) -> Program[str]:
        """The word that takes this place."""
        words = ground.words[place]
        picked = ground.a.rng.permutation(len(words))[: self.draws].tolist()
        asked = yield from ground.ask([text.replace(place, words[number]) for number in picked])
        flips = [scored for scored in asked if scored.success]
        if not flips:
            return text.words[place]
        middle = max(flips, key=lambda scored: scored.similarity or 0.0)
        word: str = middle.text.words[place]
        direction = yield from self._direction(ground, middle, place)
        if direction is None or word not in vectors:
            return word
        options = [near for near in words if near in vectors]
        agree = [-round(_cosine(direction, vectors[near] - vectors[word]), 6) for near in options]
        for number in np.argsort(np.array(agree), kind="stable").tolist():
            option: str = options[number]
            if (yield from ground.flips(text.replace(place, option))) is not None:
                return option
        return word

    def _direction(self, ground: Ground, middle: Scored, place: int) -> Program[Floats | None]:
        """Where the vectors of near words that are more similar lie."""
        word = middle.text.words[place].lower()
        (near,) = yield from ask(f"neighbours:{self.table}", [(word, 50, self.min_cosine)])
        if not near:
            return None
        drawn = [near[number] for number in ground.a.rng.permutation(len(near))[: self.neighbours]]
        similarities = yield from ground.similarities([middle.text.replace(place, other) for other in drawn])
        base, *others = yield from ask(f"vectors:{self.table}", [word, *drawn])
        rises = np.array(similarities) - (middle.similarity or 0.0)
        rises = rises / max(float(np.abs(rises).sum()), 1e-12)
        steps = [
            rise * (np.asarray(other, dtype=np.float64) - np.asarray(base, dtype=np.float64))
            for rise, other in zip(rises.tolist(), others, strict=True)
            if base is not None and other is not None
        ]
        return np.asarray(sum(steps)) if steps else None


def _cosine(one: Floats | None, other: Floats | None) -> float:
    if one is None or other is None:
        return 0.0
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return round(float(one @ other) / length, 6) if length > 1e-12 else 0.0


RECIPES: dict[str, Recipe] = decision_versions(
    {"paper": AlongDirections()},
    name="hqa",
    summary="by decisions alone: exchanges changed words where similarity rises",
    paper="Liu et al. 2023, arXiv:2402.01806",
)
