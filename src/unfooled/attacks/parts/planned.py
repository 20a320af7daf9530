"""A search that looks at every place first, makes the edits that gain most, and has a success checked.

Deleting a word tells how much the victim needs it, not what a replacement would gain; where few replacements
are allowed the two have little in common. And a large language model is too slow to be asked of every
option, but not to be asked of a text that already succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.search import allowed, attackable, require_stopwords
from unfooled.attacks.parts.undoing import undo_needless, with_one_undone
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, gather
from unfooled.text import Text


class Swap(NamedTuple):
    """A word for the place of another; places count words of the original, which stay as many."""

    place: int
    word: str


@dataclass(frozen=True, kw_only=True)
class PlannedSwap:
    """Try every allowed replacement alone; then make them in the order of their gain until the goal is reached.

    An edit that the text does without is taken back. What succeeds is shown to the `checks`, edit by edit:
    the text with the edit against the text without it. An edit that one of them refuses is not made again,
    and the search goes on without it, `rounds` times at most.
    """

    candidates: Candidates
    constraints: tuple[Constraint, ...]
    checks: tuple[Constraint, ...] = ()
    stopwords: str = "textfooler"
    rounds: int = 20

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        if self.rounds < 1:
            raise ValueError("rounds is at least 1")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        places = attackable(start.text, self.stopwords)
        options = yield from gather([self._options(a, start, place) for place in places])
        swaps = [Swap(option.position, option.word) for found in options for option in found]
        scored = yield from a.score([_with(start.text, swap) for swap in swaps])
        worth = {swap: alone.score for swap, alone in zip(swaps, scored, strict=True) if alone.score > start.score}
        best = start
        for _ in range(self.rounds):
            found = yield from self._climb(a, start, worth)
            best = max(best, found, key=lambda text: text.score)
            if not found.success:
                break
            found = yield from undo_needless(a, found)
            refused = yield from self._refused(a, found)
            if not refused:
                return found
            worth = {swap: gain for swap, gain in worth.items() if swap not in refused}
        return best if not best.success else start

    def _options(self, a: Attempt, now: Scored, place: int) -> Program[list[NextText]]:
        words = yield from self.candidates.propose(a, now.text, place)
        options = [NextText(now.text.replace(place, word), place) for word in words]
        return (yield from allowed(a, now, options, self.constraints))

    def _climb(self, a: Attempt, start: Scored, worth: dict[Swap, float]) -> Program[Scored]:
        places = dict.fromkeys(swap.place for swap in sorted(worth, key=lambda swap: -worth[swap]))
        now = start
        for place in places:
            options = [NextText(_with(now.text, swap), place) for swap in worth if swap.place == place]
            options = yield from allowed(a, now, options, self.constraints)
            scored = yield from a.score([o.text for o in options], [o.similarity for o in options])
            now = max([now, *scored], key=lambda text: text.score)
            if now.success:
                break
        return now

    def _refused(self, a: Attempt, found: Scored) -> Program[set[Swap]]:
        refused: set[Swap] = set()
        for without in with_one_undone(found.text):
            place = next(i for i, (w, o) in enumerate(zip(found.text.words, without.words, strict=True)) if w != o)
            option = NextText(found.text, place)
            passed = yield from allowed(a, found._replace(text=without), [option], self.checks)
            if not passed:
                refused.add(Swap(place, option.word))
        return refused


def _with(text: Text, swap: Swap) -> Text:
    return text.replace(swap.place, swap.word)
