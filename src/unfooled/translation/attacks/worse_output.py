"""BLEU drop and non-overlapping: attacks without a target that make a translation worse, or a different one.

Cheng, Yi, Chen, Zhang, Hsieh: *Seq2Sick: Evaluating the Robustness of Sequence-to-Sequence Models with
Adversarial Examples*, AAAI 2020 (non-overlapping); Belinkov, Bisk, ICLR 2018 (noise that lowers BLEU).

    1. Rank the words by what their deletion does to the goal's score.
    2. Go through them, the most important first, and misspell each in the way that helps the goal most.
    3. Keep it if it beats the present text.
    4. Stop when the goal is reached, or when three words have changed.
    5. Goals: the sentence's BLEU falls by half (`bleu-drop`); no word of the output before is in the output
       after (`non-overlapping`).

Versions
    @typos  the one above. `--candidates` puts other replacements in place of typos: neighbours, wordnet, …

Differences from Seq2Sick
    - A greedy search over spelling mistakes, in place of gradients and any words.
    - Overlap is counted over the words of the whole output, not place by place: stricter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint
from unfooled.attacks.parts.importance import Deletion, Importance
from unfooled.attacks.parts.search import exploring, greedy, keep_most_similar, long_words, replacing
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, require_counts
from unfooled.translation.attacks.output_goals import BleuDrop, NonOverlapping
from unfooled.translation.attacks.typo import KeyboardTypos

_BY_DELETION, _MADE = Deletion(), KeyboardTypos()


@dataclass(frozen=True, kw_only=True)
class FewSwaps:
    """Go through the words, the most important first, until `edits` of them have changed."""

    importance: Importance = _BY_DELETION
    candidates: Candidates = _MADE
    constraints: tuple[Constraint, ...] = ()
    edits: int = 3
    letters: int = 3

    def __post_init__(self) -> None:
        require_counts(self, "edits", "letters")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        order = yield from self.importance.rank(a, start, long_words(start.text, self.letters))
        explore = exploring(a, replacing(a, self.candidates), self.constraints)

        def enough(now: Scored, found: Sequence[Scored]) -> bool:
            return now.text.changes >= self.edits

        return (yield from greedy(start, order, explore, keep=keep_most_similar, stop=enough))


def _recipe(name: str, summary: str, paper: str, goal: BleuDrop | NonOverlapping) -> dict[str, Recipe]:
    recipe = Recipe(
        name=name,
        version="typos",
        summary=summary,
        paper=paper,
        goal=goal,
        search=FewSwaps(),
        needs=("translations",),
    )
    return {"typos": recipe}


BLEU_DROP = _recipe(
    "bleu-drop", "halves a translation's BLEU with up to three typos", "Belinkov, Bisk 2018", BleuDrop()
)
NON_OVERLAPPING = _recipe(
    "non-overlapping",
    "leaves no word of a translation as it was, with up to three typos",
    "Cheng et al. 2020, AAAI 2020",
    NonOverlapping(),
)
