"""Input reduction: the shortest text about which the victim says the same.

Feng, Wallace, Grissom, Iyyer, Rodriguez, Boyd-Graber: *Pathologies of Neural Models Make Interpretations
Difficult*, EMNLP 2018, arXiv:1804.07781.

    1. Rank the words by how much p(true class) falls when a word is taken out.
    2. Take words out, the least important first, as long as the victim's decision stays.
    3. What is left is what the victim needs; a reader makes nothing of it.

Nothing is flipped. A success is a text of one word (`search.least`) with the same decision; the facts
`words_left` and `share_left` of every result say how far it came, and accuracy under attack stays as it was.

Versions
    @textattack  as TextAttack 0.3.11 has it: ranked once, then one pass; stop words go too.
    @paper       each step tries all words and keeps the five texts with the highest p(true class) whose
                 decision stays, until none does.

Differences
    - The authors estimate importance by the gradient; @paper asks the victim about each deletion, which costs
      more queries and works on any victim.
    - TextAttack calls all of its results "maximised" and none a success. It counts places in the text that is
      already shorter by their old numbers, so that it takes out other words than it ranked; ours does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.goals import KeepLabel
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import Keep, greedy
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, recipe_versions
from unfooled.core.result import decided
from unfooled.errors import BudgetExhaustedError


@dataclass(frozen=True, kw_only=True)
class ReduceInput:
    """Take words out as long as the decision stays.

    `width` texts go on at each step, each with any word taken out; none means one pass, ranked once.
    """

    width: int | None = None
    least: int = 1

    def __post_init__(self) -> None:
        if self.least < 1 or (self.width is not None and self.width < 1):
            raise ValueError("least and width are at least 1")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        shortest = [start]  # the shortest text so far; a spent budget ends with it
        if len(start.text.words) <= self.least:
            a.note = "the text is as short as it may become"
            return start
        try:
            yield from self._one_pass(a, shortest) if self.width is None else self._beam(a, shortest)
        except BudgetExhaustedError as spent:
            a.note = str(spent)
        end = shortest[-1]
        left = len(end.text.words)
        a.facts |= {"words_left": left, "share_left": round(left / len(start.text.words), 6)}
        return end._replace(success=end is not start and left <= self.least)

    def _one_pass(self, a: Attempt, shortest: list[Scored]) -> Program[None]:
        start = shortest[0]
        order = yield from Deletion().rank(a, start, range(len(start.text.words)))

        def shorten(now: Scored, original: int) -> Program[list[Scored]]:
            return (yield from a.score([now.text.delete(now.text.origin.index(original))]))

        yield from greedy(start, order, shorten, keep=self._keeping(a, shortest), stop=self._short_enough)

    def _beam(self, a: Attempt, shortest: list[Scored]) -> Program[None]:
        members = [shortest[0]]

        def shorten(now: Scored, _: int) -> Program[list[Scored]]:
            every = (member.text.delete(i) for member in members for i in range(len(now.text.words)))
            found = yield from a.score(list(dict.fromkeys(every)))
            same = sorted((text for text in found if _stays(text, a)), key=lambda text: -text.score)
            members[:] = same[: self.width]
            return same

        def done(now: Scored, found: Sequence[Scored]) -> bool:
            return not found or self._short_enough(now, found)

        steps = range(len(members[0].text.words) - 1)
        yield from greedy(members[0], steps, shorten, keep=self._keeping(a, shortest), stop=done)

    def _keeping(self, a: Attempt, shortest: list[Scored]) -> Keep:
        """Keeps the first text whose decision stays, and notes it as the shortest so far."""

        def keep(now: Scored, found: Sequence[Scored]) -> Scored:
            shortest.extend([scored for scored in found if _stays(scored, a)][:1])
            return shortest[-1]

        return keep

    def _short_enough(self, now: Scored, found: Sequence[Scored]) -> bool:
        return len(now.text.words) <= self.least


def _stays(scored: Scored, a: Attempt) -> bool:
    return decided(scored.probs.tolist()) == a.label


RECIPES: dict[str, Recipe] = recipe_versions(
    {"textattack": ReduceInput(), "paper": ReduceInput(width=5)},
    name="input-reduction",
    summary="takes words out as long as the decision stays",
    paper="Feng et al. 2018, arXiv:1804.07781",
    goal=KeepLabel(),
)
