"""Genetic attacks: a population of texts with synonyms in them breeds until one flips the label.

alzantot: Alzantot, Sharma, Elgohary, Ho, Srivastava, Chang: *Generating Natural Language Adversarial
Examples*, EMNLP 2018, arXiv:1804.07998.
faster-alzantot: Jia, Raghunathan, Göksel, Liang: *Certified Robustness to Adversarial Word Substitutions*,
EMNLP 2019, arXiv:1909.00986.
iga: Wang, Jin, He: *Natural Language Adversarial Attacks and Defenses in Word Level*, 2019, arXiv:1909.06723.

    1. Sixty texts, each with one word exchanged for the best of its near synonyms.
    2. Parents are drawn by their scores; a child takes each word from either of two.
    3. A child mutates: one word, drawn by how many synonyms it has, becomes the best of these, if better.
    4. The fittest text survives unchanged; all others are replaced by children.
    5. Stop when one flips the label, or after 20 generations.

Attacks
    alzantot         8 neighbours within a squared distance of 0.5, the 4 that a language model finds
                     likeliest after the word before; 20 generations
    faster-alzantot  8 neighbours of the original words, in a window of which the text's log-probability falls
                     by at most 5; no language model is asked of the present text; 40 generations
    iga              50 neighbours, no language model, a word may change up to 5 times; the start is one text
                     per word with its best neighbour; children take one parent's words up to a place, the
                     other's behind it

Versions
    @textattack  as TextAttack 0.3.11 has it: parents are drawn with weight exp(*-score* / 0.3), so that the
                 worst breed; a mutation that finds nothing better draws again; words without neighbours are
                 drawn too; at most 20 % of the words may be changed by a mutation, more by crossover; NLTK's
                 stop words, matched with their case. alzantot: the language model has no effect there, since
                 the first four neighbours are taken and not the four it chose. faster-alzantot: a window of 6
                 words in all. iga: the first text of the start has a drawn word changed and not the first.
    @paper       parents by exp(score / 0.3), one draw per mutation, among words that have neighbours and are
                 unchanged; at most 25 % changed (alzantot), 20 % (the others); the language models do what
                 they are for; windows of 6 words to each side.

Differences
    - The Google language model and the one of *Learning to Write* cannot be had here: the trigram model
      stands in, or another (`--set search.constraints.2.model=smollm2`). The bound of 5 was chosen for that
      other model.
    - Distances are those of our counter-fitted vectors, whose length is one: 0.5 is a cosine of 0.75.
    - The last generation is looked at. TextAttack and the authors' programs throw it away.
    - All children of a generation are asked together, and so are all mutations; equal texts cost once.
    - The authors of alzantot leave the 26 commonest words of their data alone; here a stop list does.
"""

from __future__ import annotations

from dataclasses import replace

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.fluency import Fluency
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.limits import FirstOptions, KeepLikeliest, MaxWords, WordDistance
from unfooled.attacks.parts.population import Genetic

_NEAR = Neighbours(most=8, min_cosine=-1.0)
_FIFTH, _QUARTER = MaxWords(share=0.2), MaxWords(share=0.25)

_ALZANTOT = Genetic(candidates=_NEAR, constraints=(_QUARTER, WordDistance(0.5), KeepLikeliest(4, before=1)))
_FASTER = Genetic(
    candidates=_NEAR,
    constraints=(_FIFTH, WordDistance(0.5, against="original"), Fluency(5.0, window=13)),
    generations=40,
)
_IGA = Genetic(
    candidates=Neighbours(most=50, min_cosine=-1.0),
    constraints=(_FIFTH, WordDistance(0.5)),
    crossover="one-point",
    start="each-word",
    times=5,
    repeat=True,
)


def _as_textattack(search: Genetic) -> Genetic:
    return replace(search, parents="worst", least_weight=1, persistent=True)


ALZANTOT = untargeted_versions(
    {
        "textattack": _as_textattack(
            replace(_ALZANTOT, constraints=(_FIFTH, WordDistance(0.5), FirstOptions(4)))
        ),
        "paper": _ALZANTOT,
    },
    name="alzantot",
    summary="breeds texts with near synonyms, the likeliest first",
    paper="Alzantot et al. 2018, arXiv:1804.07998",
)
_SHORT_WINDOW = (_FIFTH, WordDistance(0.5, against="original"), Fluency(5.0, window=6))
FASTER_ALZANTOT = untargeted_versions(
    {"textattack": _as_textattack(replace(_FASTER, constraints=_SHORT_WINDOW)), "paper": _FASTER},
    name="faster-alzantot",
    summary="breeds texts with near synonyms that fit the original text",
    paper="Jia et al. 2019, arXiv:1909.00986",
)
IGA = untargeted_versions(
    {"textattack": replace(_as_textattack(_IGA), skip_first=True), "paper": _IGA},
    name="iga",
    summary="breeds texts with near synonyms, words changing more than once",
    paper="Wang et al. 2019, arXiv:1909.06723",
)
