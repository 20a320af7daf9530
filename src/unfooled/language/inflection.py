"""Bring a word to the form of the word it replaces: good for "nicer" becomes better, see for "watches" sees.

The forms come from a table (`resources.inflections`); words that are not in it take the regular endings,
which are made here.
"""

from __future__ import annotations

import re

from unfooled.resources.inflections import InflectionTable

_PARTS = {"N": "noun", "V": "verb", "J": "adj", "R": "adv"}
_BASE_TAGS = frozenset(("NN", "VB", "VBP", "JJ", "RB"))
_VOWELS = "aeiou"


def part_of(tag: str) -> str:
    """noun, verb, adj or adv; "" for tags of words that have no forms. RP is no adverb."""
    return "" if tag == "RP" else _PARTS.get(tag[:1], "")


def lemmas(word: str, tag: str, table: InflectionTable) -> list[str]:
    """Base forms that the word may have as what the tag says; the word itself where none is known.

    Readings of exactly that tag win; else any reading of that part of speech counts.
    """
    part, word = part_of(tag), word.lower()
    readings = [reading for reading in table.readings(word) if reading.part == part]
    exact = [reading.lemma for reading in readings if reading.tag == tag]
    return list(dict.fromkeys(exact or [reading.lemma for reading in readings])) or [word]


def inflect(lemma: str, tag: str, table: InflectionTable) -> str:
    """The form of a base form that the tag asks for, or "" where there is none in one word."""
    part, lemma = part_of(tag), lemma.lower()
    if tag.startswith("NNP"):
        return ""  # names have no forms
    known = table.forms(lemma, part)
    if known:
        forms = known.get(tag, ())
        return forms[0] if forms else ""
    return lemma if not part or tag in _BASE_TAGS else _regular(lemma, tag)


def has_form(word: str, tag: str, table: InflectionTable) -> bool:
    """Whether the table knows the word as being of that tag: read is VBD, VBN, VB and NN."""
    return any(reading.tag == tag for reading in table.readings(word.lower()))


def tag_by_form(word: str, tag: str, table: InflectionTable) -> str:
    """The tag, corrected where the word cannot be of that form: a tagger reads "he walk" as a past tense.

    Of several forms that the word may be, the first counts: a base form, else the past, and so on.
    """
    readings = [reading.tag for reading in table.readings(word.lower()) if reading.part == part_of(tag)]
    if not readings or tag in readings or tag.startswith("NNP"):
        return tag
    return "VBP" if "VBP" in readings and tag in ("VBD", "VBZ") else readings[0]


def _regular(lemma: str, tag: str) -> str:
    """By rule. Comparatives of unknown adjectives take "more", which is not one word."""
    if not lemma or tag in ("JJR", "JJS", "RBR", "RBS"):
        return ""
    soft = lemma.endswith("y") and lemma[-2:-1] not in _VOWELS
    if tag in ("NNS", "VBZ"):
        if soft:
            return lemma[:-1] + "ies"
        return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if tag == "VBG":
        silent = lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye"))
        return (lemma[:-1] if silent else _doubled(lemma)) + "ing"
    if soft:
        return lemma[:-1] + "ied"
    return lemma + "d" if lemma.endswith("e") else _doubled(lemma) + "ed"


def _doubled(lemma: str) -> str:
    short = re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", lemma)
    return lemma + lemma[-1] if short and len(lemma) > 2 else lemma
