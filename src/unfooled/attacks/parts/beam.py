"""Beam search: several texts go on at once, each edited at every place, or at one place after the other.

    propose      what may be done to each text of the beam: options that every constraint lets pass
    score        all of them together
    keep         the best `width` go on, be they worse than before (`any`) or not (`better`)

A beam of width 1 over all places is the greedy search of TextAttack, which moves on even where every option
is worse than the present text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint
from unfooled.attacks.parts.importance import Importance
from unfooled.attacks.parts.search import Ties, attackable, require_stopwords
from unfooled.attacks.parts.together import Options, score_together, swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import require_counts
from unfooled.core.victim import require_choice
from unfooled.text import Text

Accept = Literal["any", "better"]
Result = Literal["last", "best"]
Place: TypeAlias = int | None  # None: anywhere
# What may happen to a text: one program per place, whose options its constraints let pass.
Expand: TypeAlias = Callable[[Scored, Place], Sequence[Options]]


class _Found(NamedTuple):
    """A text and where it stands among all of its step: the first of a sorted list is the best."""

    rank: tuple[bool, float, int, int | str]
    scored: Scored


def beam(
    a: Attempt,
    start: Scored,
    steps: Iterable[Place],
    expand: Expand,
    *,
    width: int = 1,
    accept: Accept = "any",
    result: Result = "last",
    ties: Ties = "nearest",
    stop: Callable[[Scored], bool] | None = None,
) -> Program[Scored]:
    """Take the steps in their order with the best `width` texts; a step that leads anywhere is None.

    The search ends with success, after the last step, when a step to anywhere finds nothing that goes on, or
    when `stop` says so of the best text. It returns the best text of the `last` step, or the `best` of all.
    Equal scores fall to the text whose forebear was better, then to the option that comes first, or sorts
    first where `ties` is `text`.
    """
    members, best = [start], start
    for step in steps:
        found = yield from _step(a, members, step, expand, width=width, ties=ties)
        stay = members if accept == "better" or not found else []
        following = sorted([*stay, *found], key=lambda scored: (not scored.success, -scored.score))[:width]
        if step is None and _texts(following) == _texts(members):
            break
        members = following
        best = max(best, members[0], key=lambda scored: (scored.success, scored.score))
        if members[0].success or (stop is not None and stop(members[0])):
            break
    return best if result == "best" else members[0]


def _texts(members: Sequence[Scored]) -> list[Text]:
    return [member.text for member in members]


def _step(
    a: Attempt, members: Sequence[Scored], step: Place, expand: Expand, *, width: int, ties: Ties
) -> Program[list[Scored]]:
    """The best `width` texts that the step leads to, whichever text they come from."""
    places = [(number, place) for number, member in enumerate(members) for place in expand(member, step)]
    best: list[_Found] = []
    seen: set[Text] = set()

    def take(place: int, found: list[Scored]) -> None:
        number = places[place][0]
        for scored in found:
            if scored.text not in seen:
                tie = scored.text.string if ties == "text" else len(seen)
                best.append(_Found((not scored.success, -scored.score, number, tie), scored))
                seen.add(scored.text)
        best.sort(key=lambda found: found.rank)
        del best[width:]

    yield from score_together(a, [options for _, options in places], take)
    return [found.scored for found in best]


@dataclass(frozen=True, kw_only=True)
class BeamSwap:
    """Replace words, each once: at every step any word (`order` is none), or one after the other in an order.

    `most_edits` bounds the steps to anywhere; None goes on until no word is left. `repeat` lets a word that
    was replaced be replaced again. `floor` ends the search when p(true class) is below it.
    """

    candidates: Candidates
    constraints: tuple[Constraint, ...]
    width: int = 1
    order: Importance | None = None
    accept: Accept = "any"
    result: Result = "last"
    most_edits: int | None = None
    repeat: bool = False
    floor: float | None = None
    stopwords: str = "english"
    stopwords_cased: bool = True
    ties: Ties = "text"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_choice(self.accept, Accept, "accept")
        require_choice(self.result, Result, "result")
        require_counts(self, "width")
        if self.most_edits is not None and self.most_edits < 1:
            raise ValueError("most_edits is at least 1, or none for any number")
        if self.floor is not None and not 0.0 <= self.floor <= 1.0:
            raise ValueError("floor is a probability, or none")
        if self.repeat and self.accept == "any" and self.most_edits is None and self.order is None:
            raise ValueError("words that may be replaced again and again need most_edits, or accept=better")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        options = swapping(a, self.candidates, self.constraints, self.ties)

        def expand(now: Scored, place: Place) -> list[Options]:
            places = self._free(now.text) if place is None else [place]
            return [options(now, index) for index in places]

        if self._gives_up(a, start):
            return start
        steps: Iterable[Place]
        if self.order is not None:
            steps = yield from self.order.rank(a, start, self._free(start.text))
        else:
            steps = repeat(None) if self.most_edits is None else repeat(None, self.most_edits)
        return (
            yield from beam(
                a,
                start,
                steps,
                expand,
                width=self.width,
                accept=self.accept,
                result=self.result,
                ties=self.ties,
                stop=lambda now: self._gives_up(a, now),
            )
        )

    def _gives_up(self, a: Attempt, now: Scored) -> bool:
        if self.floor is None or now.probs[a.label] >= self.floor:
            return False
        a.note = f"stopped: the confidence is below {self.floor:g}, but the label stands"
        return True

    def _free(self, text: Text) -> list[int]:
        """The words that may be replaced."""
        open_to_all = attackable(text, self.stopwords, cased=self.stopwords_cased)
        return open_to_all if self.repeat else [i for i in open_to_all if untouched(text, i)]


def untouched(text: Text, index: int) -> bool:
    """Whether the word is one of the original's, in its old form."""
    origin = text.origin[index]
    return origin >= 0 and text.words[index] == text.root.words[origin]
