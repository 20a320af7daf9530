"""Breaking BERT: replace the words at which the loss pulls hardest by synonyms, until the class is left.

Subedi, Shah, Cherukuri, Vasilakos: *Breaking BERT: Gradient Attack on Twitter Sentiment Analysis for Targeted
Misclassification*, 2025, arXiv:2504.01345.

    1. Gradient of the loss for the input embeddings, averaged over a word's pieces; its length as a z-score
       in the text is the word's importance. Drop stop words.
    2. For the next word take its synonyms from Datamuse (`/words?rel_syn=`),
    3. keep those with the same part of speech,
    4. and those with which the text's similarity to the original is at least 0.9.
    5. Keep the one with the lowest confidence in the true class; stop when the label flips or that
       confidence is below 0.5.

Versions
    @paper       the steps above. Only negative texts are attacked; any other class is a success. The encoder
                 is the multilingual Universal Sentence Encoder, the nearest to the article's that there is.
    @flip        goes on until the label flips: no confidence at which to give up.

The article cleans its tweets first: `--clean tweets` does that. `--only CLASS` attacks another class and
`--only any` every class; `--target CLASS` aims at one. `--candidates` and `--importance` swap these parts.

Success
    A success of a run is a flipped label, nothing else. With three or more classes the confidence can fall
    below 0.5 while the label stands: @paper stops there, as the article does, and the example counts as a
    failure whose note says so. The article does not say how it counts these; with two classes there are none.
    A text that begins below 0.5 has its most important word tried, and no other.

Differences from the article (there is no public code)
    - Where the service cannot be reached, WordNet's synonyms are used; the run says so. `rel_syn` means words
      of one WordNet synset, so both know nearly the same words; ours come in the form of the replaced word.
    - A gradient is measured by its Euclidean length. The article averages it and does not say over what.
      The z-score does not change the order of words; `search.importance.least` can cut off the low ones.
    - Any option that flips the label ends the search; among several the one with the lowest confidence.
    - A replacement is kept only if it lowers the confidence.
    - The similarity is the cosine of whole texts, against the original. The article names no scale.
    - Tags come from an averaged-perceptron tagger, stop words are NLTK's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.candidates import Candidates
from unfooled.attacks.parts.constraints import Constraint, SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.goals import OnlyClass
from unfooled.attacks.parts.gradient_importance import Gradient
from unfooled.attacks.parts.importance import Importance
from unfooled.attacks.parts.search import (
    attackable,
    exploring,
    greedy,
    keep_highest,
    replacing,
    require_stopwords,
)
from unfooled.attacks.parts.sources import Datamuse
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class LowestConfidence:
    """Go through the words once, the most important first, and keep the option that the goal likes best.

    Gives up when the confidence in the true class is below `floor`; None goes on to the last word.
    """

    importance: Importance
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    stopwords: str = "english"
    floor: float | None = 0.5

    def __post_init__(self) -> None:
        require_stopwords(self.stopwords)
        if self.floor is not None and not 0.0 <= self.floor <= 1.0:
            raise ValueError("floor is a probability, or none")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        order = yield from self.importance.rank(a, start, attackable(start.text, self.stopwords))
        explore = exploring(a, replacing(a, self.candidates), self.constraints)

        def give_up(now: Scored, found: Sequence[Scored]) -> bool:
            if self.floor is None or now.probs[a.label] >= self.floor:
                return False
            a.note = f"stopped: the confidence is below {self.floor:g}, but the label stands"
            return True

        return (yield from greedy(start, order, explore, keep=keep_highest, stop=give_up))


def _version(version: str, floor: float | None) -> Recipe:
    return Recipe(
        name="breaking-bert",
        version=version,
        summary="replaces the words with the largest loss gradient by synonyms; negative texts only",
        paper="Subedi et al. 2025, arXiv:2504.01345",
        goal=OnlyClass("negative"),
        search=LowestConfidence(
            importance=Gradient(),
            candidates=Datamuse(),
            constraints=(
                SamePartOfSpeech(noun_for_verb=False),
                SentenceSimilarity(
                    threshold=0.9, scale="cosine", encoder="use", window=None, against="original"
                ),
            ),
            floor=floor,
        ),
    )


RECIPES: dict[str, Recipe] = {
    "paper": _version("paper", 0.5),
    "flip": _version("flip", None),
}
