"""Searches that keep a population of texts: genetic search, a swarm, and differential evolution.

All of a generation is asked together: the children in one ask, and the options of all that mutate in one.
Every draw comes from the example's own generator, so that results do not depend on batches. Words are
replaced only, so that a place means the same in every member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.beam import untouched
from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.levy import levy_draw, levy_within
from unfooled.attacks.parts.saliency import softmax
from unfooled.attacks.parts.search import Ties, is_stopword, require_stopwords
from unfooled.attacks.parts.together import Options, best_of_each, count_each, swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, gather
from unfooled.core.victim import require_choice
from unfooled.text import Text

Floats: TypeAlias = NDArray[np.float64]
Parents = Literal["best", "worst"]
Crossover = Literal["uniform", "one-point"]
Start = Literal["drawn", "each-word"]
Flight = Literal["plain", "levy"]
Mutation = Literal["drawn-place", "drawn-best", "best"]
Swap: TypeAlias = Callable[[Scored, int], Options]
_MOST_KNOWN = 5000  # places whose options are kept


def fittest(texts: Sequence[Scored]) -> Scored:
    """The one with the highest score, those that reach the goal first; of equals the first."""
    return max(texts, key=lambda scored: (scored.success, scored.score))


def mixed(text: Text, other: Text, take: NDArray[np.bool_]) -> Text:
    """`text` with the words of `other` in the places taken."""
    for place in np.flatnonzero(take).tolist():
        if text.words[place] != other.words[place]:
            text = text.replace(place, other.words[place])
    return text


@dataclass(frozen=True, kw_only=True)
class _WordPopulation:
    """What genetic search and swarm have in common: where replacements come from, and how many search."""

    candidates: Candidates
    constraints: tuple[Constraint, ...]
    size: int = 60
    repeat: bool = False
    stopwords: str = "english"
    stopwords_cased: bool = True
    ties: Ties = "text"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        if self.size < 2:
            raise ValueError("size is at least 2")

    def swap(self, a: Attempt) -> Swap:
        """The options of a place; none where its word is a stop word, or was replaced and has to stay."""
        options = swapping(a, self.candidates, self.constraints, self.ties)
        # A population becomes one text many times over. By identity, for equal texts may have come about in
        # other ways; kept beside the text, so that no other one gets its number.
        known: dict[tuple[int, int], tuple[Text, list[NextText]]] = {}

        def swap(now: Scored, place: int) -> Options:
            if not self.is_free(now.text, place):
                return []
            key = (id(now.text), place)
            if key not in known:
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                known[key] = now.text, (yield from options(now, place))
            return known[key][1]

        return swap

    def is_free(self, text: Text, place: int) -> bool:
        """Whether the word may be replaced."""
        if is_stopword(text.words[place], self.stopwords, cased=self.stopwords_cased):
            return False
        return self.repeat or untouched(text, place)


# -- genetic search --------------------------------------------------------------------------------


class Member(NamedTuple):
    """A text of the population, and how likely each of its places is to mutate."""

    scored: Scored
    weights: Floats


def parent_chances(scores: Sequence[float], temperature: float, parents: Parents) -> Floats:
    """How likely each member is to become a parent: softmax of its score, or of its score turned around."""
    sign = 1.0 if parents == "best" else -1.0
    return softmax([sign * score / temperature for score in scores])


def taken_from_second(places: int, crossover: Crossover, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which words a child has of its second parent: each with one half, or all from some place on."""
    if crossover == "uniform":
        return np.asarray(rng.random(places) < 0.5)
    return np.asarray(np.arange(places) >= rng.integers(places))


@dataclass(frozen=True, kw_only=True)
class Genetic(_WordPopulation):
    """Members mutate at one drawn place, to its best option if that is better; parents are drawn by score.

    A place is drawn by how many options it has in the original text, at least `least_weight`; with `times` it
    may change so often, and is drawn by how often it still may. `persistent` draws again until something
    improves. `start` is `drawn` mutations, or one member per word (`each-word`) with its best option; with
    `skip_first` the first word's is drawn. The fittest survives; the others are children of two parents.
    """

    generations: int = 20
    temperature: float = 0.3
    parents: Parents = "best"
    crossover: Crossover = "uniform"
    start: Start = "drawn"
    skip_first: bool = False
    times: int | None = None
    least_weight: int = 0
    persistent: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.parents, Parents, "parents")
        require_choice(self.crossover, Crossover, "crossover")
        require_choice(self.start, Start, "start")
        if not self.temperature > 0:
            raise ValueError("temperature is above 0")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        swap = self.swap(a)
        original = Member(start, (yield from self._weights(a, start, swap)))
        population = yield from self._begin(a, original, swap)
        for _ in range(self.generations):
            if fittest([member.scored for member in population]).success:
                break
            population = yield from self._next(a, population, swap)
        return fittest([start, *(member.scored for member in population)])

    def _weights(self, a: Attempt, start: Scored, swap: Swap) -> Program[Floats]:
        places = range(len(start.text.words))
        if self.times is not None:
            return np.full(len(places), float(self.times))
        counts = yield from count_each(a, [swap(start, place) for place in places])
        return np.maximum(np.array(counts, dtype=np.float64), self.least_weight)

    def _begin(self, a: Attempt, original: Member, swap: Swap) -> Program[list[Member]]:
        places: list[int | None] = [None] * self.size
        if self.start == "each-word":
            words = min(self.size, len(original.weights))
            places = [None if self.skip_first and place == 0 else place for place in range(words)]
        return (yield from self._mutated(a, [original] * len(places), swap, places))

    def _next(self, a: Attempt, population: Sequence[Member], swap: Swap) -> Program[list[Member]]:
        ranked = sorted(population, key=lambda member: (not member.scored.success, -member.scored.score))
        children = len(ranked) - 1
        chances = parent_chances([member.scored.score for member in ranked], self.temperature, self.parents)
        pairs = a.rng.choice(len(ranked), size=(2, children), p=chances).T.tolist()
        texts, weights = [], []
        for parent, other in pairs:
            first, second = ranked[parent], ranked[other]
            take = taken_from_second(len(first.weights), self.crossover, a.rng)
            texts.append(mixed(first.scored.text, second.scored.text, take))
            weights.append(np.where(take, second.weights, first.weights))
        scored = yield from a.score(texts)
        born = [Member(*child) for child in zip(scored, weights, strict=True)]
        return [ranked[0], *(yield from self._mutated(a, born, swap, [None] * children))]

    def _mutated(
        self, a: Attempt, members: Sequence[Member], swap: Swap, places: Sequence[int | None]
    ) -> Program[list[Member]]:
        """All members with a mutation each, at a drawn place where none is given."""
        # Each has its own generator: what one draws does not depend on how many rounds another takes.
        seeds = a.rng.integers(2**63, size=len(members)).tolist()
        programs = [
            self._mutate(a, member, swap, place, np.random.default_rng(seed))
            for member, place, seed in zip(members, places, seeds, strict=True)
        ]
        return (yield from gather(programs))

    def _mutate(
        self, a: Attempt, member: Member, swap: Swap, place: int | None, rng: np.random.Generator
    ) -> Program[Member]:
        now, weights = member.scored, member.weights.copy()
        if not self.repeat:
            weights[[i for i in range(len(weights)) if not untouched(now.text, i)]] = 0.0
        tries = int(np.count_nonzero(weights)) if self.persistent and place is None else 1
        for _ in range(tries):
            if not weights.any():
                break
            chosen = place if place is not None else int(rng.choice(len(weights), p=weights / weights.sum()))
            options = yield from swap(now, chosen)
            if not options:
                continue  # its weight stays: it may be drawn again
            found = yield from a.score(
                [option.text for option in options], [option.similarity for option in options]
            )
            best = fittest(found)
            if best.success or best.score > now.score:
                left = member.weights.copy()
                left[chosen] = left[chosen] - 1.0 if self.times is not None else 0.0
                return Member(best, left)
            weights[chosen] = 0.0
        return member


# -- swarm -----------------------------------------------------------------------------------------


class Particle(NamedTuple):
    scored: Scored
    speeds: Floats  # one per place
    best: Scored  # its own


def new_speeds(speeds: Floats, inertia: float, words: Text, own: Text, swarm: Text, most: float) -> Floats:
    """Slower where a word is that of the particle's or the swarm's best, faster where it differs."""

    def pull(best: Text) -> Floats:
        equal = np.array([word == other for word, other in zip(words.words, best.words, strict=True)])
        return np.where(equal, -most, most)

    return np.asarray(inertia * speeds + (1.0 - inertia) * (pull(own) + pull(swarm)))


def sigmoid(values: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


@dataclass(frozen=True, kw_only=True)
class Swarm(_WordPopulation):
    """Particles drift towards their own best text and the swarm's, word by word, and mutate now and then.

    A particle moves to its own best with a chance that falls from 0.8 to 0.2, to the swarm's with one that
    rises from 0.2 to 0.8; a word is taken over with the chance that its speed gives. `mirrored` starts at the
    best and takes the *particle's* words with that chance, as TextAttack does. It mutates with a chance of
    1 - 2 times the share of its words that differ from the original.

    `flight="levy"` (LEAP): speeds at the start are uniform or Lévy draws; a particle below the mean score of
    the start gets the more inertia the better it is, the others a Lévy draw; about one word moves at a time
    (softmax of the speeds); the share that differs is measured from the particle's own best.

    `mutation` is `drawn-place` (one place, drawn by its options, at most ten, and the best of these),
    `drawn-best` (the best option of every place, drawn by gain) or `best` (the one that gains most).
    """

    rounds: int = 20
    most_speed: float = 3.0
    flight: Flight = "plain"
    mutation: Mutation = "drawn-place"
    mirrored: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.flight, Flight, "flight")
        require_choice(self.mutation, Mutation, "mutation")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        swap = self.swap(a)
        weights = np.zeros(len(start.text.words))
        if self.mutation == "drawn-place":
            counts = yield from count_each(a, [swap(start, place) for place in range(len(weights))])
            weights = np.minimum(np.array(counts, dtype=np.float64), 10.0)
        begun = yield from self._mutated(a, [start] * self.size, swap, weights, starting=True)
        swarm = fittest(begun)
        if swarm.success:
            return swarm
        particles = self._particles(a, begun, len(weights))
        scores = np.array([scored.score for scored in begun])
        mean, least = round(float(scores.mean()), 3), float(scores.min())
        for number in range(self.rounds):
            share = number / self.rounds
            inertia = [self._inertia(a, particle, share, mean, least) for particle in particles]
            moved = [
                self._moved(a, particle, swarm, own, share)
                for particle, own in zip(particles, inertia, strict=True)
            ]
            scored = yield from a.score([text for text, _ in moved])
            if (found := fittest(scored)).success:
                return found
            drifting = [
                now if a.rng.random() >= self._mutation_chance(now, particle.best, start) else None
                for now, particle in zip(scored, particles, strict=True)
            ]
            changing = [now for now, stays in zip(scored, drifting, strict=True) if stays is None]
            mutants = iter((yield from self._mutated(a, changing, swap, weights)))
            after = [next(mutants) if stays is None else stays for stays in drifting]
            particles = [
                Particle(now, speeds, now if now.score > particle.best.score else particle.best)
                for now, (_, speeds), particle in zip(after, moved, particles, strict=True)
            ]
            swarm = fittest([swarm, *after])
            if swarm.success:
                return swarm
        return swarm

    def _particles(self, a: Attempt, begun: Sequence[Scored], places: int) -> list[Particle]:
        speeds = a.rng.uniform(-self.most_speed, self.most_speed, len(begun))
        if self.flight == "levy":
            for number in range(len(begun)):
                if a.rng.uniform(-self.most_speed, self.most_speed) >= levy_draw(a.rng):
                    speeds[number] = levy_within(a.rng, -self.most_speed, self.most_speed)
        return [
            Particle(scored, np.full(places, speed), scored)
            for scored, speed in zip(begun, speeds, strict=True)
        ]

    def _inertia(self, a: Attempt, particle: Particle, share: float, mean: float, least: float) -> float:
        if self.flight == "plain":
            return 0.6 * (1.0 - share) + 0.2
        if particle.scored.score < mean and mean > least:
            return 0.2 + 0.6 * (particle.scored.score - least) / (mean - least)
        return levy_within(a.rng, 0.5, 0.8)

    def _moved(
        self, a: Attempt, particle: Particle, swarm: Scored, inertia: float, share: float
    ) -> tuple[Text, Floats]:
        """Where the particle goes, and how fast it is then."""
        text = particle.scored.text
        speeds = new_speeds(particle.speeds, inertia, text, particle.best.text, swarm.text, self.most_speed)
        chances = sigmoid(speeds) if self.flight == "plain" else softmax(speeds.tolist())
        for best, chance in ((particle.best, 0.8 - 0.6 * share), (swarm, 0.2 + 0.6 * share)):
            if a.rng.random() < chance:
                take = a.rng.random(len(chances)) < chances
                text = mixed(best.text, text, take) if self.mirrored else mixed(text, best.text, take)
        return text, speeds

    def _mutation_chance(self, now: Scored, own: Scored, start: Scored) -> float:
        other = (start if self.flight == "plain" else own).text.words
        words = now.text.words
        return 1.0 - 2.0 * sum(word != there for word, there in zip(words, other, strict=True)) / len(words)

    def _mutated(
        self,
        a: Attempt,
        texts: Sequence[Scored],
        swap: Swap,
        weights: Floats,
        *,
        starting: bool = False,
    ) -> Program[list[Scored]]:
        """Each text with a mutation; all their options are asked together."""
        if self.mutation == "drawn-place":
            return (yield from self._at_drawn_places(a, texts, swap, weights))
        places = range(len(weights))
        distinct = list({scored.text: scored for scored in texts}.values())
        best = yield from best_of_each(a, [swap(scored, place) for scored in distinct for place in places])
        neighbours = {
            scored.text: [found or scored for found in best[number * len(places) :][: len(places)]]
            for number, scored in enumerate(distinct)
        }
        return [
            self._chosen(a, scored, neighbours[scored.text], drawn=starting or self.mutation == "drawn-best")
            for scored in texts
        ]

    def _chosen(self, a: Attempt, now: Scored, neighbours: Sequence[Scored], *, drawn: bool) -> Scored:
        gains = np.maximum([scored.score - now.score for scored in neighbours], 0.0)
        chances = gains / gains.sum() if gains.sum() > 0 else np.full(len(gains), 1.0 / len(gains))
        if drawn:
            return neighbours[int(a.rng.choice(len(neighbours), p=chances))]
        return neighbours[int(np.argmax(gains))]

    def _at_drawn_places(
        self, a: Attempt, texts: Sequence[Scored], swap: Swap, weights: Floats
    ) -> Program[list[Scored]]:
        options = []
        for scored in texts:
            free = [self.is_free(scored.text, place) for place in range(len(weights))]
            left = np.where(free, weights, 0.0)
            place = int(a.rng.choice(len(left), p=left / left.sum())) if left.any() else None
            options.append(_nothing() if place is None else swap(scored, place))
        best = yield from best_of_each(a, options)
        return [found or scored for found, scored in zip(best, texts, strict=True)]


def _nothing() -> Options:
    return []
    yield  # no question is needed, but a program is a generator


# -- differential evolution ------------------------------------------------------------------------


def evolve(
    a: Attempt,
    start: Scored,
    bounds: Sequence[tuple[float, float]],
    render: Callable[[Floats], Text],
    *,
    size: int = 32,
    generations: int = 10,
    recombination: float = 0.7,
    mutation: tuple[float, float] = (0.5, 1.0),
    spread: float = 0.01,
) -> Program[Scored]:
    """Differential evolution (best1bin) over vectors within `bounds`; `render` makes a text of one.

    `size` members per dimension start as a Latin hypercube. A trial is the best member plus a difference of
    two others, times a factor drawn anew for each generation, in each dimension with the chance
    `recombination`; it takes its forebear's place if it is no worse. Ends with success, after the last
    generation, or when the scores differ by less than `spread` of their mean.
    """
    low, high = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
    if not len(low):
        return start
    members = _latin_hypercube(size * len(low), len(low), a.rng)
    scored = yield from a.score([render(low + row * (high - low)) for row in members])
    for _ in range(generations):
        losses = np.array([1.0 - text.score for text in scored])
        if fittest(scored).success or losses.std() <= spread * abs(losses.mean()):
            break
        trials = _trials(members, int(losses.argmin()), recombination, mutation, a.rng)
        tried = yield from a.score([render(low + row * (high - low)) for row in trials])
        for number, (old, new) in enumerate(zip(scored, tried, strict=True)):
            if (new.success, new.score) >= (old.success, old.score):
                members[number], scored[number] = trials[number], new
    return fittest([start, *scored])


def _latin_hypercube(size: int, dimensions: int, rng: np.random.Generator) -> Floats:
    """Each dimension's stretch in `size` parts, one member in each, in a random order."""
    inside = (np.arange(size)[:, None] + rng.random((size, dimensions))) / size
    return np.asarray(rng.permuted(inside, axis=0))


def _trials(
    members: Floats, best: int, recombination: float, mutation: tuple[float, float], rng: np.random.Generator
) -> Floats:
    size, dimensions = members.shape
    factor = rng.uniform(*mutation)
    trials = members.copy()
    for number in range(size):
        others = [other for other in rng.permutation(size).tolist() if other != number][:2]
        differing = members[others[0]] - members[others[-1]]
        take: NDArray[np.bool_] = np.asarray(rng.random(dimensions) < recombination)
        take[rng.integers(dimensions)] = True
        trials[number, take] = (members[best] + factor * differing)[take]
        outside = (trials[number] < 0.0) | (trials[number] > 1.0)
        trials[number, outside] = rng.random(int(outside.sum()))
    return trials
