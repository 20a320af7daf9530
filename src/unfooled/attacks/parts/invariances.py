"""Edits after which a text says the same of its subject: another name, place or number, a contraction or not.

The lists are short and written for this project from common knowledge: first and last names frequent in
English texts, countries with their adjectives, large cities. What is not listed is left alone.
"""

from __future__ import annotations

import numpy as np

from unfooled.data.contractions import CONTRACTIONS
from unfooled.text import Text, match_case

_FIRST = """
    Adam Alice Amy Andrew Angela Anna Anthony Barbara Ben Betty Brian Carol Charles Chris Christine Daniel
    David Deborah Dennis Diana Donna Edward Elizabeth Emily Emma Eric Frank Gary George Grace Hannah Helen
    Henry Jack James Jane Janet Jason Jeff Jennifer Jessica John Joseph Judy Julia Karen Kate Kenneth Kevin
    Laura Linda Lisa Lucy Margaret Maria Mark Martin Mary Matthew Michael Michelle Nancy Nicole Olivia
    Patricia Paul Peter Philip Rachel Rebecca Richard Robert Roger Ruth Samuel Sandra Sarah Scott Sharon
    Sophia Stephen Steven Susan Thomas Timothy Victoria Walter William
"""
_LAST = """
    Adams Allen Anderson Bailey Baker Bell Bennett Brooks Campbell Carter Clark Collins Cooper Cox Davis
    Edwards Evans Fisher Foster Garcia Gomez Green Griffin Hall Harris Hernandez Hill Howard Hughes Jackson
    Jenkins Johnson Jones Kelly Kennedy Lewis Lopez Martinez Miller Mitchell Moore Morgan Morris Murphy
    Nelson Parker Perez Peterson Phillips Powell Ramirez Reed Reynolds Richardson Roberts Robinson Rodriguez
    Rogers Russell Sanchez Sanders Simmons Smith Stewart Sullivan Taylor Thompson Torres Turner Walker
    Watson Williams Wilson Wright
"""
_LANDS_TEXT = """
    Argentina:Argentinian Australia:Australian Austria:Austrian Belgium:Belgian Brazil:Brazilian
    Canada:Canadian Chile:Chilean China:Chinese Colombia:Colombian Cuba:Cuban Denmark:Danish Egypt:Egyptian
    Finland:Finnish France:French Germany:German Greece:Greek Hungary:Hungarian India:Indian Iran:Iranian
    Iraq:Iraqi Ireland:Irish Israel:Israeli Italy:Italian Japan:Japanese Kenya:Kenyan Mexico:Mexican
    Morocco:Moroccan Netherlands:Dutch Nigeria:Nigerian Norway:Norwegian Pakistan:Pakistani Peru:Peruvian
    Poland:Polish Portugal:Portuguese Russia:Russian Spain:Spanish Sweden:Swedish Switzerland:Swiss
    Thailand:Thai Turkey:Turkish Ukraine:Ukrainian Vietnam:Vietnamese
"""
_CITY = """
    Amsterdam Athens Atlanta Bangkok Barcelona Beijing Berlin Boston Brussels Budapest Cairo Chicago Dallas
    Delhi Denver Detroit Dublin Hamburg Houston Istanbul Jakarta Lagos Lima Lisbon London Madrid Manila
    Miami Milan Montreal Moscow Mumbai Munich Nairobi Oslo Paris Philadelphia Prague Rome Seattle Seoul
    Shanghai Singapore Stockholm Sydney Tokyo Toronto Vienna Warsaw Zurich
"""
_UP_TO_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty
"""
_TENS = """
    thirty forty fifty sixty seventy eighty ninety
"""
FIRST_NAMES = frozenset(_FIRST.split())
LAST_NAMES = frozenset(_LAST.split())
_LANDS = _LANDS_TEXT.split()
COUNTRIES = frozenset(land.partition(":")[0] for land in _LANDS)
NATIONALITIES = frozenset(land.partition(":")[2] for land in _LANDS)
CITIES = frozenset(_CITY.split())
_GROUPS = (COUNTRIES, NATIONALITIES, CITIES)
_SMALL = _UP_TO_TWENTY.split()
NUMBERS: dict[str, int] = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * (tens + 3) for tens, word in enumerate(_TENS.split())
}
_SPELLED = {value: word for word, value in NUMBERS.items()}
UNTOUCHED = (0, 2, 4)  # for, to, and nothing: what these stand for is often no number
_LONGEST = 6  # digits
EXPANDED: dict[str, str] = {short: full for short, full in CONTRACTIONS.items() if "'" in short}
CONTRACTED: dict[str, str] = {full.lower(): short for short, full in reversed(EXPANDED.items())}


def expanded(text: Text, index: int) -> list[Text]:
    """A contraction written out."""
    word = text.words[index]
    full = EXPANDED.get(word.lower().replace("’", "'"))
    return [text.replace(index, cased(full, word))] if full else []


def contracted(text: Text, index: int) -> list[Text]:
    """A word and the next one drawn together."""
    if index + 1 >= len(text.words) or text.gaps[index + 1] != " ":
        return []
    word = text.words[index]
    short = CONTRACTED.get(f"{word} {text.words[index + 1]}".lower())
    return [text.replace(index, cased(short, word)).delete(index + 1)] if short else []


def cased(phrase: str, like: str) -> str:
    """The phrase with a capital where the word that it replaces has one."""
    if like.isupper() and len(like) > 1:
        return phrase.upper()
    return phrase[:1].upper() + phrase[1:] if like[:1].isupper() else phrase


def renamed(text: Text, index: int, most: int, rng: np.random.Generator) -> list[Text]:
    """Another first name; another last name behind a first one."""
    word = text.words[index]
    if word in FIRST_NAMES:
        return _drawn(text, index, FIRST_NAMES, most, rng)
    behind = index > 0 and text.words[index - 1] in FIRST_NAMES and text.gaps[index] == " "
    return _drawn(text, index, LAST_NAMES, most, rng) if behind and word in LAST_NAMES else []


def relocated(text: Text, index: int, most: int, rng: np.random.Generator) -> list[Text]:
    """Another country, nationality or city in the place of one."""
    word = text.words[index]
    group = next((group for group in _GROUPS if word in group), frozenset[str]())
    return _drawn(text, index, group, most, rng)


def renumbered(text: Text, index: int, most: int, rng: np.random.Generator) -> list[Text]:
    """A number not far from it: from half to twice as many."""
    word = text.words[index]
    spelled = NUMBERS.get(word.lower())
    value = int(word) if word.isascii() and word.isdigit() and len(word) <= _LONGEST else spelled
    if value is None or value in UNTOUCHED:
        return []
    around = value + 1
    values = rng.integers(max(1, value - around), value + around, size=most).tolist()
    written = [str(number) if spelled is None else _SPELLED.get(number, "") for number in values]
    return [
        text.replace(index, match_case(number, word) if spelled is not None else number)
        for number in dict.fromkeys(written)
        if number and number != word.lower()
    ]


def _drawn(text: Text, index: int, group: frozenset[str], most: int, rng: np.random.Generator) -> list[Text]:
    others = sorted(group - {text.words[index]})
    chosen = rng.permutation(len(others))[:most].tolist()
    return [text.replace(index, others[number]) for number in chosen]
