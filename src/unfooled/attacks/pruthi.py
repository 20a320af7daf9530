"""Pruthi: one or two misspelled words, the worst there are.

Pruthi, Dhingra, Lipton: *Combating Adversarial Misspellings with Robust Word Recognition*, ACL 2019,
arXiv:1905.11268.

    1. Make every text with one edit inside one word: two neighbouring letters swapped, a letter dropped, one
       added, or one exchanged for a neighbour on the keyboard. First and last letters stay.
    2. Ask the victim about all of them and take the one with the lowest p(true class).
    3. Stop if the label flips, or when so many words are edited as allowed.

Versions
    @textattack  as TextAttack 0.3.11 has it: words of four letters and more, no stop words of NLTK's list,
                 one word; of added letters one drawn for each place, upper-case ones too, and none just
                 before the last letter; a keyboard by hand with diagonals.
    @paper       all 26 letters added at each place; swaps need five letters, other edits three; the four
                 straight neighbours on a plain grid of keys; one word.
    @two         the same with two words.

Differences
    - TextAttack's random letters are drawn once per word form and kept by its cache; ours once per word and
      step, from the example's own generator.
    - The authors' code also edits characters for victims of its own that read them; the search is the same.
"""

from __future__ import annotations

import string

from unfooled.attacks.parts.beam import BeamSwap
from unfooled.attacks.parts.candidates import AnyOf
from unfooled.attacks.parts.characters import Misspelling
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.core.recipe import Recipe

_AS_TEXTATTACK = AnyOf(
    (
        Misspelling("swap", least=4),
        Misspelling("drop", least=4),
        Misspelling("add", "each-place", least=4, letters=string.ascii_letters, before_last=False),
        Misspelling("keyboard", least=4, keyboard="textattack"),
    )
)
_AS_PAPER = AnyOf(
    (
        Misspelling("swap", least=5),
        Misspelling("drop", least=3),
        Misspelling("keyboard", least=3, keyboard="grid"),
        Misspelling("add", least=3),
    )
)


RECIPES: dict[str, Recipe] = untargeted_versions(
    {
        "textattack": BeamSwap(candidates=_AS_TEXTATTACK, constraints=(), most_edits=1),
        "paper": BeamSwap(candidates=_AS_PAPER, constraints=(), most_edits=1),
        "two": BeamSwap(candidates=_AS_PAPER, constraints=(), most_edits=2),
    },
    name="pruthi",
    summary="misspells one or two words in the worst way",
    paper="Pruthi et al. 2019, arXiv:1905.11268",
)
