"""Swarms: texts that drift towards the best found, word by word, until one flips the label.

pso: Zang, Qi, Yang, Liu, Zhang, Liu, Sun: *Word-level Textual Adversarial Attacking as Combinatorial
Optimization*, ACL 2020, arXiv:1910.12196.
leap: Xiao, Wang, Huang, Dai, Lin: *LEAP: Efficient and Automated Test Method for NLP Software*, ASE 2023,
arXiv:2308.11284.

    1. Sixty particles, each the original with one word exchanged; each word of each has a speed.
    2. A speed grows where the word differs from the particle's own best and the swarm's, and falls elsewhere.
    3. Move to the own best, early more likely, or to the swarm's, late more likely: each word is taken over
       with a chance that its speed gives.
    4. Mutate: exchange one more word for its best candidate, the likelier the less is changed so far.
    5. Remember the bests; stop when one flips the label, or after 20 rounds.

leap differs in four things: the first speeds and the inertia of good particles are Lévy draws, poor particles
get inertia by their score, about one word moves at a time, and a mutation is the single best exchange.

Versions
    @textattack  as TextAttack 0.3.11 has it: a move starts at the best and takes the *particle's* words with
                 the chances meant for those of the best; a mutation of pso asks about every candidate of
                 every word and draws one of the best per word, by gain: about n times the queries. NLTK's
                 stop words, matched with their case. leap: WordNet's words in base form, a word may change
                 again, at most 16 % changed by mutations.
    @paper       pso only, the steps above: a mutation draws one unchanged word by its candidates (at most ten
                 count) and takes the best of these; words of the same part of speech in the same form.

Differences
    - HowNet cannot be had here. The candidates of pso are WordNet's sisters (words under the same more
      general sense, and synonyms) in the form of the word; the authors' table of candidates, or any other,
      is `--candidates table:PATH`.
    - The authors of pso take texts of 10 to 99 words only and count a success with more than 25 % changed as
      a failure. Here all are attacked, and mutations stop at 25 % in @paper.
    - All moves of a round are asked together, and so are the mutations of all particles; equal texts cost
      once, and particles with the same text are looked at once.
"""

from __future__ import annotations

from unfooled.attacks.parts.constraints import SamePartOfSpeech
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.limits import MaxWords
from unfooled.attacks.parts.population import Swarm
from unfooled.attacks.parts.sources import WordNetLemmas, WordNetSisters

_PLAIN = Swarm(candidates=WordNetSisters(), constraints=(), mutation="drawn-best", mirrored=True)
_ONE_PLACE = Swarm(
    candidates=WordNetSisters(),
    constraints=(SamePartOfSpeech(noun_for_verb=False), MaxWords(share=0.25)),
)
_LEVY = Swarm(
    candidates=WordNetLemmas(),
    constraints=(MaxWords(share=0.16, floor=1),),
    flight="levy",
    mutation="best",
    mirrored=True,
    repeat=True,
)

PSO = untargeted_versions(
    {"textattack": _PLAIN, "paper": _ONE_PLACE},
    name="pso",
    summary="drifts in a swarm of texts with words of the same kind",
    paper="Zang et al. 2020, arXiv:1910.12196",
)
LEAP = untargeted_versions(
    {"textattack": _LEVY},
    name="leap",
    summary="drifts in a swarm with Lévy flights of texts with WordNet's words",
    paper="Xiao et al. 2023, arXiv:2308.11284",
)
