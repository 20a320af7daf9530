"""How surprised a causal language model is by an altered text, by its words and by what follows an edit.

The altered text is compared with itself, its edits undone, so that spaces, casing and punctuation that
differ from the original's do not count: studies often show texts in another typesetting than the data has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from unfooled.language.edits import WordEdit, align, tagged_edits
from unfooled.language.typesetting import typeset
from unfooled.resources.english import Speller
from unfooled.resources.fluency import Token
from unfooled.text import Text

Tokens: TypeAlias = Callable[[Sequence[str]], list[list[Token]]]

# Stands before every text: without it the first words, which nothing announces, are most of the surprise.
OPENING = "Text: "
_FOLLOWING = 2  # words behind an edit whose surprise counts
_WORDS_COUNTED = 5e9  # about how many words the frequencies were counted in; moves every measure alike
_SPACES = re.compile(r"\s+")


class ToRead(NamedTuple):
    """What the model reads, and where the two texts differ."""

    own: str
    new: str
    edits: list[WordEdit]


def texts_to_read(before: str, after: str) -> ToRead:
    """The altered text as it is usually set, and the same with its edits undone."""
    new, own = Text(_natural(after)), Text(_natural(before))
    lower, new_lower = ([word.lower() for word in text.words] for text in (own, new))
    edits = tagged_edits(
        own.words, new.words, [""] * len(lower), [""] * len(new_lower), align(lower, new_lower)
    )
    return ToRead(OPENING + _undone(new, edits), OPENING + new.string, edits)


def _undone(text: Text, edits: Sequence[WordEdit]) -> str:
    old = {edit.place_after: edit.before for edit in edits if edit.after}
    gone: dict[int, str] = {}
    for edit in edits:
        if not edit.after:
            gone[edit.place_after] = f"{gone.get(edit.place_after, '')}{edit.before} "
    parts = [
        f"{gap}{gone.get(place, '')}{old.get(place, word)}"
        for place, (gap, word) in enumerate(zip(text.gaps, text.words, strict=False))
    ]
    ending = f"{text.gaps[-1]} {gone.get(len(text.words), '')}"
    return _SPACES.sub(" ", "".join(parts) + ending).strip()


def measure_surprise(
    text: ToRead, own_tokens: Sequence[Token], new_tokens: Sequence[Token], speller: Speller
) -> dict[str, float]:
    (own_words, own), (new_words, new) = _by_word(text.own, own_tokens), _by_word(text.new, new_tokens)
    total = _log_probability(own_tokens) - _log_probability(new_tokens)
    rarer = sum(
        log_frequency(speller, edit.before) - log_frequency(speller, edit.after)
        for edit in text.edits
        if edit.before and edit.after
    )
    behind = [0.0]
    for edit in text.edits:
        i, j = edit.place_before + bool(edit.before), edit.place_after + bool(edit.after)
        behind.append(sum(own[i : i + _FOLLOWING]) - sum(new[j : j + _FOLLOWING]))
    words = max(1, len(new_words))
    misfit = sum(log_frequency(speller, word) - value for word, value in zip(new_words, new, strict=True))
    return {
        "lm-lost": math.log1p(max(0.0, total)),
        "lm-lost-per-word": total / max(1, len(own_words)),
        "lm-lost-in-context": (total - rarer) / words,
        "lm-behind": math.log1p(max(behind)),
        "lm-per-word": -_log_probability(new_tokens) / words,
        "lm-misfit": misfit / words,
    }


def log_frequency(speller: Speller, word: str) -> float:
    return math.log((speller.count(word) + 1) / _WORDS_COUNTED)


def _natural(text: str) -> str:
    """As it is usually set: no space before a comma. Hyphens part words, as some writers leave them out."""
    return _SPACES.sub(" ", typeset(text).replace("-", " ")).strip()


def _log_probability(tokens: Sequence[Token]) -> float:
    return sum(token.log_probability for token in tokens if token.end > len(OPENING))


def _by_word(string: str, tokens: Sequence[Token]) -> tuple[tuple[str, ...], list[float]]:
    """Each word behind the opening, and the log-probability of the tokens that are part of it."""
    text = Text(string)
    first = next((place for place, start in enumerate(text.starts) if start >= len(OPENING)), len(text.words))
    sums = [0.0] * len(text.words)
    word = first
    for token in tokens:
        while word < len(sums) and text.starts[word] + len(text.words[word]) <= token.start:
            word += 1
        if word < len(sums) and token.end > text.starts[word]:
            sums[word] += token.log_probability
    return text.words[first:], sums[first:]
