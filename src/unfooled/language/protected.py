"""Words that an edit must leave alone: names, numbers and amounts, negations, links, handles and hashtags.

To change one of them is to tell of another person, another amount or the opposite, or to break an address.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, TypeAlias

from unfooled.text import Text

Kind: TypeAlias = Literal["name", "number", "negation", "link", "handle", "hashtag"]

_LINK = re.compile(
    r"(?i)\b(?:https?://|www\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|io|uk|de)\b\S*"
)
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands
million millions billion billions trillion dozen dozens half quarter third first second fourth fifth sixth
seventh eighth ninth tenth once twice thrice
few fewer fewest many much little less least more most several enough
"""
_NEGATION_WORDS = """
no not none nobody nothing nowhere never neither nor cannot without hardly scarcely barely seldom rarely
lack lacks lacked lacking fail fails failed failing n't
"""
_NUMBERS, _NEGATIONS = frozenset(_NUMBER_WORDS.split()), frozenset(_NEGATION_WORDS.split())
_ENDS_SENTENCE = re.compile(r"[.!?:]|\n")
_MANY = 0.5  # a text with more capitalised words than this is a heading: casing tells nothing there


def protected_words(text: Text) -> dict[int, Kind]:
    """Positions of protected words, and why each is."""
    found: dict[int, Kind] = {}
    for i, word in enumerate(text.words):
        if kind := _kind(word, text.gaps[i]):
            found[i] = kind
    for i in _names(text):
        found.setdefault(i, "name")
    for pattern in (_LINK, _MAIL):
        for match in pattern.finditer(text.string):
            for i, start in enumerate(text.starts):
                if match.start() <= start < match.end():
                    found[i] = "link"
    return found


def _kind(word: str, gap: str) -> Kind | None:
    lower = word.lower().replace("’", "'")
    if gap.endswith("@"):
        return "handle"
    if gap.endswith("#"):
        return "hashtag"
    if lower in _NUMBERS or any(map(str.isdigit, word)):
        return "number"
    if lower in _NEGATIONS or lower.endswith("n't"):
        return "negation"
    return None


def _names(text: Text) -> list[int]:
    """Words written as names: capitalised inside a sentence, or with capitals inside the word.

    A capital at the start of a sentence tells only together with a capitalised word behind it.
    """
    capitals = [_capitalised(word) for word in text.words]
    if sum(capitals) > _MANY * len(text.words) and len(text.words) > 3:
        return [i for i, word in enumerate(text.words) if _mixed(word)]
    found: set[int] = set()
    for i, word in enumerate(text.words):
        if _mixed(word):
            found.add(i)
        elif capitals[i] and not _begins_sentence(text, i):
            found.add(i)
            if i and capitals[i - 1] and text.gaps[i] == " " and not _is_pronoun(text.words[i - 1]):
                found.add(i - 1)
    return sorted(found)


def _capitalised(word: str) -> bool:
    return word[:1].isupper() and not _is_pronoun(word)


def _is_pronoun(word: str) -> bool:
    return word.replace("’", "'") in ("I", "I'm", "I'd", "I'll", "I've")


def _mixed(word: str) -> bool:
    """Capitals behind small letters: McDonald, iPhone."""
    return any(left.islower() and right.isupper() for left, right in pairwise(word))


def _begins_sentence(text: Text, index: int) -> bool:
    if index == 0:
        return True
    gap = text.gaps[index]
    return bool(_ENDS_SENTENCE.search(gap)) or gap.strip() in ('"', "“", "``", "--", "—", "(")
