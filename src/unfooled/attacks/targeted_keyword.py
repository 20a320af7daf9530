"""Targeted keyword: make a given word appear in a translation with a few edits of the source (GS-EC).

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019, section 6; the
goal is that of Cheng, Yi, Chen, Zhang, Hsieh: *Seq2Sick*, AAAI 2020.

    1. A keyword is given, or drawn for each sentence from the training's target words by frequency; it must
       not be in the translation already. Score: its best log-probability over the places of the output.
    2. Select the word whose deletion raises the score most.
    3. Try each word of the victim's source vocabulary in its place.
    4. If the keyword appears, take the word that moves the encoder's mean vector least (L1), and stop;
    5. else keep the word with the best score and go on with another position, up to three edits (the Δ).

Versions
    @paper  Δ = 3, one position per edit.
    @wide   Δ = 3, the three most important positions per edit: more of the sentence is searched.

Settings: `goal.keyword` (or --target) is the keyword; `goal.first` and `goal.last` are the ranks to draw
from; `search.edits` is Δ; `search.size` how many words of the vocabulary; `search.tried` how many of them are
translated to the end.

Differences from the paper, which gives few details
    - Steps 2 and 3 score a changed sentence along the present output (teacher forcing): one pass instead of
      one per token. Only the `tried` best words of a position are translated, and only these can succeed.
    - A word is selected by deletion, where the paper sets its vector to zero.
    - The vocabulary is the 1,000 most frequent source words of the training, the paper's whole vocabulary.
    - The place of a keyword of several pieces is the best of its first piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unfooled.attacks.output_goals import Keyword
from unfooled.attacks.replacement import FromVocabulary
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe
from unfooled.core.writing import Forced, WritingAttempt
from unfooled.text import Text


@dataclass(frozen=True, kw_only=True)
class KeywordSearch(FromVocabulary):
    """Up to `edits` words, each the best of the vocabulary at the best of `positions` places."""

    size: int | None = 1000
    edits: int = 3
    positions: int = 1
    tried: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.edits, self.positions, self.tried) < 1:
            raise ValueError("edits, positions and tried are at least 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return (*super().asks, "nearness", "sentence-distance:mean")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        assert isinstance(a, WritingAttempt)
        words = yield from self.words()
        now = start
        for _ in range(self.edits):
            edited = {edit.position for edit in now.text.edits()}
            free = [i for i in range(len(now.text.words)) if i not in edited]
            probes = yield from self._near(a, now, [now.text.delete(i) for i in free])
            ranked = [free[i] for i in _best_first(probes)][: self.positions]
            texts = [now.text.replace(i, w) for i in ranked for w in words if w != now.text.words[i]]
            near = yield from self._near(a, now, texts)
            scored = yield from a.score([texts[i] for i in _best_first(near)[: self.tried]])
            if won := [one for one in scored if one.success]:
                return (yield from self._closest(a, won))
            best = max(scored, key=lambda one: one.score, default=now)
            if best.score <= now.score:
                break
            now = best
        return now

    def _near(self, a: WritingAttempt, now: Scored, texts: Sequence[Text]) -> Program[list[float]]:
        """The keyword's best log-probability for each text, were its output to go along the present one."""
        items = {Forced(text.string, now.output, a.keyword): None for text in texts}
        found = yield from a.look("nearness", dict.fromkeys(items))
        known = dict(zip(items, found, strict=True))
        return [known[Forced(text.string, now.output, a.keyword)] for text in texts]

    def _closest(self, a: Attempt, won: Sequence[Scored]) -> Program[Scored]:
        pairs = [(a.original.string, one.text.string) for one in won]
        distances = yield from ask("sentence-distance:mean", pairs)
        least = min(distances)
        a.facts["distance"] = least
        return won[distances.index(least)]


def _best_first(values: Sequence[float]) -> list[int]:
    """Places of the highest values first; equals in their order."""
    return sorted(range(len(values)), key=lambda i: -values[i])


_PAPER = Recipe(
    name="targeted-keyword",
    version="paper",
    summary="makes a chosen word appear in a translation with up to three edits",
    paper="Hsieh et al. 2019, ACL 2019",
    goal=Keyword(),
    search=KeywordSearch(),
    needs=("translations", "embeddings"),
)

RECIPES: dict[str, Recipe] = {
    "paper": _PAPER,
    "wide": replace(_PAPER, version="wide", search=KeywordSearch(positions=3)),
}
