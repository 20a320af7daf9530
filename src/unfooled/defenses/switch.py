"""SWITCH: other ways to say a text, by swapping the words that a classifier looks at most.

Mein, Hartman, Morris: *FireBERT: Hardening BERT Classifiers Against Adversarial Attack*, 2020,
arXiv:2008.04203, section 2.1.1 ("Substituting Words In Text Classification Hardening").

    1. Order the words by the length of the gradient of a frozen, tuned classifier.
    2. Drop stop words and words without neighbours; keep the first `words`.
    3. Each gets the nearest `candidates` of its 100 counter-fitted neighbours with the same part of speech.
    4. Draw `alternatives` x `multiplier` texts in which each of these words is a random candidate.
    5. Leave out those under a sentence similarity (filter), or sort by it (rank); keep `alternatives`.

The draws follow from the text itself and a seed, never from its place in a file or a batch: the alternatives
of a text belong to that text wherever it is met. Of a pair only one field is edited, the last by default.

Differences from the authors' code
    - Importance is the gradient of the loss for the predicted class. Theirs, of half the squared logits, is
      `importance="squared-logits"`.
    - `candidates` and `pos` do what they say; there both were ignored.
    - Casing, spacing and punctuation survive; there the text comes out in lower case without full stops.
    - Draws are distinct, so that one likely sentence does not fill all places. Where there are fewer
      different texts than `alternatives`, fewer come back. A word whose candidates all fail makes room for
      the next one.
    - The encoder is MiniLM by default, not the Universal Sentence Encoder: hardly any text falls below the
      published threshold of 0 there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from unfooled.core.program import Program, ask
from unfooled.core.questions import GradientItem, WordVectors, mark
from unfooled.core.victim import TextValue
from unfooled.errors import UserError
from unfooled.stopwords import STOPWORDS
from unfooled.text import Text, match_case

Similarity = Literal["none", "rank", "filter"]
Importance = Literal["loss", "squared-logits"]
Swaps: TypeAlias = tuple[int, ...]  # the number of a candidate for every position of a plan

_CONTEXT = 4  # words on each side that the tagger sees, as in the attacks
_ENUMERATED = 4096  # up to so many different texts, the draws are a random order of all of them


class SwapOptions(NamedTuple):
    """What may be swapped in one text: positions, the most important first, and what may stand there."""

    positions: tuple[int, ...]
    options: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Switch:
    """The settings. The frozen classifier comes when texts are switched (see `switching.py`)."""

    words: int = 3  # to perturb
    candidates: int = 10  # per word
    pos: bool = True  # candidates have the word's part of speech
    similarity: Similarity = "filter"
    threshold: float = 0.0  # least cosine of the encoder, for `filter`
    multiplier: int = 12  # draws per alternative, for `rank` and `filter`
    alternatives: int = 4  # at most
    importance: Importance = "loss"
    stopwords: str = "textfooler"  # or `english`, or `none`
    neighbours: int = 100  # looked at per word
    min_cosine: float = -1.0  # of a neighbour; the paper has no limit
    table: str = "counter-fitted"
    tagger: str = "perceptron-tagger"
    encoder: str = "minilm"

    def __post_init__(self) -> None:
        for name in ("words", "candidates", "multiplier", "alternatives", "neighbours"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)} makes no sense", f"{name} is at least 1")
        for name, choices in (("similarity", get_args(Similarity)), ("importance", get_args(Importance))):
            if getattr(self, name) not in choices:
                raise UserError(f"{name}={getattr(self, name)} is not known", f"use {', '.join(choices)}")
        for name in ("threshold", "min_cosine"):
            if not -1.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name}={getattr(self, name)} is no cosine", "use a number from -1 to 1")
        require_stopwords(self.stopwords)

    @property
    def asks(self) -> tuple[str, ...]:
        """The oracles, the cheap ones first: the models then see the questions of every text at once."""
        names = [f"neighbours:{self.table}"]
        names += [f"tag:{self.tagger}"] if self.pos else []
        names += [f"encode:{self.encoder}"] if self.similarity != "none" else []
        return (*names, f"gradients:{self.importance}")

    # -- programs ----------------------------------------------------------------------------------

    def plan(self, text: Text) -> Program[SwapOptions]:
        """Steps 1 to 3: nothing of them is random, so one plan serves any number of draws."""
        if not text.words:
            return SwapOptions((), ())
        (slopes,) = yield from ask(f"gradients:{self.importance}", [GradientItem(mark(text))])
        waiting = important_words(slopes, self.stopwords)
        chosen: list[tuple[int, tuple[str, ...]]] = []
        while waiting and len(chosen) < self.words:
            room = self.words - len(chosen)
            batch, waiting = waiting[:room], waiting[room:]
            found = yield from self._candidates(text, batch)
            chosen += [(i, options) for i, options in zip(batch, found, strict=True) if options]
        return SwapOptions(tuple(i for i, _ in chosen), tuple(options for _, options in chosen))

    def draw(self, text: Text, plan: SwapOptions, seed: int) -> Program[list[Swaps]]:
        """Steps 4 and 5: the choices that stay, the best first. `switched` makes texts of them."""
        if not plan.positions:
            return []
        more = 1 if self.similarity == "none" else self.multiplier
        choices = draw_choices(plan, self.alternatives * more, text_rng(text.value, text.field, seed))
        if self.similarity == "rank":
            values = yield from self._similarities(text, plan, choices)
            order = sorted(range(len(choices)), key=lambda i: -values[i])
            choices = [choices[i] for i in order]
        elif self.similarity == "filter":
            # In portions: encoding stops as soon as enough have passed, with the same outcome.
            passed: list[Swaps] = []
            while choices and len(passed) < self.alternatives:
                room = self.alternatives - len(passed)
                batch, choices = choices[:room], choices[room:]
                values = yield from self._similarities(text, plan, batch)
                passed += [
                    swaps for swaps, value in zip(batch, values, strict=True) if value >= self.threshold
                ]
            choices = passed
        return choices[: self.alternatives]

    def _candidates(self, text: Text, positions: Sequence[int]) -> Program[list[tuple[str, ...]]]:
        """For each position its candidates, the nearest first."""
        asked = [(text.words[i].lower(), self.neighbours, self.min_cosine) for i in positions]
        near = yield from ask(f"neighbours:{self.table}", asked)
        options = [_in_case(words, text.words[i]) for i, words in zip(positions, near, strict=True)]
        if self.pos:
            places = [n for n, option in enumerate(options) if option]
            items = [(*_context(text, positions[n]), options[n]) for n in places]
            answers = yield from ask(f"tag:{self.tagger}", items)
            for n, (own, *tags) in zip(places, answers, strict=True):
                options[n] = tuple(option for option, tag in zip(options[n], tags, strict=True) if tag == own)
        return [option[: self.candidates] for option in options]

    def _similarities(self, text: Text, plan: SwapOptions, choices: Sequence[Swaps]) -> Program[list[float]]:
        strings = [switched(text, plan, choice) for choice in choices]
        vectors = np.array((yield from ask(f"encode:{self.encoder}", [text.string, *strings])))
        rounded: list[float] = np.round((vectors[1:] @ vectors[0]).astype(np.float64), 6).tolist()
        return rounded


def as_text(value: TextValue, field: int = -1) -> Text:
    """What a victim reads as a `Text` whose field number `field` may be edited."""
    if isinstance(value, str):
        return Text(value)
    if not -len(value) <= field < len(value):
        raise UserError(f"there is no field {field} in a text of {len(value)} fields", "field=-1 is the last")
    return Text({str(i): part for i, part in enumerate(value)}, edit=str(field % len(value)))


def with_string(text: Text, string: str) -> TextValue:
    """What a victim reads if the editable field read `string`."""
    if len(text.fields) == 1:
        return string
    return tuple(string if i == text.field else content for i, (_, content) in enumerate(text.fields))


def important_words(slopes: WordVectors, stopwords: str) -> list[int]:
    """Positions by the length of their gradient; equal ones in the order of the text.

    Stop words are left out, and words that the model does not read.
    """
    listed = STOPWORDS[stopwords]
    kept = [
        i
        for i, word in enumerate(slopes.words)
        if slopes.pieces[i] and word.lower().replace("’", "'") not in listed
    ]
    norms = slopes.norms
    return sorted(kept, key=lambda i: -float(norms[i]))


def require_stopwords(name: str) -> None:
    if name not in STOPWORDS:
        raise UserError(f"stopwords={name} is not known", f"use {', '.join(STOPWORDS)}")


def text_rng(value: TextValue, field: int, seed: int) -> np.random.Generator:
    """Random numbers that belong to a text: the same wherever and whenever it is met."""
    digest = hashlib.blake2b(digest_size=16)
    parts = (value,) if isinstance(value, str) else value
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return np.random.default_rng([seed, field % len(parts), int.from_bytes(digest.digest(), "little")])


def draw_choices(plan: SwapOptions, count: int, rng: np.random.Generator) -> list[Swaps]:
    """Up to `count` different choices."""
    sizes = [len(options) for options in plan.options]
    total = math.prod(sizes)
    if total <= max(count, _ENUMERATED):
        picked = np.stack(np.unravel_index(rng.permutation(total)[:count], sizes), axis=1)
    else:
        picked = rng.integers(sizes, size=(count, len(sizes)))
    return list(dict.fromkeys(map(tuple, picked.tolist())))


def switched(text: Text, plan: SwapOptions, choice: Swaps) -> str:
    """The editable field with the chosen candidates in place; all else as it was."""
    parts: list[str] = []
    end = 0
    for position, options, number in sorted(zip(plan.positions, plan.options, choice, strict=True)):
        start = text.starts[position]
        parts += [text.string[end:start], options[number]]
        end = start + len(text.words[position])
    return "".join([*parts, text.string[end:]])


def _in_case(near: Sequence[str], word: str) -> tuple[str, ...]:
    """Neighbours in the casing of the word they replace, without the word itself."""
    return tuple(
        option for option in dict.fromkeys(match_case(other, word) for other in near) if option != word
    )


def _context(text: Text, index: int) -> tuple[tuple[str, ...], int]:
    first = max(0, index - _CONTEXT)
    return text.words[first : index + _CONTEXT + 1], index - first
