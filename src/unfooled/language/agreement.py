"""What must agree with its neighbours: a or an, determiner and noun, subject and verb.

As far as the word forms and the tags of close neighbours tell; what cannot be seen there is no mistake.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

Rule: TypeAlias = Literal["article", "determiner", "subject"]

# An h that is not heard, and vowels that begin with the sound of y or w.
_SILENT_H = re.compile(r"(?:heir|hono(?:u?r|r)|honest|hour)")
_CONSONANT_SOUND = re.compile(
    r"(?:eu|ew|one(?:$|[-s])|once|uni(?!n|m[^e])|unanim|us(?:e|a|u|i|ur)|ut(?:i|e|o)|ub(?:i|er)|u[^a-z]|ur(?:a|i)n|ufo)"
)
_VOWEL_LETTERS = frozenset("AEFHILMNORSX")  # letters whose names begin with a vowel
_ONE = frozenset(("a", "an", "this", "that", "each", "every", "another", "either", "neither", "one"))
_MANY = frozenset(
    ("these", "those", "many", "few", "several", "both")
    + ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
)
_SINGULAR_PRONOUNS = frozenset(("he", "she", "it"))
_PLURAL_PRONOUNS = frozenset(("i", "you", "we", "they"))
# Tags that may stand between a determiner and its noun, and between a subject and its verb.
_INSIDE = frozenset(
    ("JJ", "JJR", "JJS", "VBN", "VBG", "RB", "RBR", "RBS", "NN", "NNS", "NNP", "NNPS", "CD", "POS", "PRP$")
)
_BETWEEN = frozenset(("RB", "RBR"))


class Disagreement(NamedTuple):
    """A broken rule and the two places it is about."""

    rule: Rule
    first: int
    second: int


def indefinite_article(word: str) -> Literal["a", "an"]:
    """Which article stands before the word, by its sound as far as its spelling tells."""
    if 1 < len(word) < 5 and word.isupper() and word[1] not in "AEIOUY":  # read letter by letter
        return "an" if word[0] in _VOWEL_LETTERS else "a"
    lower = word.lower()
    if lower.isdigit():
        return "an" if lower.startswith("8") or lower in ("11", "18") else "a"
    if _SILENT_H.match(lower):
        return "an"
    if _CONSONANT_SOUND.match(lower):
        return "a"
    return "an" if lower[:1] in "aeiou" and lower else "a"


def disagreements(words: Sequence[str], tags: Sequence[str]) -> list[Disagreement]:
    """Every rule that the text breaks."""
    lower = [word.lower() for word in words]
    found: list[Disagreement] = []
    for i, word in enumerate(lower):
        if tags[i] == "DT" and word in ("a", "an") and _wrong_article(word, words[i + 1 : i + 2]):
            found.append(Disagreement("article", i, i + 1))
        if word in _ONE | _MANY:
            noun = _head_noun(tags, i)
            if noun is not None and not _number_fits(word, tags[noun]):
                found.append(Disagreement("determiner", i, noun))
        if (verb := _verb_after(tags, i)) is not None and not _verb_fits(lower, tags, i, verb):
            found.append(Disagreement("subject", i, verb))
    return found


def broken_rules(words: Sequence[str], tags: Sequence[str]) -> Counter[Rule]:
    """How often the text breaks each rule."""
    return Counter(broken.rule for broken in disagreements(words, tags))


def new_disagreements(
    words: Sequence[str], tags: Sequence[str], new_words: Sequence[str], new_tags: Sequence[str]
) -> int:
    """How many rules more an edit breaks than were broken before it, counted rule by rule."""
    return (broken_rules(new_words, new_tags) - broken_rules(words, tags)).total()


def _wrong_article(article: str, following: Sequence[str]) -> bool:
    return any(indefinite_article(word) != article for word in following)


def _head_noun(tags: Sequence[str], determiner: int) -> int | None:
    """The noun that a determiner belongs to: the last of the nouns that follow, adjectives between."""
    if tags[determiner] not in ("DT", "CD", "JJ", "PDT"):
        return None
    place, noun = determiner + 1, None
    while place < len(tags) and tags[place] in _INSIDE:
        if tags[place].startswith("NN"):
            noun = place
        elif noun is not None:
            break  # the noun has ended
        place += 1
    return noun


def _number_fits(determiner: str, tag: str) -> bool:
    if tag.startswith("NNP"):
        return True  # names keep their number
    return tag == ("NN" if determiner in _ONE else "NNS")


def _verb_after(tags: Sequence[str], subject: int) -> int | None:
    """The present-tense verb that follows a subject at once, or with an adverb between."""
    if tags[subject] not in ("PRP", "NN", "NNS"):
        return None
    place = subject + 1
    while place < len(tags) and tags[place] in _BETWEEN:
        place += 1
    return place if place < len(tags) and tags[place] in ("VBZ", "VBP") else None


def _verb_fits(lower: Sequence[str], tags: Sequence[str], subject: int, verb: int) -> bool:
    word = lower[subject]
    if tags[subject] == "PRP":
        if word in _SINGULAR_PRONOUNS:
            return tags[verb] == "VBZ"
        return word not in _PLURAL_PRONOUNS or tags[verb] == "VBP"
    if any(tag in ("IN", "CC", "TO") for tag in tags[max(0, subject - 4) : subject]):
        return True  # "the plot of the films is …": the subject may stand further left
    return tags[verb] == ("VBZ" if tags[subject] == "NN" else "VBP")
