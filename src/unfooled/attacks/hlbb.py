"""HLBB: decisions only; a random flip, words put back, then a genetic search for the most similar flip.

Maheshwary, Maheshwary, Pudi: *Generating Natural Language Attacks in a Hard Label Black Box Setting*, AAAI
2021, arXiv:2012.14956.

    1. Replace 1, 2, 3, … drawn content words by drawn synonyms until the label flips; then all, up to 2,500
       times.
    2. Put back original words, those that restore most similarity first, while the label stays flipped.
    3. Thirty texts, each with one changed word exchanged for the most similar synonym that keeps the flip.
    4. Parents are drawn by softmax(similarity); a child takes each word from either, and mutates as in 3.
    5. Stop after 15 generations without gain, 100 in all, or when one word is changed.

Versions
    @paper  the steps above: 50 counter-fitted neighbours per word, each place mutates at most 25 times.

Differences from the authors' code
    - Queries are distinct texts asked; theirs count the children kept, not those asked about.
    - Candidates have the part of speech of the original word, from the start on; theirs only when they
      mutate.
    - Similarity is the cosine of the whole text by the encoder named (MiniLM), theirs 1 - arccos of USE
      vectors, in a window of 40 words when a word mutates. Synonyms less similar than the present word are
      not asked about, and neither is a child less similar than its first parent.
    - Where an end is reached early, queries of the budget are left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.goals import decision_versions
from unfooled.attacks.parts.hard_label import Ground, HardLabel
from unfooled.attacks.parts.population import mixed, taken_from_second
from unfooled.attacks.parts.saliency import softmax
from unfooled.core.attempt import Scored, most_similar
from unfooled.core.program import Program, gather
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class HardLabelGenetic(HardLabel):
    """Breeds flips by their similarity; `times` is how often a place may mutate, over all members."""

    size: int = 30
    generations: int = 100
    patience: int = 15
    times: int = 25

    def __post_init__(self) -> None:
        if self.size < 2 or min(self.generations, self.patience, self.times) < 1:
            raise ValueError("size is at least 2; generations, patience and times are at least 1")

    def refine(self, ground: Ground, now: Scored) -> Program[None]:
        left = dict.fromkeys(ground.places, self.times)
        mutants = yield from gather([mutate(ground, now, place) for place in ground.changed(now.text)])
        members = sorted(_distinct([now, *mutants]), key=_by_similarity)[: self.size]
        idle = 0
        for _ in range(self.generations):
            if len(ground.changed(members[0].text)) <= 1 or idle == self.patience:
                break
            best = members[0]
            members = yield from self._generation(ground, members, left)
            idle = 0 if _by_similarity(members[0]) < _by_similarity(best) else idle + 1

    def _generation(
        self, ground: Ground, members: Sequence[Scored], left: dict[int, int]
    ) -> Program[list[Scored]]:
        """The best survives; all others are replaced by children, each mutated in one place."""
        children = yield from breed(ground, members, self.size - 1)
        mutations = []
        for child in children:
            open_places = [place for place in ground.changed(child.text) if left[place]]
            if open_places:
                place = open_places[int(ground.a.rng.integers(len(open_places)))]
                left[place] -= 1
                mutations.append(mutate(ground, child, place))
        mutants = yield from gather(mutations)
        return sorted([members[0], *children, *mutants], key=_by_similarity)[: self.size]


def breed(ground: Ground, members: Sequence[Scored], count: int) -> Program[list[Scored]]:
    """So many children of drawn parents; the first parent in place of a child that is no flip, less similar
    than it, or has more words changed."""
    rng = ground.a.rng
    chances = softmax([member.similarity or 0.0 for member in members])
    parents, texts = [], []
    for _ in range(count):
        first, second = (members[int(rng.choice(len(members), p=chances))] for _ in range(2))
        taken = taken_from_second(len(first.text.words), "uniform", rng)
        parents.append(first)
        texts.append(mixed(first.text, second.text, taken))
    similarities = yield from ground.similarities(texts)
    fit = [
        number
        for number, (parent, text) in enumerate(zip(parents, texts, strict=True))
        if similarities[number] >= (parent.similarity or 0.0)
        and len(ground.changed(text)) <= len(ground.changed(parent.text))
    ]
    children = list(parents)
    asked = yield from ground.ask([texts[number] for number in fit])
    for number, child in zip(fit, asked, strict=True):
        if child.success:
            children[number] = child
    return children


def mutate(ground: Ground, member: Scored, place: int) -> Program[Scored]:
    """The original word if that keeps the flip, else the most similar candidate that does, else no change."""
    restored = yield from ground.flips(ground.back(member.text, place))
    if restored is not None:
        return restored
    texts = [
        member.text.replace(place, word)
        for word in ground.words[place]
        if word not in (member.text.words[place], ground.original.words[place])
    ]
    similarities = yield from ground.similarities(texts)
    nearer = [
        text for text, value in zip(texts, similarities, strict=True) if value >= (member.similarity or 0.0)
    ]
    found = yield from ground.ask(nearer)
    return most_similar([*found, member])


def _by_similarity(member: Scored) -> float:
    return -(member.similarity or 0.0)


def _distinct(members: Sequence[Scored]) -> list[Scored]:
    return list({member.text: member for member in members}.values())


RECIPES: dict[str, Recipe] = decision_versions(
    {"paper": HardLabelGenetic()},
    name="hlbb",
    summary="by decisions alone: random synonyms, put back and bred to be similar",
    paper="Maheshwary et al. 2021, arXiv:2012.14956",
)
