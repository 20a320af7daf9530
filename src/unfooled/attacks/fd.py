"""FD: synonyms in random places, each chosen by the signs of the gradient.

Papernot, McDaniel, Swami, Harang: *Crafting Adversarial Input Sequences for Recurrent Neural Networks*,
MILCOM 2016, arXiv:1604.08275, as OpenAttack 2.1.1 has it under this name (`FDAttacker`). `jsma` is what
another article made of the same idea, with any word of the dictionary and the most recent word first.

    1. Draw a word that has synonyms and is no stop word.
    2. Gradient of the loss for its vector: its signs say where the true class loses.
    3. Of the synonyms take the one whose step, vector of the synonym - vector of the word, has signs nearest
       to these (L1).
    4. Put it in, whatever it does.
    5. Stop at a flipped label, or after 100 rounds. Words may change more than once.

Versions
    @openattack  as above, with WordNet's synonyms.

A round costs one query: the gradient is that of a text whose score is paid for. On a victim that is linear
in its word vectors every step that follows all signs makes the true class less likely.

Differences from OpenAttack
    - Its gradient of a transformers model is that of *minus* the loss, so that its steps raise p(true class).
      Ours go down.
    - Its synonyms of a word without a known part of speech are mostly those of synonyms. It lower-cases texts
      and gives up where too many words drawn have no synonym; here the next is drawn until one has.
    - Of all rounds the text with the lowest p(true class) is the result where nothing flips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.class_words import pushed
from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.search import (
    attackable,
    greedy,
    keep_highest,
    keep_newest,
    require_stopwords,
)
from unfooled.attacks.parts.sources import WordNetSynonyms
from unfooled.attacks.parts.together import swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import Along, mark, marked
from unfooled.core.recipe import Recipe, asking, require_counts


@dataclass(frozen=True, kw_only=True)
class SignSwaps:
    """Swap randomly drawn words for the candidates that follow the signs of the gradient, `rounds` times."""

    asks = asking("readable", "signs")
    needs: ClassVar[tuple[str, ...]] = ("gradients",)
    candidates: Candidates
    constraints: tuple[Constraint, ...] = ()
    rounds: int = 100
    stopwords: str = "english"

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_counts(self, "rounds")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        (readable,) = yield from ask("readable", [mark(start.text)])
        open_to_all = set(attackable(start.text, self.stopwords))
        free = [index for index in readable if index in open_to_all]
        best = start

        def explore(now: Scored, _: int) -> Program[list[Scored]]:
            option = yield from self._drawn(a, now, free)
            return (yield from a.score([option.text] if option else []))

        def keep(now: Scored, found: Sequence[Scored]) -> Scored:
            nonlocal best
            best = keep_highest(best, found)
            return keep_newest(now, found)

        def nothing_left(now: Scored, found: Sequence[Scored]) -> bool:
            return not found

        yield from greedy(start, range(self.rounds), explore, keep=keep, stop=nothing_left)
        return best

    def _drawn(self, a: Attempt, now: Scored, free: list[int]) -> Program[NextText | None]:
        """The best option of the first word drawn that has any; None where no word has."""
        swaps = swapping(a, self.candidates, self.constraints)
        label, sign = pushed(a)
        for index in a.rng.permutation(free).tolist():
            options = yield from swaps(now, index)
            if not options:
                continue
            item = Along(marked(now.text, [index]), label, sign > 0, tuple(option.word for option in options))
            (distances,) = yield from a.look("signs", {item: now.text})
            known = [(distance, place) for place, distance in enumerate(distances) if distance is not None]
            if known:
                return options[min(known)[1]]
        return None


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"openattack": SignSwaps(candidates=WordNetSynonyms())},
    name="fd",
    summary="swaps random words for the synonyms that follow the signs of the gradient",
    paper="Papernot et al. 2016, arXiv:1604.08275",
)
