"""Typos: one word of each sentence is misspelt, and the translation suffers.

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019, section 6, after
Belinkov, Bisk: *Synthetic and Natural Noise Both Break Neural Machine Translation*, ICLR 2018.

    1. Choose a word: at random, or the one whose deletion hurts the translation most.
    2. Its typos come from a list of natural ones, or are made: two neighbouring letters swapped, or a letter
       replaced by one beside it on the keyboard.
    3. Put one of them in its place, drawn at random, or each in turn and keep the worst for the victim.
    4. Whatever becomes of the translation, that is the attacked sentence; BLEU and chrF over all sentences
       are compared before and after.
    5. The outcome of one sentence is a success if its BLEU against the reference falls.

Versions
    @paper      a random word, a random typo.
    @important  the most important word, the worst of all its typos.

Settings: `--candidates table:FILE` takes typos from a list, one word and its typos per line (the lists of
Belinkov and Bisk are such files); `--candidates typos` is the default. `search.letters` leaves shorter words
alone. `goal.least` is the share of its BLEU that a sentence must lose.

Differences from the paper
    - Where no word of a sentence is in the list, the made typos are used instead; its note says so. The paper
      does not say what it does then.
    - Words of one or two letters are left alone; of a longer word the first hundred are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.characters import typos_of
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.importance import Deletion, Importance, RandomOrder
from unfooled.attacks.parts.search import exploring, greedy, keep_newest, long_words, replacing
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, require_counts
from unfooled.text import Text
from unfooled.translation.attacks.output_goals import BleuDrop


@dataclass(frozen=True)
class KeyboardTypos:
    """All typos of the given kinds: `transposition` of two letters, a `keyboard` neighbour for a letter."""

    spells: ClassVar[bool] = True
    kinds: tuple[Literal["transposition", "keyboard"], ...] = ("transposition", "keyboard")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        return typos_of(text.words[index], self.kinds)
        yield  # no question is needed, but a program is a generator


_ANY_WORD, _MADE = RandomOrder(), KeyboardTypos()


@dataclass(frozen=True, kw_only=True)
class OneTypo:
    """The first word in the order of `importance` that has a typo gets one: any, or the worst of all."""

    importance: Importance = _ANY_WORD
    candidates: Candidates = _MADE
    fallback: Candidates | None = _MADE
    pick: Literal["random", "worst"] = "random"
    letters: int = 3

    def __post_init__(self) -> None:
        if self.pick not in ("random", "worst"):
            raise ValueError("pick is random or worst")
        require_counts(self, "letters")

    @property
    def tries(self) -> int | None:
        return 1 if self.pick == "random" else None

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        order = yield from self.importance.rank(a, start, long_words(start.text, self.letters))
        sources = [source for source in (self.candidates, self.fallback) if source is not None]

        def misspell(now: Scored, step: tuple[Candidates, int]) -> Program[list[NextText]]:
            source, index = step
            typos = yield from replacing(a, source)(now, index)
            if typos and source is self.fallback and self.candidates != self.fallback:
                a.note = "no word is in the list of typos: one was made"
            return [typos[int(a.rng.integers(len(typos)))]] if typos and self.pick == "random" else typos

        def misspelt(now: Scored, found: Sequence[Scored]) -> bool:
            return bool(found)

        steps = [(source, index) for source in sources for index in order]
        end = yield from greedy(start, steps, exploring(a, misspell), keep=keep_newest, stop=misspelt)
        if end is start:
            a.note = "no word is long enough for a typo"
        return end


_PAPER = Recipe(
    name="typo",
    version="paper",
    summary="misspells one random word of each sentence",
    paper="Hsieh et al. 2019, ACL 2019",
    goal=BleuDrop(least=0.0),
    search=OneTypo(),
    needs=("translations",),
)

RECIPES: dict[str, Recipe] = {
    "paper": _PAPER,
    "important": replace(
        _PAPER,
        version="important",
        summary="misspells the most important word of each sentence in the worst way",
        search=OneTypo(importance=Deletion(), pick="worst"),
    ),
}
