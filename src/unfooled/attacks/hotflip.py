"""HotFlip: the word swaps that the gradient promises most, in a beam of texts.

Ebrahimi, Rao, Lowd, Dou: *HotFlip: White-Box Adversarial Examples for Text Classification*, ACL 2018,
arXiv:1712.06751, section 5 (words).

    1. Gradient of the victim's output for the vector of each word of the text.
    2. A flip of word i to w is worth the gradient there times (vector of w - vector of word i).
    3. Of the flips that keep the part of speech, with a cosine of at least 0.8 and no stop word,
    4. try the 50 worth most in each of the 10 texts of the beam; the 10 best go on.
    5. Stop at a flipped label, or after two words.

Versions
    @paper       as above; candidates are neighbours of the word that pass the cosine, and the estimate picks
                 among these.
    @textattack  as TextAttack 0.3.11 has it: the one flip worth most among *all* places and words of the
                 victim's vocabulary, and only then cosine and part of speech, which it mostly fails: the beam
                 never widens.

One gradient per text of the beam, of a text whose score is paid for: gradients are no further queries, and
the result counts them (`gradients`). On a victim that is linear in its word vectors the estimate is exact.

Differences from the paper
    - The cosine is that of counter-fitted vectors (`search.candidates.table`), the paper's of word2vec.
    - @paper differentiates the margin between the true class and the next, not the loss: with two classes the
      order of the flips is the same. @textattack differentiates the loss.
    - The beam is scored by the victim, not by sums of estimates.
    - Flips of characters are not here: `charmer` tries these.

Differences from TextAttack
    - The gradient is taken of the model as it decides; TextAttack switches dropout on for it.
    - It is that of the true class, and of the word's own tokens; TextAttack takes the predicted class, and
      the index of the word for that of a token. Any torch victim will do, not only its own LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar

from unfooled.attacks.parts.beam import Result, beam, untouched
from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.class_words import pushed
from unfooled.attacks.parts.constraints import Constraint, NextText, SamePartOfSpeech
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.limits import WordDistance
from unfooled.attacks.parts.search import allowed, attackable, require_stopwords
from unfooled.attacks.parts.together import Options, swapping
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask, gather
from unfooled.core.questions import Mixture, Pull, mark, marked
from unfooled.core.recipe import Recipe, require_counts
from unfooled.core.victim import require_choice


@dataclass(frozen=True, kw_only=True)
class HotFlip:
    """Flip up to `most` words, in a beam of `width` texts; of each text the `pairs` best flips are tried.

    Without `candidates` the flips are chosen among the victim's own words before any constraint is asked.
    """

    candidates: Candidates | None
    constraints: tuple[Constraint, ...]
    pairs: int = 50
    width: int = 10
    most: int = 2
    result: Result = "best"
    stopwords: str = "english"
    needs: ClassVar[tuple[str, ...]] = ("gradients",)

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        require_choice(self.result, Result, "result")
        require_counts(self, "pairs", "width", "most")

    @property
    def asks(self) -> tuple[str, ...]:
        return ("readable", "flips" if self.candidates is None else "mixture")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        a.facts["gradients"] = 0.0
        (readable,) = yield from ask("readable", [mark(start.text)])

        def expand(now: Scored, _: int | None) -> list[Options]:
            return [self._flips(a, now, readable)]

        steps = repeat(None, self.most)
        return (yield from beam(a, start, steps, expand, width=self.width, result=self.result, ties="text"))

    def _flips(self, a: Attempt, now: Scored, readable: Sequence[int]) -> Options:
        open_to_all = set(attackable(now.text, self.stopwords, cased=True))
        free = [i for i in readable if i in open_to_all and untouched(now.text, i)]
        if self.candidates is None:
            return (yield from self._of_all_words(a, now, free))
        swaps = swapping(a, self.candidates, self.constraints)
        proposed = yield from gather([swaps(now, index) for index in free])
        return (yield from self._worth_most(a, now, [options for options in proposed if options]))

    def _worth_most(self, a: Attempt, now: Scored, places: Sequence[list[NextText]]) -> Options:
        """The options that promise most, the best first."""
        if not places:
            return []
        label, sign = pushed(a)
        words = tuple(tuple(option.word for option in options) for options in places)
        weights = tuple((1.0, *(0.0 for _ in options)) for options in places)
        text = marked(now.text, [options[0].position for options in places])
        (told,) = yield from a.look("mixture", {Mixture(text, label, words, weights): now.text})
        a.facts["gradients"] += 1
        gains = [
            (sign * float(slope - slopes[0]), option)
            for options, slopes in zip(places, told.slopes, strict=True)
            for option, slope in zip(options, slopes[1:], strict=True)
        ]
        return [option for _, option in sorted(gains, key=lambda pair: -pair[0])[: self.pairs]]

    def _of_all_words(self, a: Attempt, now: Scored, free: Sequence[int]) -> Options:
        if not free:
            return []
        label, sign = pushed(a)
        pull = Pull(marked(now.text, free), label, sign > 0, self.pairs)
        (flips,) = yield from a.look("flips", {pull: now.text})
        a.facts["gradients"] += 1
        places: dict[int, list[NextText]] = {}
        for place, word in flips:
            option = NextText(now.text.replace(free[place], word), free[place])
            places.setdefault(place, []).append(option)
        found = yield from gather([allowed(a, now, some, self.constraints) for some in places.values()])
        return [option for some in found for option in some]


_AS_PAPER = HotFlip(candidates=Neighbours(min_cosine=0.8), constraints=(SamePartOfSpeech(),))

_AS_TEXTATTACK = HotFlip(
    candidates=None,
    constraints=(
        WordDistance(0.8, by="cosine", against="original"),
        SamePartOfSpeech(after=3, first_equal=True),
    ),
    pairs=1,
    result="last",
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"paper": _AS_PAPER, "textattack": _AS_TEXTATTACK},
    name="hotflip",
    summary="flips the one or two words that the gradient promises most",
    paper="Ebrahimi et al. 2018, arXiv:1712.06751",
)
