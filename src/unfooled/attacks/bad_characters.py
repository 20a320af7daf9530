"""Bad characters: few edits that a reader does not see, placed by differential evolution.

Boucher, Shumailov, Anderson, Papernot: *Bad Characters: Imperceptible NLP Attacks*, IEEE S&P 2022,
arXiv:2106.09898.

    1. A vector of real numbers stands for up to b edits: rounded, they say where and with which character; a
       place of -1 is no edit.
    2. A population of vectors starts spread over all places (a Latin hypercube).
    3. Differential evolution: each trial is the best vector plus a difference of two others, in some of its
       numbers; it stays if the victim is no surer of the true class.
    4. Stop at a flip, after ten generations, or when all score the same.

Attacks, by what an edit is
    bad-invisible    a zero-width space, non-joiner or joiner between two letters.
    bad-homoglyphs   a letter becomes its twin of another script, from Unicode's list of intentional ones.
    bad-reorderings  two neighbours stored in the wrong order and shown in the right one, by bidi controls.
    bad-deletions    a character and a backspace behind it. Terminals show nothing of it; a browser does.
    bad-characters   another name of bad-homoglyphs, which are what TextAttack's recipe of that name edits.

Versions
    @paper       five edits, 32 vectors per dimension (one an edit; two of invisible and deletions).
    @textattack  one edit, which always happens: TextAttack 0.3.11 takes -1 for place 0.

Differences
    - Places are characters of words; blanks and punctuation stay. Two exchanges that overlap are one.
    - A whole generation is asked at once, and a flip ends the search; TextAttack asks one by one, goes on,
      and polishes the last vector by gradient steps.
    - Where a victim drops such characters before it reads, its answer never changes: the note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.candidates import added, exchanged
from unfooled.attacks.parts.characters import BACKSPACE, TWINS, ZERO_WIDTH, displayed_swapped
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.population import evolve
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe
from unfooled.core.victim import require_choice
from unfooled.text import Text

Kind: TypeAlias = Literal["invisible", "homoglyphs", "reorderings", "deletions"]
Bounds: TypeAlias = tuple[float, float]
_PRINTABLE = (33.0, 126.0)
_TWIN = TWINS["intentional"]


class Spot(NamedTuple):
    word: int
    at: int


def spots(text: Text, kind: str) -> list[Spot]:
    """Where an edit of the kind may be, in reading order."""
    every = (Spot(index, at) for index, word in enumerate(text.words) for at in range(len(word)))
    if kind == "homoglyphs":
        return [spot for spot in every if text.words[spot.word][spot.at] in _TWIN]
    if kind == "reorderings":
        return [spot for spot in every if spot.at + 1 < len(text.words[spot.word])]
    return list(every)


def edited(word: str, edits: Sequence[tuple[int, str]], kind: str) -> str:
    """The word with edits at its places, each place once; `edits` are a place and a character to put in."""
    untouched = len(word)  # places before it are as they were: edits go from the last to the first
    for at, character in sorted(dict(edits).items(), reverse=True):
        if kind == "homoglyphs":
            word = exchanged(word, at, _TWIN[word[at]])
        elif kind == "reorderings":
            if at + 1 < untouched:
                word = displayed_swapped(word, at)
        elif kind == "invisible":
            word = added(word, at, character)
        else:
            word = added(word, at, character + BACKSPACE)
        untouched = at
    return word


@dataclass(frozen=True, kw_only=True)
class EvolveCharacters:
    """Up to `edits` characters of a kind; all of them where `always`."""

    level: ClassVar[str] = "characters"
    kind: Kind
    edits: int = 5
    size: int = 32
    generations: int = 10
    always: bool = False

    def __post_init__(self) -> None:
        require_choice(self.kind, Kind, "kind")
        if min(self.edits, self.generations) < 0 or self.size < 3:
            raise ValueError("edits and generations are at least 0, and size is at least 3")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        where = spots(start.text, self.kind)
        if not where or not self.edits:
            a.note = "no character can be edited so"
            return start
        render = self._renderer(start.text, where)
        end = yield from evolve(
            a, start, self._bounds(len(where)), render, size=self.size, generations=self.generations
        )
        if end.score == start.score and not end.success:
            a.note = "the victim answers as before: it may not see these characters"
        return end

    def _bounds(self, places: int) -> list[Bounds]:
        place = (-1.0, places - 1.0)
        if self.kind == "invisible":
            return [place, (0.0, len(ZERO_WIDTH) - 1.0)] * self.edits
        return [place, _PRINTABLE] * self.edits if self.kind == "deletions" else [place] * self.edits

    def _renderer(self, text: Text, where: Sequence[Spot]) -> Callable[[NDArray[np.float64]], Text]:
        """What makes a text of a vector."""

        def render(vector: NDArray[np.float64]) -> Text:
            by_word: dict[int, list[tuple[int, str]]] = {}
            for place, character in self._read(vector):
                if place >= 0:
                    by_word.setdefault(where[place].word, []).append((where[place].at, character))
            new = text
            for index, edits in sorted(by_word.items()):
                new = new.replace(index, edited(text.words[index], edits, self.kind))
            return new

        return render

    def _read(self, vector: NDArray[np.float64]) -> list[tuple[int, str]]:
        """Places and the characters to put in there."""
        whole = [round(float(number)) for number in vector]
        if self.kind in ("homoglyphs", "reorderings"):
            found = [(place, "") for place in whole]
        else:
            pairs = zip(whole[::2], whole[1::2], strict=True)
            found = [
                (place, ZERO_WIDTH[code] if self.kind == "invisible" else chr(code)) for place, code in pairs
            ]
        return [(max(0, place), character) for place, character in found] if self.always else found


def _versions(name: str, summary: str, kind: Kind) -> dict[str, Recipe]:
    return untargeted_versions(
        {
            "paper": EvolveCharacters(kind=kind),
            "textattack": EvolveCharacters(kind=kind, edits=1, always=True),
        },
        name=name,
        summary=summary,
        paper="Boucher et al. 2022, arXiv:2106.09898",
    )


INVISIBLE = _versions("bad-invisible", "puts in few invisible characters", "invisible")
HOMOGLYPHS = _versions("bad-homoglyphs", "exchanges few letters for twins of other scripts", "homoglyphs")
REORDERINGS = _versions("bad-reorderings", "stores few letters in another order than shown", "reorderings")
DELETIONS = _versions("bad-deletions", "puts in few characters and their deletion", "deletions")
RECIPES: dict[str, Recipe] = {
    recipe.full_name: recipe
    for versions in (INVISIBLE, HOMOGLYPHS, REORDERINGS, DELETIONS)
    for recipe in versions.values()
}
