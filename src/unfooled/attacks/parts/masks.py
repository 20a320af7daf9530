"""Edits that a masked language model proposes (another word in a place, a new word beside it, one word for
two), and the search of BAE, which makes the first two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.importance import Importance
from unfooled.attacks.parts.search import (
    GreedySteps,
    Propose,
    Ties,
    attackable,
    go_through,
    require_stopwords,
)
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking, require_counts
from unfooled.core.victim import require_choice
from unfooled.data.language import ENGLISH
from unfooled.resources.fillmask import FillIn, MaskItem, WordItem
from unfooled.text import Text, match_case

Move = Literal["replace", "left", "right", "merge"]
Told: TypeAlias = Mapping[MaskItem, tuple[FillIn, ...]]
Mode = Literal["R", "I", "R/I", "R+I"]

# What happens at one word: one after the other, the moves among which each choice is made.
MODES: dict[Mode, tuple[tuple[Move, ...], ...]] = {
    "R": (("replace",),),
    "I": (("left", "right"),),
    "R/I": (("replace", "left", "right"),),
    "R+I": (("replace",), ("left", "right")),
}
AHEAD = (
    2  # words whose predictions are asked at once, doubled while no edit is made; only speed depends on it
)


class AsksMaskedModel:
    """Candidates of a masked language model, the `most` that it finds likeliest."""

    masked_lm: str
    most: int

    asks = asking("fill:{self.masked_lm}")

    @property
    def language(self) -> str:
        return ENGLISH if self.masked_lm in ("masked-lm", "trigram") else ""

    def __post_init__(self) -> None:
        require_counts(self, "most")


@dataclass(frozen=True)
class FillMask(AsksMaskedModel):
    """The `most` likeliest whole words for a masked place, never the word of the text that was masked.

    A replacement takes over the casing of the word it replaces; an insertion is capitalised where it stands
    first before a capitalised word, and upper-case beside an upper-case one. `casing=False` leaves words as
    the model writes them. An insertion never doubles a word beside it, and nothing brings the original
    word back. Numbers are no candidates.
    """

    masked_lm: str = "masked-lm"
    most: int = 50
    casing: bool = True

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        """Replacements alone, as for any other source of candidates."""
        item = self.item(text, index, "replace")
        told = yield from self.ask([item])
        return self.words(told[item], text, index, "replace")

    def ask(self, items: Sequence[MaskItem]) -> Program[Told]:
        """What the model says, by question."""
        return dict(zip(items, (yield from ask(f"fill:{self.masked_lm}", items)), strict=True))

    def item(self, text: Text, index: int, move: Move) -> MaskItem:
        """The question: the text with a gap at the word, or beside it."""
        start = text.starts[index]
        end = start + len(text.words[index])
        if move == "replace":
            return MaskItem(text.string[:start], text.string[end:], self.most)
        if move == "merge":
            # What stands between the two words stays, as in the text that is made.
            return self.item(text.delete(index + 1), index, "replace")
        if move == "left":
            return MaskItem(text.string[:start], " " + text.string[start:], self.most)
        return MaskItem(text.string[:end] + " ", text.string[end:], self.most)

    def words(self, found: Sequence[FillIn], text: Text, index: int, move: Move) -> list[str]:
        """The candidates among what the model said, in its order."""
        near = {text.words[index]}
        if text.origin[index] >= 0:
            near.add(text.root.words[text.origin[index]])
        if move != "replace":
            beside = index - 1 if move == "left" else index + 1
            near |= {text.words[beside]} if 0 <= beside < len(text.words) else set()
        fitting = [fill_in.word for fill_in in found if any(map(str.isalpha, fill_in.word))]
        if not self.casing:
            return [word for word in dict.fromkeys(fitting) if word not in near]
        known = {word.casefold() for word in near}
        cased = (_cased(word, text, index, move) for word in fitting if word.casefold() not in known)
        return list(dict.fromkeys(cased))

    def options(self, told: Told, text: Text, index: int, moves: Sequence[Move]) -> list[NextText]:
        """Every text that is one of the moves away, by what the model told of each."""
        return [
            moved(text, index, move, word)
            for move in moves
            for word in self.words(told[self.item(text, index, move)], text, index, move)
        ]


@dataclass(frozen=True)
class FillWord(AsksMaskedModel):
    """What a masked language model would rather read in the place of a word that it sees (BERT-Attack).

    `most` counts the likeliest tokens; those that are no whole words are left out. A word in several pieces
    gets words put together of likely pieces, by `beam` or by `product` (see `fillmask.WordItem`). The model
    reads the text as it is now, or the `original`. Casing follows the word, unless `casing` is off.
    """

    masked_lm: str = "masked-lm"
    most: int = 48
    combine: Literal["beam", "product"] = "beam"
    sees: Literal["current", "original"] = "current"
    casing: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combine not in ("beam", "product") or self.sees not in ("current", "original"):
            raise ValueError("combine is beam or product, sees is current or original")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        read, place = text, index
        if self.sees == "original" and text.origin[index] >= 0:
            read, place = text.root, text.origin[index]
        word, start = read.words[place], read.starts[place]
        item = WordItem(read.string[:start], word, read.string[start + len(word) :], self.most, self.combine)
        (found,) = yield from ask(f"fill:{self.masked_lm}", [item])
        fitting = [fill_in.word for fill_in in found if any(map(str.isalpha, fill_in.word))]
        now = text.words[index]
        cased = [match_case(other, now) for other in fitting] if self.casing else fitting
        return [other for other in dict.fromkeys(cased) if other != now]


def moved(text: Text, index: int, move: Move, word: str) -> NextText:
    """The text with the word in its place; a merge takes the next word away."""
    if move == "replace":
        return NextText(text.replace(index, word), index)
    if move == "merge":
        return NextText(text.replace(index, word).delete(index + 1), index, merged=True)
    if move == "left":
        return NextText(text.insert(index, word), index, inserted=True)
    return NextText(text.insert(index + 1, word, after=True), index + 1, inserted=True)


def _cased(word: str, text: Text, index: int, move: Move) -> str:
    beside = text.words[index]
    shouted = beside.isupper() and len(beside) > 1
    if move in ("replace", "merge") or shouted or (move == "left" and index == 0 and beside.istitle()):
        return match_case(word, beside)
    return word


@dataclass(frozen=True, kw_only=True)
class MaskAndFill:
    """Go through the words once, the most important first; make the best edit at each, as the mode allows."""

    turns: ClassVar[bool] = True  # its questions may be put in another order
    mode: Mode
    importance: Importance
    fill: FillMask
    constraints: tuple[Constraint, ...]
    stopwords: str = "textfooler"
    stopwords_cased: bool = False
    ties: Ties = "nearest"

    def __post_init__(self) -> None:
        require_choice(self.mode, Mode, "mode")
        require_stopwords(self.stopwords)

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        positions = attackable(start.text, self.stopwords, cased=self.stopwords_cased)
        words = GreedySteps(
            positions, self.importance, self._steps, self.constraints, self.ties, by_context=True
        )
        return (yield from go_through(a, start, words))

    def _steps(self, order: Sequence[int]) -> tuple[Sequence[int], Propose[int]]:
        """By their numbers: what happens at the first word, then at the second."""
        steps = [(word, moves) for word in order for moves in MODES[self.mode]]
        predictions = _AskedAhead(self.fill, steps, per_word=len(MODES[self.mode]))

        def edit(now: Scored, number: int) -> Program[list[NextText]]:
            told = yield from predictions.of(now, number)
            word, moves = steps[number]
            return self.fill.options(told, now.text, now.text.origin.index(word), moves)

        return range(len(steps)), edit


class _AskedAhead:
    """What the model says of the present text, asked for several steps at once."""

    def __init__(self, fill: FillMask, steps: Sequence[tuple[int, Sequence[Move]]], per_word: int) -> None:
        self._fill = fill
        self._steps = steps
        self._per_word = per_word
        self._told: Told = {}
        self._about: Scored | None = None
        self._ahead = AHEAD

    def of(self, now: Scored, number: int) -> Program[Told]:
        """Answers to at least the questions of the step of that number."""
        if now is not self._about:
            self._about, self._ahead = now, AHEAD
        if any(item not in self._told for item in self._items(now, number)):
            last = min(len(self._steps), number + self._ahead * self._per_word)
            soon = [item for step in range(number, last) for item in self._items(now, step)]
            self._told = yield from self._fill.ask(soon)
            self._ahead *= 2
        return self._told

    def _items(self, now: Scored, number: int) -> list[MaskItem]:
        word, moves = self._steps[number]
        index = now.text.origin.index(word)
        return [self._fill.item(now.text, index, move) for move in moves]
