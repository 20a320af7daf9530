"""PWWS: swap words for WordNet synonyms, in the order of how salient the word and how good its swap is.

Ren, Deng, He, Che: *Generating Natural Language Adversarial Examples through Probability Weighted Word
Saliency*, ACL 2019.

    1. Saliency of a word: how much p(true class) falls when the word becomes unknown.
    2. For every word the synonym that lowers p(true class) most in the original text, and by how much.
    3. Rank the words by softmax(saliency) times that fall.
    4. Put in the synonyms found in step 2, in this order, whatever each does,
    5. until the label flips.

Versions
    @textattack  as TextAttack 0.3.11 has it: any single word of any synset, in base form and WordNet's
                 capitals; synonyms are chosen anew at each word and kept only if better; words are ranked by
                 softmax of the *score* without the word times the best *score*, so that what p(true class)
                 was at the start leaks into the order. NLTK's stop words, matched with their case.
    @paper       the steps above: nouns, verbs, adjectives, adverbs and conjunctions, synonyms of the same
                 part of speech in the form of the word they replace, no stop words, no limit.

Differences from the authors' code
    - Named entities are words like any other. The authors replace one by the commonest entity of its type in
      the other classes of the training data; a list of yours does so with `--candidates table:PATH`.
    - The unknown word is `[UNK]`. Tags come from an averaged-perceptron tagger in place of spaCy's.
    - Synonyms are put into the form of the word (films, movies); theirs drops those in another form.
    - WordNet's words come by the alphabet in @textattack; there a set decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from unfooled.attacks.parts.constraints import NextText, SamePartOfSpeech
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.limits import OnlyTags
from unfooled.attacks.parts.saliency import WeightedSaliency
from unfooled.attacks.parts.search import GreedySwap, exploring, greedy, keep_newest
from unfooled.attacks.parts.sources import WordNetLemmas, WordNetSynonyms
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class BestSwapsInOrder:
    """Find the best replacement of each word in the original text; put them in by importance till success."""

    importance: WeightedSaliency

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        best = yield from self.importance.best(a, start, range(len(start.text.words)))
        words = {place: word for place, word in best.items() if word is not None}

        def put_in(now: Scored, place: int) -> Program[list[NextText]]:
            return [NextText(now.text.replace(place, words[place]), place)]
            yield  # no question is needed, but a program is a generator

        return (yield from greedy(start, list(words), exploring(a, put_in), keep=keep_newest))


_AS_TEXTATTACK = GreedySwap(
    importance=WeightedSaliency(WordNetLemmas(), worth="score"),
    candidates=WordNetLemmas(),
    constraints=(),
    stopwords="english",
    stopwords_cased=True,
    ties="text",
)
_AS_PAPER = BestSwapsInOrder(
    importance=WeightedSaliency(
        WordNetSynonyms(),
        (
            OnlyTags(("NOUN", "VERB", "ADJ", "ADV", "CONJ")),
            SamePartOfSpeech(noun_for_verb=False),
        ),
    )
)

RECIPES: dict[str, Recipe] = untargeted_versions(
    {"textattack": _AS_TEXTATTACK, "paper": _AS_PAPER},
    name="pwws",
    summary="swaps words for WordNet synonyms, by saliency and gain",
    paper="Ren et al. 2019, ACL P19-1103",
)
