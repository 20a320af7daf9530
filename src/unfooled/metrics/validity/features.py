"""What is measured of an original and its altered text, as numbers that the judge weighs.

All but the shares of the whole text are taken per edited word, so that a long text with many small edits is
not worse than a short one with few. Room for pictures of both texts, which would tell how alike look-alike
characters look, is `_spelling`: today a word written with foreign or invisible characters is a non-word.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from unfooled.language.agreement import new_disagreements
from unfooled.language.edits import WordEdit, tagged_edits
from unfooled.language.edits import align as align_words
from unfooled.language.english import English
from unfooled.language.forms import changed_form
from unfooled.language.inflection import tag_by_form
from unfooled.language.polarity import WordLookup
from unfooled.language.protected import protected_words
from unfooled.language.tagging import tag_texts
from unfooled.metrics.validity.model import Row
from unfooled.resources.encoders import Vector
from unfooled.resources.english import Speller
from unfooled.resources.fluency import Token
from unfooled.text import Text

Tokens: TypeAlias = Callable[[Sequence[str]], list[list[Token]]]
Said = TypeVar("Said")
Encode: TypeAlias = Callable[[Sequence[str]], Sequence[Vector]]

# MiniLM was tried as well: beside the other measures it got no weight, and it is the slower one.
ENCODERS = ("potion",)
LANGUAGE_MODEL = "smollm2"
WORD_VECTORS = "counter-fitted"
_FOLLOWING = 2  # words behind an edit whose surprise counts
_MOST = 3.0  # mistakes that are counted; more are as bad
_SAME, _ALIKE = ("same", "synonym", "similar"), 0.5  # what WordNet calls alike is not further apart
_CLEAR_COSINE = 0.15  # from here on a word has a polarity


@dataclass(frozen=True, slots=True)
class Feature:
    """`sign` 1: the more of it, the less valid; -1: the more valid."""

    name: str
    title: str
    sign: Literal[1, -1]
    needs: Literal["", "language-model"] = ""


FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("altered", "1 where any word is edited, else 0", 1),
        Feature("edited", "share of the words edited", 1),
        Feature("form", "share of the words with another form: number, tense, degree, part of speech", 1),
        Feature("form-per-edit", "share of the replaced words that changed their form", 1),
        Feature("agreement", "new mistakes of agreement: a or an, number, person", 1),
        Feature("word-cosine", "mean cosine of the replaced words with what they became", -1),
        Feature("spelling", "share of the edits that made a non-word", 1),
        Feature("polarity", "change of polarity per edit", 1),
        Feature("opposites", "share of the edits that are opposites or touch a negation", 1),
        Feature("protected", "share of the edits that touch a name, number, link, handle or hashtag", 1),
        Feature("two-of-a-kind", "share of the replaced words that became another of their kind", 1),
        Feature("potion", "what the similarity of both texts, by the encoder potion, lacks to 1", 1),
        Feature("lm-text", "log-probability lost per word", 1, "language-model"),
        Feature("lm-lost", "log-probability lost by the whole text, as log(1 + x)", 1, "language-model"),
        Feature(
            "lm-following",
            "greatest log-probability lost in the two words behind an edit, as log(1 + x)",
            1,
            "language-model",
        ),
        Feature("lm-level", "surprise per token of the altered text", 1, "language-model"),
    )
}


class Pair(NamedTuple):
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Instruments:
    """What measures with: all of `resources`, opened; without `tokens` there is no language model."""

    english: English
    vectors: WordLookup
    speller: Speller
    encoders: dict[str, Encode]
    tokens: Tokens | None = None

    def measure(self, pairs: Sequence[Pair]) -> list[Row]:
        """The measures of each pair by name."""
        rows: list[dict[str, float]] = [self._words(pair) for pair in pairs]
        for name, encode in self.encoders.items():
            for row, (before, after) in zip(rows, _both(encode, pairs), strict=True):
                row[name] = max(0.0, 1.0 - float(before @ after))
        if self.tokens is not None:
            for pair, row, (lost, won) in zip(pairs, rows, _both(self.tokens, pairs), strict=True):
                row |= _surprise(pair, lost, won)
        return [{name: round(value, 6) for name, value in row.items()} for row in rows]

    def _words(self, pair: Pair) -> dict[str, float]:
        before, after = Text(_plain(pair.before)), Text(_plain(pair.after))
        tags, new_tags = tag_texts([before, after], self.english.tagger)
        pairs = align_words(before.words, after.words, tags, new_tags)
        edits = tagged_edits(before.words, after.words, tags, new_tags, pairs)
        replaced = [edit for edit in edits if edit.kind == "replace"]
        words, all_edits, all_replaced = (max(1, len(counted)) for counted in (before.words, edits, replaced))
        changed = sum(self._changes_form(edit) for edit in replaced)
        relations = [self.english.relations.of(edit.before, edit.after).relation for edit in replaced]
        touched = _touched(pair, edits)
        broken = new_disagreements(before.words, tags, after.words, new_tags)
        return {
            "altered": float(bool(edits)),
            "edited": min(1.0, len(edits) / words),
            "form": min(1.0, changed / words),
            "form-per-edit": changed / all_replaced,
            "agreement": min(_MOST, broken),
            "word-cosine": self._word_cosine(replaced, relations),
            "spelling": sum(map(self._spelling, edits)) / all_edits,
            "polarity": self._polarity(edits) / all_edits,
            "opposites": min(1.0, (relations.count("antonym") + touched["negation"]) / all_edits),
            "protected": min(1.0, touched["protected"] / all_edits),
            "two-of-a-kind": relations.count("co-hyponym") / all_replaced,
        }

    def _changes_form(self, edit: WordEdit) -> bool:
        table = self.english.inflections
        forms, new_forms = (
            {reading.tag for reading in table.readings(word.lower())} for word in (edit.before, edit.after)
        )
        if forms and forms <= new_forms:
            return False  # it can be all that the old word can be: the tagger's doubt is not a reader's
        before = tag_by_form(edit.before, edit.tag_before, table)
        return bool(changed_form(before, tag_by_form(edit.after, edit.tag_after, table)))

    def _word_cosine(self, replaced: Sequence[WordEdit], relations: Sequence[str]) -> float:
        if not replaced:
            return 1.0
        cosines = [
            max(self.vectors.cosine(edit.before, edit.after), _ALIKE if relation in _SAME else -1.0)
            for edit, relation in zip(replaced, relations, strict=True)
        ]
        return sum(cosines) / len(cosines)

    def _spelling(self, edit: WordEdit) -> bool:
        """Whether a word was made that nobody knows, out of one that is known."""
        return (
            bool(edit.after) and not self._known(edit.after) and (not edit.before or self._known(edit.before))
        )

    def _known(self, word: str) -> bool:
        if not word.isascii():
            letters = unicodedata.normalize("NFKD", word).replace("’", "'")
            if any(char.isalpha() and not char.isascii() for char in letters):
                return False
            word = "".join(char for char in letters if not unicodedata.combining(char))
        stem = word.lower().removesuffix("'s")
        if not stem.isalpha():
            return not (any(map(str.isdigit, stem)) and any(map(str.isalpha, stem)))  # w0rd, but not 1990
        return stem in self.vectors.index or self.speller.knows(stem) or self.speller.knows_parts(stem)

    def _polarity(self, edits: Sequence[WordEdit]) -> float:
        """How far all edits together move the text between bad and good."""
        moved = sum(self._clear_polarity(edit.after) - self._clear_polarity(edit.before) for edit in edits)
        return abs(moved)

    def _clear_polarity(self, word: str) -> float:
        value = self.vectors.polarity_of(word)
        return value if abs(value) >= _CLEAR_COSINE else 0.0


def _both(ask: Callable[[Sequence[str]], Sequence[Said]], pairs: Sequence[Pair]) -> list[tuple[Said, Said]]:
    """What an instrument says of each text of each pair, equal texts asked once."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    said = dict(zip(texts, ask(texts), strict=True))
    return [(said[before], said[after]) for before, after in pairs]


def _plain(text: str) -> str:
    """Hyphens part words: half of a compound may be edited, and some writers leave them out."""
    return text.replace("-", " ")


def _touched(pair: Pair, edits: Sequence[WordEdit]) -> dict[str, int]:
    """How many edits take away or bring a negation, or another word that should have been left alone."""
    kinds = [protected_words(Text(_plain(text))) for text in pair]
    found = {"negation": 0, "protected": 0}
    for edit in edits:
        old = kinds[0].get(edit.place_before) if edit.before else None
        new = kinds[1].get(edit.place_after) if edit.after else None
        if (old == "negation") != (new == "negation"):
            found["negation"] += 1
        elif any(kind is not None and kind != "negation" for kind in (old, new)):
            found["protected"] += edit.before.casefold() != edit.after.casefold()
    return found


def _surprise(pair: Pair, lost: Sequence[Token], won: Sequence[Token]) -> dict[str, float]:
    before, after = Text(pair.before), Text(pair.after)
    own, other = _by_word(before, lost), _by_word(after, won)
    # As the texts are written: casing and spelling are part of how likely they are.
    pairs = align_words(before.words, after.words)
    total = sum(token.log_probability for token in lost) - sum(token.log_probability for token in won)
    following = [0.0]
    for edit in tagged_edits(before.words, after.words, ["X"] * len(own), ["X"] * len(other), pairs):
        i = edit.place_before + bool(edit.before)
        j = edit.place_after + bool(edit.after)
        following.append(sum(own[i : i + _FOLLOWING]) - sum(other[j : j + _FOLLOWING]))
    return {
        "lm-text": total / max(1, len(before.words)),
        "lm-lost": math.log1p(max(0.0, total)),
        "lm-following": math.log1p(max(following)),
        "lm-level": -sum(token.log_probability for token in won) / max(1, len(won)),
    }


def _by_word(text: Text, tokens: Sequence[Token]) -> list[float]:
    """Log-probability of each word: of the tokens that are part of it."""
    sums = [0.0] * len(text.words)
    word = 0
    for token in tokens:
        while word < len(sums) and text.starts[word] + len(text.words[word]) <= token.start:
            word += 1
        if word < len(sums) and token.end > text.starts[word]:
            sums[word] += token.log_probability
    return sums
