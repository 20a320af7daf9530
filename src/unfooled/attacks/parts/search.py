"""How to look for a text that reaches the goal: the one greedy loop, and the search that swaps words by it.

    rank         the search puts the words, or what may happen at each, in an order (`importance.py`)
    propose      what may be done at the next of them: options
    constrain    the options that every constraint lets pass
    score        what the victim says of each
    keep         the option that goes on, or the text as it was; then the next word, until a stop

TextFooler, BAE, DeepWordBug, Breaking BERT, the one-word attacks, typos and the attacks on outputs are
settings of it: `propose`, `keep` and `stop` are functions that each search chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.importance import Importance
from unfooled.core.attempt import Attempt, Scored, most_similar
from unfooled.core.program import Program
from unfooled.stopwords import STOPWORDS
from unfooled.text import Text

Ties: TypeAlias = Literal["nearest", "text"]
Step = TypeVar("Step")  # mostly the position of a word
Propose: TypeAlias = Callable[[Scored, Step], Program[list[NextText]]]
Explore: TypeAlias = Callable[[Scored, Step], Program[list[Scored]]]
Keep: TypeAlias = Callable[[Scored, Sequence[Scored]], Scored]
Stop: TypeAlias = Callable[[Scored, Sequence[Scored]], bool]


# -- the loop --------------------------------------------------------------------------------------


def greedy(
    start: Scored, steps: Iterable[Step], explore: Explore[Step], *, keep: Keep, stop: Stop | None = None
) -> Program[Scored]:
    """Take the steps in their order, each on the text that the steps before it have left.

    `explore` gives the texts that a step may lead to, with their scores; `keep` chooses among these and the
    present text. The search ends with success, or when `stop` says so of the text kept and those explored.
    """
    now = start
    for step in steps:
        found = yield from explore(now, step)
        now = keep(now, found)
        if now.success or (stop is not None and stop(now, found)):
            break
    return now


def exploring(
    a: Attempt,
    propose: Propose[Step],
    constraints: Sequence[Constraint] = (),
    *,
    ties: Ties = "nearest",
    unseen: bool = False,
) -> Explore[Step]:
    """Propose options, constrain them and score the rest; `unseen` ones are not shown to the victim."""

    def explore(now: Scored, step: Step) -> Program[list[Scored]]:
        proposed = yield from propose(now, step)
        options = yield from allowed(a, now, proposed, constraints, ties)
        if unseen:
            return [now._replace(text=option.text) for option in options]
        return (
            yield from a.score([option.text for option in options], [option.similarity for option in options])
        )

    return explore


def replacing(a: Attempt, candidates: Candidates) -> Propose[int]:
    """The options of a step that puts another word in the place of one."""

    def propose(now: Scored, index: int) -> Program[list[NextText]]:
        words = yield from candidates.propose(a, now.text, index)
        return [NextText(now.text.replace(index, word), index) for word in words]

    return propose


def allowed(
    a: Attempt,
    now: Scored,
    options: list[NextText],
    constraints: Sequence[Constraint],
    ties: Ties = "nearest",
) -> Program[list[NextText]]:
    """The options that every constraint lets pass, in the order that decides among equals."""
    for constraint in constraints:
        options = yield from constraint.allow(a, now, options)
    return sorted(options, key=lambda option: option.text.string) if ties == "text" else options


# -- one pass over the words, which recipes may ask about in more than one way ----------------------


class GreedySteps(NamedTuple):
    """What a search that goes once through the words and keeps each one's best option is made of.

    `steps` makes the steps, and what may be done at each, of the positions in the order that is decided.
    `floor` is the text that an option must beat to be kept; None is the present one. `by_context` says that
    what may be done at a step depends on the words around it, and must be proposed again when these change.
    """

    positions: Sequence[int]
    importance: Importance
    steps: Callable[[Sequence[int]], tuple[Sequence[Any], Propose[Any]]]
    constraints: Sequence[Constraint]
    ties: Ties = "nearest"
    floor: Scored | None = None
    by_context: bool = False


class Asking(Protocol):
    """Another way to ask what a pass over the words needs to know; `mark` stands in the recipe's name."""

    mark: ClassVar[str]

    def go_through(self, a: Attempt, start: Scored, words: GreedySteps, /) -> Program[Scored]: ...


def go_through(a: Attempt, start: Scored, words: GreedySteps) -> Program[Scored]:
    """The words once, the most important first: as the recipe asks, else constraints before the victim."""
    asking: Asking | None = a.asking
    if asking is not None:
        return (yield from asking.go_through(a, start, words))
    return (yield from in_order(a, start, words, exploring))


def in_order(
    a: Attempt, start: Scored, words: GreedySteps, exploring_by: Callable[..., Explore[Any]]
) -> Program[Scored]:
    """Rank the words by the recipe's importance, then take one step after the other."""
    order = yield from words.importance.rank(a, start, words.positions)
    steps, propose = words.steps(order)
    explore = exploring_by(a, propose, words.constraints, ties=words.ties)

    def keep(now: Scored, found: Sequence[Scored]) -> Scored:
        return keep_most_similar(now, found, words.floor)

    return (yield from greedy(start, steps, explore, keep=keep))


# -- what is kept; max() keeps the first of equals, which is the tie rule --------------------------


def keep_most_similar(now: Scored, found: Sequence[Scored], floor: Scored | None = None) -> Scored:
    """The most similar text that reaches the goal; else the one with the highest score, if it beats `floor`.

    Without a `floor` that is the present text.
    """
    if won := [scored for scored in found if scored.success]:
        return most_similar(won)
    best = max(found, key=lambda scored: scored.score, default=now)
    return best if best.score > (now if floor is None else floor).score else now


def keep_highest(now: Scored, found: Sequence[Scored]) -> Scored:
    """The highest score among those that reach the goal; else among all, the present text included."""
    return max([now, *found], key=lambda scored: (scored.success, scored.score))


def keep_newest(now: Scored, found: Sequence[Scored]) -> Scored:
    """The highest score of this step, be it lower than the present one."""
    return max(found, key=lambda scored: scored.score, default=now)


# -- which words -----------------------------------------------------------------------------------


def attackable(text: Text, stopwords: str, *, cased: bool = False) -> list[int]:
    """Positions of the words that are not stop words."""
    return [i for i, word in enumerate(text.words) if not is_stopword(word, stopwords, cased=cased)]


def is_stopword(word: str, stopwords: str, *, cased: bool = False) -> bool:
    """Whether the word is on the list of that name, in its own casing or in any."""
    return (word if cased else word.lower().replace("’", "'")) in STOPWORDS[stopwords]


def long_words(text: Text, letters: int) -> list[int]:
    """Positions of the words of at least so many letters."""
    return [i for i, word in enumerate(text.words) if len(word) >= letters]


def require_stopwords(name: str) -> None:
    """A setting `stopwords` names one of the lists."""
    if name not in STOPWORDS:
        raise ValueError(f"stopwords is one of {', '.join(STOPWORDS)}")


# -- TextFooler's and DeepWordBug's search ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GreedySwap:
    """Go through the words once, the most important first, and keep the best replacement of each.

    Among options that reach the goal the most similar one ends the search; otherwise the option with the
    highest score is kept if it beats the present text (`accept="better"`) or at least the original
    (`accept="better-than-original"`). Equal scores fall to the option that comes first: the nearest word,
    or with `ties="text"` the text that sorts first.
    """

    turns: ClassVar[bool] = True  # its questions may be put in another order
    importance: Importance
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    stopwords: str = "textfooler"
    stopwords_cased: bool = False
    accept: Literal["better", "better-than-original"] = "better"
    ties: Ties = "nearest"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        propose = replacing(a, self.candidates)
        words = GreedySteps(
            attackable(start.text, self.stopwords, cased=self.stopwords_cased),
            self.importance,
            lambda order: (order, propose),
            self.constraints,
            self.ties,
            None if self.accept == "better" else start,
        )
        return (yield from go_through(a, start, words))
