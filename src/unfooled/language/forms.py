"""What two fine Penn tags tell of a changed form: number, tense, verb form, degree, or the part of speech."""

from __future__ import annotations

from itertools import takewhile
from typing import Literal, NamedTuple, TypeAlias

Change: TypeAlias = Literal["part of speech", "name", "number", "tense", "verb form", "degree"]

_LONGEST_ENDING = 3  # letters in which the shorter of two words of one stem may differ


class Form(NamedTuple):
    """Where a tag says nothing of number, tense, verb form or degree, that is ""."""

    part: str
    name: bool = False
    number: str = ""
    tense: str = ""
    verb_form: str = ""
    degree: str = ""


_FORMS: dict[str, Form] = {
    "NN": Form("noun", number="one"),
    "NNS": Form("noun", number="many"),
    "NNP": Form("noun", name=True, number="one"),
    "NNPS": Form("noun", name=True, number="many"),
    "VB": Form("verb", verb_form="base"),
    "VBD": Form("verb", tense="past", verb_form="finite"),
    "VBP": Form("verb", tense="present", verb_form="finite", number="many"),
    "VBZ": Form("verb", tense="present", verb_form="finite", number="one"),
    "VBG": Form("verb", verb_form="-ing"),
    "VBN": Form("verb", verb_form="participle"),
    "JJ": Form("adjective", degree="positive"),
    "JJR": Form("adjective", degree="comparative"),
    "JJS": Form("adjective", degree="superlative"),
    "RB": Form("adverb", degree="positive"),
    "RBR": Form("adverb", degree="comparative"),
    "RBS": Form("adverb", degree="superlative"),
}


def form_of(tag: str) -> Form:
    """Of a tag without forms (IN, DT, …) only the part of speech, which is the tag itself."""
    return _FORMS.get(tag, Form(tag))


def changed_form(tag: str, other: str) -> frozenset[Change]:
    """What a word loses that is replaced by one of the other tag; nothing where the fine tags agree.

    Another part of speech says it all: the rest cannot be compared.
    """
    before, after = form_of(tag), form_of(other)
    if before.part != after.part:
        return frozenset({"part of speech"})
    changed: set[Change] = set()
    if before.name != after.name:
        changed.add("name")
    if before.verb_form != after.verb_form:
        changed.add("verb form")
    elif before.tense != after.tense:
        changed.add("tense")
    elif before.number != after.number:
        changed.add("number")
    if before.degree != after.degree:
        changed.add("degree")
    return frozenset(changed)


def same_stem(word: str, other: str) -> bool:
    """Whether two words begin alike up to an ending: hack and hacker, imagery and imaging."""
    letters = zip(word.lower(), other.lower(), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
    return shared >= max(4, min(len(word), len(other)) - _LONGEST_ENDING)
