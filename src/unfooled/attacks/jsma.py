"""JSMA: walk the word vectors down the slope of the true class, one word after the other.

A 2017 study of attacks on an LSTM, an SVM and naive Bayes with IMDB reviews (`lstm-jsma-imdb-2017`), section
V.C, after Papernot, McDaniel, Swami, Harang: *Crafting Adversarial Input Sequences for Recurrent Neural
Networks*, MILCOM 2016, arXiv:1604.08275.

    1. Take the Jacobian J of the pre-softmax outputs for each word's vector.
    2. Pick a position; the most recent word before the prediction first.
    3. The direction to go is -sign(J) of the true class there (with a target: +sign(J) of the target).
    4. Put in the dictionary word with the highest projection on that direction.
    5. Repeat until the label flips or M = 35 words are changed.

Versions
    @paper        as above.
    @grammatical  what the paper wished for: of the 50 words with the highest projections, the first that has
                  the part of speech of the word it replaces and keeps the sentence's meaning; a position
                  without one is passed over. `search.constraints` holds the checks.
    @fluent       the same with a language model: of the 500 highest, the first with the part of speech that
                  makes the nine words around it at most e^3 times less likely to a trigram model.

Settings: `search.order` is `recent`, `gradient` (the position with the longest gradient, looked up anew at
each step) or `random`; `search.most` is M; `search.dictionary` is `victim` (its own vocabulary; of a model
that reads pieces of words, the whole words) or a file of one word per line; `search.size` is how many.

Differences from the paper
    - Only the row of J that the direction needs is computed, for all live texts in one batch.
    - A word that the victim cuts off is never chosen: the most recent word is the last one that it reads.
    - The victim's score of a text comes with its Jacobian and is paid for as one query; a flip counts when
      the victim says so once more by itself.
    - A word is put in as the dictionary spells it; the word that stands there already is not put in again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from unfooled.attacks.parts.class_words import target_of
from unfooled.attacks.parts.constraints import Constraint, NextText, SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.fluency import Fluency
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.search import allowed
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import OWN, Pull, mark, marked
from unfooled.core.recipe import Recipe
from unfooled.core.victim import require_choice

Order = Literal["recent", "gradient", "random"]


@dataclass(frozen=True, kw_only=True)
class Jsma:
    """Change word after word along the sign of the gradient; see the module.

    Not `search.greedy`: the Jacobian names position and word of each step, and the victim's score comes with
    it, so that no options are compared and the text is asked for only when it seems to have flipped.
    """

    order: Order = "recent"
    most: int = 35
    dictionary: str = OWN
    size: int | None = None
    candidates: int = 1
    constraints: tuple[Constraint, ...] = ()
    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def __post_init__(self) -> None:
        require_choice(self.order, Order, "order")
        if min(self.most, self.candidates, self.size or 1) < 1 or self.size == 0:
            raise ValueError("most, size and candidates are at least 1")

    @property
    def _oracle(self) -> str:
        return f"projection:{self.size or 'all'}:{self.dictionary}"

    @property
    def asks(self) -> tuple[str, ...]:
        return ("readable", self._oracle)

    @property
    def reads(self) -> Mapping[str, str]:
        return {} if self.dictionary == OWN else {self.dictionary: "write a file of one word per line"}

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        (readable,) = yield from ask("readable", [mark(start.text)])
        free = self._arranged(a, readable)
        target = target_of(a.goal)
        label, up = (a.label, False) if target is None else (target, True)
        now, changed = start, 0
        while free and changed < self.most:
            tried = free if self.order == "gradient" else free[:1]
            item = Pull(marked(now.text, tried), label, up, self.candidates + 1)
            (answer,) = yield from a.look(self._oracle, {item: now.text})
            if changed and _won(a, answer.scores):
                (now,) = yield from a.score([now.text])
                if now.success:
                    return now
            index = free.pop(answer.steepest)
            option = yield from self._allowed(a, now, index, answer.words)
            if option is not None:
                now = now._replace(text=option.text, success=False)
                changed += 1
        if changed:
            (now,) = yield from a.score([now.text])
        return now

    def _arranged(self, a: Attempt, positions: Sequence[int]) -> list[int]:
        if self.order == "random":
            return [positions[i] for i in a.rng.permutation(len(positions))]
        return list(positions) if self.order == "gradient" else list(reversed(positions))

    def _allowed(self, a: Attempt, now: Scored, index: int, words: Sequence[str]) -> Program[NextText | None]:
        """The first word that is another one and passes every constraint."""
        others = [word for word in words if word != now.text.words[index]][: self.candidates]
        options = [NextText(now.text.replace(index, word), index) for word in others]
        options = yield from allowed(a, now, options, self.constraints)
        return options[0] if options else None


def _won(a: Attempt, scores: np.ndarray) -> bool:
    return a.goal.judge(scores[None], a.label)[1][0]


def _version(version: str, summary: str, search: Jsma) -> Recipe:
    paper = "lstm-jsma-imdb-2017, after Papernot et al. 2016, arXiv:1604.08275"
    goal = Untargeted()
    return Recipe(name="jsma", version=version, summary=summary, paper=paper, goal=goal, search=search)


_MEANING = SentenceSimilarity(threshold=0.840845, scale="angular")
_SAME = SamePartOfSpeech(noun_for_verb=False)
_GRAMMATICAL = Jsma(candidates=50, constraints=(_SAME, _MEANING))
_FLUENT = Jsma(candidates=500, constraints=(_SAME, Fluency(3.0, against="current", window=9)))

RECIPES: dict[str, Recipe] = {
    "paper": _version("paper", "swaps recent words along the sign of the gradient", Jsma()),
    "grammatical": _version("grammatical", "the same, keeping part of speech and meaning", _GRAMMATICAL),
    "fluent": _version("fluent", "the same, keeping part of speech and fluency", _FLUENT),
}
