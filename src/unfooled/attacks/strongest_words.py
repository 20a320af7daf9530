"""N strongest words swap: the words that speak most for the true class become ones of the opposite class.

A 2017 study of attacks on an LSTM, an SVM and naive Bayes with IMDB reviews (`lstm-jsma-imdb-2017`),
section V.B.

    1. Train a multinomial naive Bayes model with Laplace smoothing on the training data.
    2. For each class take the five words with the largest ratio p(word | class) / p(word | other class).
    3. In the text find the N words with the largest ratio for the true class; ties in lexicographic order.
    4. Replace each of them by one of the five of the opposite class.
    5. Look at the victim's answer. There is no second try.

Step 1 and 2 are `unfooled words --data TRAINING_DATA --out words.json`, which also shows the lists; the
attack reads the file that `search.words` names. Nothing else of the victim is needed than its decision.

Versions
    @5, @3, @1  the paper's N. Any other: --set search.most=N.

Differences from the paper
    - The dictionary of the naive Bayes model is the words of the training data, not a fixed list of 400,000.
    - Which of the five comes where is not said there: they are drawn at random, none twice before all were
      used. A word that occurs twice counts twice; the earlier one goes first.
    - With more than two classes the ratio is against the mean of the other classes, and the words come from
      the class that the victim finds likeliest after the true one. With a target they are the target's.
    - The new word takes the casing of the old one. A word equal to the old one is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar

from unfooled.attacks.parts.class_words import ReadsClassWords, opposite
from unfooled.attacks.parts.goals import Untargeted
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Ask, Program
from unfooled.core.recipe import Recipe, require_counts
from unfooled.text import match_case


@dataclass(frozen=True, kw_only=True)
class StrongestWords(ReadsClassWords):
    """`most` words of the text give way to the `top` words of the opposite class; one query."""

    tries: ClassVar[int] = 1
    most: int
    words: str = "words.json"
    top: int = 5

    def __post_init__(self) -> None:
        require_counts(self, "most", "top")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        text = start.text
        own = tuple(word.lower() for word in text.words)
        (sways, listed) = yield [
            Ask(f"class-words:{self.words}", [("sway", a.label, own)]),
            Ask(f"class-words:{self.words}", [("strongest", opposite(a, start), self.top)]),
        ]
        strongest = sorted(range(len(own)), key=lambda i: (-sways[0][i], own[i], i))[: self.most]
        order = a.rng.permutation(len(listed[0])).tolist()
        drawn = cycle(listed[0][place] for place in order)
        for i in strongest:
            old = text.words[i]
            words = (match_case(word, old) for word in islice(drawn, len(order)))
            text = text.replace(i, next((word for word in words if word != old), old))
        if text == start.text:
            return start
        (end,) = yield from a.score([text])
        return end


def _version(most: int) -> Recipe:
    return Recipe(
        name="strongest-words",
        version=str(most),
        summary=f"replaces the {most} words that speak most for the true class"
        if most > 1
        else "replaces the word that speaks most for the true class",
        paper="LSTM, SVM and naive Bayes on IMDB (lstm-jsma-imdb-2017)",
        goal=Untargeted(),
        search=StrongestWords(most=most),
        needs=(),
    )


RECIPES: dict[str, Recipe] = {str(most): _version(most) for most in (5, 3, 1)}
