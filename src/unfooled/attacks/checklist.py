"""CheckList: changes that should not matter: names, places, numbers, contractions.

Ribeiro, Wu, Guestrin, Singh: *Beyond Accuracy: Behavioral Testing of NLP Models with CheckList*, ACL 2020,
arXiv:2005.04118.

    1. Make every text with one such change: a contraction written out or two words drawn together, three
       other names, three other places of the same kind, three numbers near it.
    2. Take the one with the lowest p(true class).
    3. Go on from there, each word once, until the label flips or nothing is left to change.

Versions
    @ours        only improvements are kept, and the best text seen is the result.
    @textattack  the search of TextAttack 0.3.11: goes on with the best change, better or not.

Differences
    - Names and places are words of short lists of ours, with a capital, in the place of an entity model and
      of TextAttack's 13,445 first names: what is not listed stays, and a text in lower case has no names. A
      last name counts behind a first one.
    - A number is a word of digits, or one number word up to twenty or a round ten; 0, 2 and 4 stay, as there.
      TextAttack finds number words inside other words ("often" holds "ten").
    - "ain't" becomes "is not"; TextAttack writes "isn't". Its contractions stop behind the first edit, by a
      mistake in counting; ours do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, TypeAlias

import numpy as np

from unfooled.attacks.parts.beam import Accept, Place, Result, beam, untouched
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.invariances import contracted, expanded, relocated, renamed, renumbered
from unfooled.attacks.parts.together import Options
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, require_counts
from unfooled.core.victim import require_choice
from unfooled.text import Text

Kind: TypeAlias = Literal["contractions", "names", "places", "numbers"]
_Drawn: TypeAlias = Callable[[Text, int, int, np.random.Generator], list[Text]]
_DRAWN: dict[str, _Drawn] = {"names": renamed, "places": relocated, "numbers": renumbered}


@dataclass(frozen=True, kw_only=True)
class Invariances:
    """Changes of these kinds, one after the other; `most` are drawn for a name, a place or a number."""

    kinds: tuple[Kind, ...] = ("contractions", "names", "places", "numbers")
    most: int = 3
    accept: Accept = "better"
    result: Result = "best"

    def __post_init__(self) -> None:
        for kind in self.kinds:
            require_choice(kind, Kind, "kinds")
        require_counts(self, "most")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        def changed(now: Scored, index: int) -> Options:
            return [NextText(text, index) for text in self.changes(now.text, index, a.rng)]
            yield  # no question is needed, but a program is a generator

        def expand(now: Scored, _: Place) -> Sequence[Options]:
            free = [index for index in range(len(now.text.words)) if untouched(now.text, index)]
            return [changed(now, index) for index in free]

        return (
            yield from beam(
                a, start, repeat(None), expand, accept=self.accept, result=self.result, ties="text"
            )
        )

    def changes(self, text: Text, index: int, rng: np.random.Generator) -> list[Text]:
        """Every text with one change that begins at the word."""
        found: list[Text] = []
        if "contractions" in self.kinds:
            found += [*expanded(text, index), *contracted(text, index)]
        for kind, draw in _DRAWN.items():
            if kind in self.kinds:
                found += draw(text, index, self.most, rng)
        return found


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"ours": Invariances(), "textattack": Invariances(accept="any", result="last")},
    name="checklist",
    summary="changes names, places, numbers and contractions, which should not matter",
    paper="Ribeiro et al. 2020, arXiv:2005.04118",
)
