"""What is measured of an original and its altered text, as numbers that the judge weighs.

Texts are measured as they are seen: characters without ink are left out, and a word that looks like the one
it replaced is that one (`pictures`). What tells of fluency is taken per word or per edit, so that a long text
with many small edits is not worse than a short one with few. What tells of the label is counted: one `not`
is enough.

The name of a measure stands for its definition. Runs keep measures by name, so one that is defined anew
gets a new name.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

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
from unfooled.metrics.validity.pictures import Unlike, as_seen, without_invisible
from unfooled.metrics.validity.surprise import Tokens, log_frequency, measure_surprise, texts_to_read
from unfooled.resources.encoders import Vector
from unfooled.resources.english import Speller
from unfooled.text import Text

Said = TypeVar("Said")
Encode: TypeAlias = Callable[[Sequence[str]], Sequence[Vector]]

ENCODERS = ("potion", "minilm")
LANGUAGE_MODEL = "smollm2"
WORD_VECTORS = "counter-fitted"
_MOST = 3.0  # mistakes that are counted; more are as bad
_SAME, _ALIKE = ("same", "synonym", "similar"), 0.5  # what WordNet calls alike is not further apart
_ALONE = 0.4  # in place of a cosine, for a word that was put in or taken out: neither kept nor contradicted
_CLEAR_COSINE = 0.15  # from here on a word has a polarity
# Words that can come and go without telling anything.
_LIGHT = frozenset(
    ("a", "an", "the", "of", "to", "in", "on", "at", "and", "or", "for", "with", "by", "from", "as", "so")
    + ("is", "are", "was", "were", "be", "been", "it", "its", "it's", "this", "that", "these", "those", "all")
    + ("i", "you", "we", "he", "she", "they", "his", "her", "their", "my", "your", "our")
)

# What praise and blame sound like as texts, for the encoders.
_PRAISE = ("it is great", "I loved it", "it works well", "I can only recommend it") + (
    "a joy from beginning to end",
)
_BLAME = ("it is terrible", "I hated it", "it does not work", "I cannot recommend it") + (
    "a pain from beginning to end",
)


@dataclass(frozen=True, slots=True)
class Feature:
    """`sign` 1: the more of it, the less valid; -1: the more valid."""

    name: str
    title: str
    sign: Literal[1, -1]
    needs: Literal["", "torch"] = ""  # what only the full judge has: the language model, the larger encoder


FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("altered", "1 where any word is edited, else 0", 1),
        Feature("edited", "share of the words edited", 1),
        Feature("form", "share of the words with another form: number, tense, degree, part of speech", 1),
        Feature("form-per-edit", "share of the replaced words that changed their form", 1),
        Feature("agreement", "new mistakes of agreement: a or an, number, person", 1),
        Feature("misspelt", "share of the edits that made a non-word, each as far as it looks another", 1),
        Feature("two-of-a-kind", "share of the replaced words that became another of their kind", 1),
        Feature("rarer", "how much rarer the words became, per word of the text, by log frequency", 1),
        Feature(
            "meaning-kept",
            "mean cosine of the replaced words with what they became; words put in or taken out count 0.4",
            -1,
        ),
        Feature("contradictions", "how many edits are opposites or touch a negation, as log(1 + x)", 1),
        Feature("polarity-moved", "greatest change of polarity by one edit", 1),
        Feature("protected", "share of the edits that touch a name, number, link, handle or hashtag", 1),
        Feature("praise-potion", "how far the text moves between praise and blame, by the encoder potion", 1),
        Feature("praise-minilm", "the same by the encoder MiniLM", 1, "torch"),
        Feature("lm-lost", "log-probability lost by the whole text, as log(1 + x)", 1, "torch"),
        Feature("lm-lost-per-word", "log-probability lost per word", 1, "torch"),
        Feature("lm-lost-in-context", "the same, less what the rarer words would lose anywhere", 1, "torch"),
        Feature(
            "lm-behind",
            "greatest log-probability lost in the two words behind an edit, as log(1 + x)",
            1,
            "torch",
        ),
        Feature("lm-per-word", "surprise per word of the altered text", 1, "torch"),
        Feature("lm-misfit", "how much less likely its words are where they stand than anywhere", 1, "torch"),
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
    unlike: Unlike | None = None  # how different two words look; None: nobody draws them

    def measure(self, pairs: Sequence[Pair]) -> list[Row]:
        """The measures of each pair by name."""
        seen = [
            Pair(without_invisible(before), as_seen(before, after, self.unlike)) for before, after in pairs
        ]
        rows: list[dict[str, float]] = [self._words(pair) for pair in seen]
        for name, encode in self.encoders.items():
            axis = self._axis(name)
            for row, (before, after) in zip(rows, _both(encode, seen), strict=True):
                row[f"praise-{name}"] = abs(float((after - before) @ axis))
        if self.tokens is not None:
            read = [texts_to_read(*pair) for pair in seen]
            said = _both(self.tokens, [Pair(each.own, each.new) for each in read])
            for row, text, tokens in zip(rows, read, said, strict=True):
                row |= measure_surprise(text, *tokens, self.speller)
        return [{name: round(value, 6) for name, value in row.items()} for row in rows]

    def _axis(self, name: str) -> Vector:
        """From blame to praise, as the encoder has it."""
        said = np.array(self.encoders[name]((*_PRAISE, *_BLAME)), dtype=np.float64)
        axis = said[: len(_PRAISE)].mean(axis=0) - said[len(_PRAISE) :].mean(axis=0)
        return np.asarray(axis / max(float(np.linalg.norm(axis)), 1e-9), dtype=np.float32)

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
            "misspelt": sum(map(self._misspelt, edits)) / all_edits,
            "two-of-a-kind": relations.count("co-hyponym") / all_replaced,
            "rarer": sum(map(self._rarer, replaced)) / words,
            "meaning-kept": self._meaning_kept(edits, replaced, relations),
            "contradictions": math.log1p(relations.count("antonym") + touched["negation"]),
            "polarity-moved": max(map(self._polarity_moved, edits), default=0.0),
            "protected": min(1.0, touched["protected"] / all_edits),
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

    def _meaning_kept(
        self, edits: Sequence[WordEdit], replaced: Sequence[WordEdit], relations: Sequence[str]
    ) -> float:
        kept = [
            max(self.vectors.cosine(edit.before, edit.after), _ALIKE if relation in _SAME else -1.0)
            for edit, relation in zip(replaced, relations, strict=True)
        ]
        kept += [
            _ALONE
            for edit in edits
            if edit.kind != "replace" and (edit.before or edit.after).lower() not in _LIGHT
        ]
        return sum(kept) / len(kept) if kept else 1.0

    def _rarer(self, edit: WordEdit) -> float:
        return max(0.0, log_frequency(self.speller, edit.before) - log_frequency(self.speller, edit.after))

    def _misspelt(self, edit: WordEdit) -> float:
        """Whether a word was made that nobody knows, out of one that is known; less where it looks alike."""
        if not edit.after or (edit.before and not self._known(edit.before)):
            return 0.0
        only_marks = edit.after != edit.before and _bare(edit.after) == edit.before  # façile, but not café
        if self._known(edit.after) and not only_marks:
            return 0.0
        return 1.0 if self.unlike is None else self.unlike(edit.before, edit.after)

    def _known(self, word: str) -> bool:
        stem = _bare(word).lower().removesuffix("'s")
        if any(char.isalpha() and not char.isascii() for char in stem):
            return False
        if not stem.isalpha():
            return not (any(map(str.isdigit, stem)) and any(map(str.isalpha, stem)))  # w0rd, but not 1990
        return stem in self.vectors.index or self.speller.knows(stem) or self.speller.knows_parts(stem)

    def _polarity_moved(self, edit: WordEdit) -> float:
        return abs(self._clear_polarity(edit.after) - self._clear_polarity(edit.before))

    def _clear_polarity(self, word: str) -> float:
        value = self.vectors.polarity_of(word)
        return value if abs(value) >= _CLEAR_COSINE else 0.0


def _bare(word: str) -> str:
    """Without marks on its letters."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word).replace("’", "'")
    return "".join(char for char in letters if not unicodedata.combining(char))


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
