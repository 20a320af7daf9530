"""CLARE: replace a word, insert one, or merge two into one, as a masked language model proposes.

Li, Zhang, Peng, Chen, Brockett, Sun, Dolan: *Contextualized Perturbation for Textual Adversarial Attack*,
NAACL 2021, arXiv:2009.07502.

    1. At every place mask the word (replace), a gap before it (insert), or it and the next one (merge), the
       last only for some pairs of parts of speech (noun noun, adjective noun, …).
    2. Take the 50 likeliest words for each mask, as far as they are likely enough (0.0005, 0, 0.005),
    3. with which the text stays similar (cosine >= 0.7 in a window of 15 words).
    4. Order the actions by the lowest p(true class) that each reaches.
    5. Carry them out in this order until the label flips.

Versions
    @textattack  as TextAttack 0.3.11 has it: all actions anew at every step, the best one is made even if it
                 is no better; similarity to the original text, texts under 15 words unmeasured; stop words
                 of NLTK (with their case) and changed words are not replaced, but may be merged, and words
                 may be inserted before any unchanged word; the word behind a new one counts as changed.
    @paper       the authors' program: actions are found and ordered once, on the original text; each is
                 looked up again in the present text and made if p(true class) falls by more than 0.001, one
                 at a place and none beside a merged one; similarity to the present text, short texts too.

Differences
    - The language model is whatever `fill:` names (theirs is a distilled RoBERTa). The probabilities mean
      little for the trigram model, whose words are more evenly likely.
    - At most as many steps as the text has words (@textattack knows no end but success: a word can always be
      inserted); `--set search.most_edits=N` changes that. A new word is not merged with its neighbours.
    - Tags for merges come from an averaged-perceptron tagger that sees 4 words to each side.
    - TextAttack also takes pieces of words, without their marks, for words.
    - The authors leave the first five words unmerged, and on sentiment data adjectives and adverbs
      unreplaced; here all words are alike. Their bound on the fall differs by data set (1e-6 to 0.01).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Literal

from unfooled.attacks.parts.beam import Place, beam, untouched
from unfooled.attacks.parts.constraints import Constraint, SentenceSimilarity
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.masks import FillMask, Move, moved
from unfooled.attacks.parts.search import allowed, exploring, greedy, is_stopword, require_stopwords
from unfooled.attacks.parts.together import Options, best_of_each
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, asking
from unfooled.core.victim import require_choice
from unfooled.resources.fillmask import FillIn, MaskItem
from unfooled.text import Text

_MERGEABLE: dict[str, frozenset[str]] = {
    "NOUN": frozenset({"NOUN"}),
    "ADJ": frozenset({"NOUN", "NUM", "ADJ", "ADV"}),
    "ADV": frozenset({"ADJ", "VERB"}),
    "VERB": frozenset({"ADV", "VERB", "NOUN", "ADJ"}),
    "DET": frozenset({"NOUN", "ADJ"}),
    "PRON": frozenset({"NOUN", "ADJ"}),
    "NUM": frozenset({"NUM", "NOUN"}),
}
_AROUND = 4  # words to each side that the tagger sees
_FILL = FillMask(most=50)
_When = Literal["each-step", "once"]


@dataclass(frozen=True, kw_only=True)
class Infilling:
    """Replace, insert and merge: at `each-step` the best action anywhere, or all ordered `once` and made.

    `replace_least` and so on are the least probabilities of a word for its mask.
    """

    fill: FillMask = _FILL
    constraints: tuple[Constraint, ...] = ()
    moves: tuple[Move, ...] = ("replace", "left", "merge")
    when: _When = "each-step"
    replace_least: float = 5e-4
    insert_least: float = 0.0
    merge_least: float = 5e-3
    least_gain: float = 0.0
    most_edits: int | None = None
    stopwords: str = "english"
    stopwords_cased: bool = True
    tagger: str = "perceptron-tagger"
    asks = asking("tag:{self.tagger}")

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_choice(self.when, _When, "when")
        if not self.moves or not set(self.moves) <= {"replace", "left", "merge"}:
            raise ValueError("moves are some of replace, left, merge")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        if self.when == "once":
            return (yield from self._in_order(a, start))

        def expand(now: Scored, place: Place) -> list[Options]:
            return [self._options(a, now, index, self.moves) for index in range(len(now.text.words))]

        steps = repeat(None, self.most_edits or len(start.text.words))
        return (yield from beam(a, start, steps, expand, ties="text"))

    # -- actions found once ------------------------------------------------------------------------

    def _in_order(self, a: Attempt, start: Scored) -> Program[Scored]:
        actions = [(place, move) for place in range(len(start.text.words)) for move in self.moves]
        best = yield from best_of_each(a, [self._options(a, start, place, [move]) for place, move in actions])
        found = [(scored, action) for scored, action in zip(best, actions, strict=True) if scored]
        found.sort(key=lambda pair: -pair[0].score)

        def propose(now: Scored, action: tuple[int, Move]) -> Options:
            origin, move = action
            places = [index for index, came_from in enumerate(now.text.origin) if came_from == origin]
            if not places or _is_edited(now.text, places[0], move):
                return []
            return (yield from self._options(a, now, places[0], [move]))

        def keep(now: Scored, scored: Sequence[Scored]) -> Scored:
            best = max(scored, key=lambda tried: (tried.success, tried.score), default=now)
            return best if best.success or best.score > now.score + self.least_gain else now

        order = [action for _, action in found][: self.most_edits]
        return (yield from greedy(start, order, exploring(a, propose), keep=keep))

    # -- what may be done at one place -------------------------------------------------------------

    def _options(self, a: Attempt, now: Scored, index: int, moves: Sequence[Move]) -> Options:
        text = now.text
        items: dict[Move, MaskItem] = {}
        for move in moves:
            if (yield from self._fits(text, index, move)):
                items[move] = self.fill.item(text, index, move)
        told = yield from self.fill.ask(list(items.values()))
        options = [
            moved(text, index, move, word)
            for move, item in items.items()
            for word in self._words(told[item], text, index, move)
        ]
        return (yield from allowed(a, now, options, self.constraints))

    def _words(self, found: Sequence[FillIn], text: Text, index: int, move: Move) -> list[str]:
        likely = [fill_in for fill_in in found if fill_in.score >= self._least(move)]
        if self.fill.casing:
            return self.fill.words(likely, text, index, move)
        # TextAttack minds the word that stands there and no other: a word may be doubled.
        words = dict.fromkeys(fill_in.word for fill_in in likely if any(map(str.isalpha, fill_in.word)))
        return [word for word in words if word != text.words[index]]

    def _least(self, move: Move) -> float:
        """The least log-probability of a word."""
        least = {"replace": self.replace_least, "left": self.insert_least, "merge": self.merge_least}[move]
        return math.log(least) if least > 0 else -math.inf

    def _fits(self, text: Text, index: int, move: Move) -> Program[bool]:
        if move == "replace":
            stopped = is_stopword(text.words[index], self.stopwords, cased=self.stopwords_cased)
            return not stopped and _is_free(text, index)
        if move == "left":
            return _is_free(text, index)
        return (yield from self._merges(text, index))

    def _merges(self, text: Text, index: int) -> Program[bool]:
        """Whether the word and the next one may become one, by their parts of speech."""
        if index + 1 >= len(text.words) or min(text.origin[index : index + 2]) < 0:
            return False
        first = max(0, index - _AROUND)
        context = text.words[first : index + _AROUND + 2]
        items = [(context, index - first + ahead, ()) for ahead in (0, 1)]
        (tag, *_), (following, *_) = yield from ask(f"tag:{self.tagger}", items)
        return following in _MERGEABLE.get(tag, ())


def _is_free(text: Text, index: int) -> bool:
    """Whether the word is as it was, and none was inserted before it."""
    return untouched(text, index) and (index == 0 or text.origin[index - 1] >= 0)


def _is_edited(text: Text, index: int, move: Move) -> bool:
    """Whether something was done at the place already, or beside it where words would be merged."""
    if not _is_free(text, index):
        return True
    follows = text.origin[index] + 1
    gone = index + 1 < len(text.words) and text.origin[index + 1] > follows
    return move == "merge" and (gone or (index + 1 < len(text.words) and not untouched(text, index + 1)))


_SIMILAR = SentenceSimilarity(threshold=0.7, scale="cosine", against="original")

_EACH_STEP = Infilling(fill=replace(_FILL, casing=False), constraints=(_SIMILAR,))
_ONCE = Infilling(
    constraints=(replace(_SIMILAR, against="current", short_threshold=0.7),),
    when="once",
    least_gain=1e-3,
    stopwords="none",
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"textattack": _EACH_STEP, "paper": _ONCE},
    name="clare",
    summary="replaces, inserts and merges words by a masked language model",
    paper="Li et al. 2021, arXiv:2009.07502",
)
