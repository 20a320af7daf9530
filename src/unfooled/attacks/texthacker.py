"""TextHacker: decisions only; learns which words matter from its own steps, for few words changed.

Yu, Wang, Che, He: *TextHacker: Learning based Hybrid Local Search Algorithm for Text Hard-label Adversarial
Attack*, Findings of EMNLP 2022, arXiv:2201.08193.

    1. All words drawn among their synonyms, again and again, until the label flips.
    2. A weight for each place and word: a step from word f to word t that keeps the flip lowers f's by 1
       and raises t's by 1/2; one that loses it does the opposite.
    3. Four texts, each reached by up to 8 local steps: a few places, drawn by 1 - sigmoid(sum of weights),
       go back to the original (half of the time) or to a word drawn by its weight.
    4. Two texts are recombined, each place from either by its weight; the four with fewest words changed go
       on.
    5. Until one word is changed, or the budget is spent.

Versions
    @paper  4 synonyms with a cosine over 0.5, four texts, 8 steps, up to 4 places in a step.

Differences from the authors' code
    - Queries are distinct texts asked. Candidates have the original word's part of speech.
    - The result is the most similar flip it met, by the encoder named (MiniLM); the search itself looks at
      the number of words changed alone, as theirs.
    - It ends after 20 rounds that changed nothing; theirs goes on until the budget of 2,000 is spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import Ground, HardLabel, draw_until_flip
from unfooled.core.attempt import Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.text import Text

Weights = dict[tuple[int, str], float]
_FEW = Neighbours(most=4, min_cosine=0.5)


@dataclass(frozen=True, kw_only=True)
class LearnedSteps(HardLabel):
    """Local steps and recombination, both drawn by weights that decisions move."""

    candidates: Candidates = _FEW
    size: int = 4
    steps: int = 8
    most_places: int = 5
    patience: int = 20

    def __post_init__(self) -> None:
        if min(self.size, self.steps, self.patience) < 1 or self.most_places < 2:
            raise ValueError("size, steps and patience are at least 1, most_places at least 2")

    def find(self, ground: Ground) -> Program[None]:
        flipped = yield from draw_until_flip(ground, ())
        if flipped is not None:
            yield from self.refine(ground, flipped)

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        weights: Weights = {}
        members = [now]
        idle = 0
        while idle < self.patience and len(ground.changed(members[0].text)) > 1:
            before = [member.text for member in members]
            grown = list(members)
            for member in members:
                grown += [(yield from self._local(ground, weights, member))]
            for _ in range(self.size):
                child = yield from self._child(ground, weights, members)
                grown += [] if child is None else [child]
            distinct = {member.text: member for member in grown}.values()
            members = sorted(distinct, key=lambda member: len(ground.changed(member.text)))[: self.size]
            idle = idle + 1 if [member.text for member in members] == before else 0

    def _local(self, ground: Ground, weights: Weights, member: Scored) -> Program[Scored]:
        """The text after up to `steps` steps; it goes on from each step that keeps the flip."""
        rng = ground.a.rng
        for _ in range(self.steps):
            changed = ground.changed(member.text)
            if len(changed) <= 1:
                break
            chances = [_sigmoid(-self._sum(ground, weights, place)) for place in changed]
            total = sum(chances)
            count = int(rng.integers(1, max(2, min(self.most_places, len(changed)))))
            picked = rng.choice(
                len(changed), size=count, replace=False, p=[chance / total for chance in chances]
            )
            text = member.text
            restore = rng.random() < 0.5
            for number in picked.tolist():
                place = changed[number]
                word = ground.original.words[place] if restore else self._word(ground, weights, place)
                text = text.replace(place, word)
            if text in (member.text, ground.original):
                continue
            flipped = yield from ground.flips(text)
            _learn(weights, ground, member.text, text, kept=flipped is not None)
            member = flipped or member
        return member

    def _child(self, ground: Ground, weights: Weights, members: Sequence[Scored]) -> Program[Scored | None]:
        """Each place from either of two drawn texts, by the weights of their words."""
        rng = ground.a.rng
        first, second = (members[int(rng.integers(len(members)))].text for _ in range(2))
        text = first
        for place in ground.places:
            own, other = first.words[place], second.words[place]
            if own != other:
                chance = _sigmoid(weights.get((place, other), 0.0) - weights.get((place, own), 0.0))
                text = text.replace(place, other if rng.random() < chance else own)
        if text == ground.original:
            return None
        return (yield from ground.flips(text))

    def _sum(self, ground: Ground, weights: Weights, place: int) -> float:
        return sum(weights.get((place, word), 0.0) for word in ground.words[place])

    def _word(self, ground: Ground, weights: Weights, place: int) -> str:
        words = ground.words[place]
        chances = [_sigmoid(weights.get((place, word), 0.0)) for word in words]
        total = sum(chances)
        return words[int(ground.a.rng.choice(len(words), p=[chance / total for chance in chances]))]


def _learn(weights: Weights, ground: Ground, before: Text, after: Text, *, kept: bool) -> None:
    """Moves the weights of the words that a step exchanged."""
    sign = 1.0 if kept else -1.0
    for place in ground.places:
        old, new = (place, before.words[place]), (place, after.words[place])
        if old != new:
            weights[old] = weights.get(old, 0.0) - sign
            weights[new] = weights.get(new, 0.0) + 0.5 * sign


def _sigmoid(value: float) -> float:
    """Never quite 0, so that every place and word can be drawn."""
    return 1.0 / (1.0 + math.exp(-max(-20.0, min(20.0, value))))


RECIPES: dict[str, Recipe] = decision_versions(
    {"paper": LearnedSteps()},
    name="texthacker",
    summary="by decisions alone: learns from its steps which words to change, for few changes",
    paper="Yu et al. 2022, arXiv:2201.08193",
)
