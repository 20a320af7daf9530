"""A search that looks at every place first, makes the edits that gain most, and has a success checked.

Deleting a word tells how much the victim needs it, not what a replacement would gain; where few replacements
are allowed the two have little in common. And a large language model is too slow to be asked of every
option, but not to be asked of a text that already succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.search import (
    allowed,
    attackable,
    exploring,
    greedy,
    keep_highest,
    replacing,
    require_stopwords,
)
from unfooled.attacks.parts.undoing import undo_needless, with_one_undone
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, gather
from unfooled.core.recipe import require_counts
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text

_AT_ONCE = 500_000  # characters of a text, once for each place that is looked at together


class Swap(NamedTuple):
    """A word for the place of another; places count words, of which there stay as many."""

    place: int
    word: str

    def made_in(self, text: Text) -> Text:
        return text.replace(self.place, self.word)


@dataclass(frozen=True, kw_only=True)
class PlannedSwap:
    """Try every allowed replacement alone, then make them, by their gain, until the goal is reached.

    An edit that the text does without is taken back. What succeeds is shown to the `checks`, edit by edit:
    the text with the edit beside the text without it. An edit that one of them refuses is not made again,
    and the search goes on without it, `rounds` times at most.
    """

    candidates: Candidates
    constraints: tuple[Constraint, ...]
    checks: tuple[Constraint, ...] = ()
    stopwords: str = "textfooler"
    rounds: int = 20

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_counts(self, "rounds")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        try:
            return (yield from self._search(a, start))
        except BudgetExhaustedError as spent:
            # What was found on the way is not checked yet; the checks ask the victim nothing.
            a.note, best = str(spent), a.best or start
            unwanted = best.success and (yield from self._refused(a, best))
            return start if unwanted else best

    def _search(self, a: Attempt, start: Scored) -> Program[Scored]:
        gains = yield from self._gains(a, start)
        unreached = start
        for _ in range(self.rounds):
            found = yield from self._climb(a, start, gains)
            if not found.success:
                unreached = found
                break
            found = yield from undo_needless(a, found)
            refused = yield from self._refused(a, found)
            if not refused:
                return found
            gains = {swap: gain for swap, gain in gains.items() if swap not in refused}
        return unreached

    def _gains(self, a: Attempt, start: Scored) -> Program[dict[Swap, float]]:
        """The replacements that help when made alone, and how much. Of a long text a few places at a time:
        each option is a whole text, and the budget may end the search before the last of them."""
        places = attackable(start.text, self.stopwords)
        together = max(1, _AT_ONCE // max(1, len(start.text.string)))
        gains: dict[Swap, float] = {}
        for first in range(0, len(places), together):
            gains |= yield from self._gains_at(a, start, places[first : first + together])
        return {swap: gain for swap, gain in gains.items() if gain > 0}

    def _gains_at(self, a: Attempt, start: Scored, places: Sequence[int]) -> Program[dict[Swap, float]]:
        options = yield from gather([self._options(a, start, place) for place in places])
        swaps = [Swap(option.position, option.word) for found in options for option in found]
        scored = yield from a.score([swap.made_in(start.text) for swap in swaps])
        return {swap: alone.score - start.score for swap, alone in zip(swaps, scored, strict=True)}

    def _options(self, a: Attempt, now: Scored, place: int) -> Program[list[NextText]]:
        options = yield from replacing(a, self.candidates)(now, place)
        return (yield from allowed(a, now, options, self.constraints))

    def _climb(self, a: Attempt, start: Scored, gains: Mapping[Swap, float]) -> Program[Scored]:
        """Edit the places in the order of their best gain; at each, again whatever helps most by then."""
        by_gain = sorted(gains, key=lambda swap: -gains[swap])

        def propose(now: Scored, place: int) -> Program[list[NextText]]:
            return [NextText(swap.made_in(now.text), place) for swap in gains if swap.place == place]
            yield  # no question is needed, but a program is a generator

        places = dict.fromkeys(swap.place for swap in by_gain)
        explore = exploring(a, propose, self.constraints)
        return (yield from greedy(start, places, explore, keep=keep_highest))

    def _refused(self, a: Attempt, found: Scored) -> Program[set[Swap]]:
        """The edits that a check does not let pass, each looked at in the text that holds them all."""
        edits = zip(found.text.edits(), with_one_undone(found.text), strict=True)
        looks = [
            (
                Swap(edit.position, edit.after),
                found._replace(text=without),
                [NextText(found.text, edit.position)],
            )
            for edit, without in edits
        ]
        passed = yield from gather([allowed(a, without, option, self.checks) for _, without, option in looks])
        return {swap for (swap, _, _), options in zip(looks, passed, strict=True) if not options}
