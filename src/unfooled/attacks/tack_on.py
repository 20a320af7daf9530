"""Tack-on adversarial word: the first word becomes one that speaks for another class.

A 2017 study of attacks on an LSTM, an SVM and naive Bayes with IMDB reviews (`lstm-jsma-imdb-2017`),
section V.A.

    1. Train a multinomial naive Bayes model with Laplace smoothing on the training data.
    2. For each class take the five words with the largest ratio p(word | class) / p(word | other class);
       ties in lexicographic order.
    3. Replace the first word of a text by a random one of the five of the opposite class.
    4. Look at the victim's answer. There is no second try.

Step 1 and 2 are `unfooled words --data TRAINING_DATA --out words.json`, which also shows the lists; the
attack reads the file that `search.words` names. Nothing else of the victim is needed than its decision.

Versions
    @paper  as above.

Differences from the paper
    - The dictionary of the naive Bayes model is the words of the training data, not a fixed list of 400,000.
    - With more than two classes the ratio is against the mean of the other classes, and the words come from
      the class that the victim finds likeliest after the true one. With a target they are the target's.
    - The new word takes the casing of the old one. A word equal to the old one is not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.class_words import ReadsClassWords, opposite
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, require_counts
from unfooled.text import match_case


@dataclass(frozen=True, kw_only=True)
class TackOn(ReadsClassWords):
    """One random word of the opposite class's `top` in place of the first word; one query."""

    tries: ClassVar[int] = 1
    words: str = "words.json"
    top: int = 5

    def __post_init__(self) -> None:
        require_counts(self, "top")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        old = start.text.words[0]
        (listed,) = yield from ask(f"class-words:{self.words}", [("strongest", opposite(a, start), self.top)])
        options = [word for word in (match_case(strong, old) for strong in listed) if word != old]
        if not options:
            return start
        word = options[int(a.rng.integers(len(options)))]
        (end,) = yield from a.score([start.text.replace(0, word)])
        return end


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"paper": TackOn()},
    name="tack-on",
    summary="replaces the first word by one that speaks for another class",
    paper="LSTM, SVM and naive Bayes on IMDB (lstm-jsma-imdb-2017)",
    needs=(),
)
