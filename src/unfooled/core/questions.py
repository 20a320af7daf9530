"""What programs may ask of a victim's inside, or of one that writes, and the answers they get.

Questions are hashable and say everything that their answer depends on. Who answers them lives in `victims`;
an attack needs only what is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import TextValue
from unfooled.text import Text

Numbers: TypeAlias = NDArray[np.float32]
Counts: TypeAlias = NDArray[np.int64]

# loss: cross-entropy of the class; logit: its pre-softmax output; squared-logits: half the squared length of
# all logits, the importance of the FireBERT code.
Of: TypeAlias = Literal["loss", "logit", "squared-logits"]
# How the heads of a layer become one number.
Reduce: TypeAlias = Literal["mean-heads", "max-heads"]
# Whose attention: that of all tokens, averaged, or that of [CLS], the first one.
Query: TypeAlias = Literal["mean", "cls"]
# head: what the classifier's last layer reads; mean: the last hidden states averaged over all tokens.
Pool: TypeAlias = Literal["head", "mean"]
OWN = "victim"  # the dictionary of an oracle about words: the victim's own words
Span: TypeAlias = tuple[int, int]  # first character, and the one behind the last


class Marked(NamedTuple):
    """What a victim reads, and where in it the words stand that are asked about.

    Hashable, and everything that an answer depends on: an oracle takes it as (part of) an item. The spans are
    kept because an edited text may hold words that nobody would find again in its string ("f!lm", "so so").
    """

    value: TextValue
    field: int
    spans: tuple[Span, ...]

    @property
    def words(self) -> tuple[str, ...]:
        string = self.value if isinstance(self.value, str) else self.value[self.field]
        return tuple(string[start:end] for start, end in self.spans)


Readable: TypeAlias = Text | Marked | TextValue


def mark(text: Readable) -> Marked:
    """The words of a `Text`'s editable field; of a plain string; of the last field of a plain tuple."""
    if isinstance(text, Marked):
        return text
    if not isinstance(text, Text):
        text = Text(text if isinstance(text, str) else {str(i): part for i, part in enumerate(text)})
    starts = text.starts
    spans = tuple(zip(starts, map(add, starts, map(len, text.words)), strict=True))
    return Marked(text.value, text.field, spans)


def marked(text: Text, positions: Sequence[int]) -> Marked:
    """The text with only some of its words to ask about."""
    spans = tuple((text.starts[i], text.starts[i] + len(text.words[i])) for i in positions)
    return Marked(text.value, text.field, spans)


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """One vector per word, averaged over its pieces."""

    words: tuple[str, ...]
    pieces: Counts  # [words]
    vectors: Numbers  # [words, dim]

    @property
    def norms(self) -> NDArray[np.float64]:
        """Euclidean length of each word's vector."""
        # Squares of a sure model's gradients would vanish in float32.
        return np.asarray(np.linalg.norm(self.vectors.astype(np.float64), axis=-1))


class GradientItem(NamedTuple):
    """Gradient of the loss (or of what the oracle was made for) for this class; None: the predicted one."""

    text: Marked
    label: int | None = None


class Pull(NamedTuple):
    """Which words would move this class's output up, or down, the most, in place of one of those marked?"""

    text: Marked
    label: int
    up: bool
    most: int


class Projection(NamedTuple):
    """What the victim says of the text; which marked word is steepest; words for it, the best first.

    No words means that nothing there changes the output at all.
    """

    scores: NDArray[np.float64]
    steepest: int
    words: tuple[str, ...]


class Flip(NamedTuple):
    """Another word for one of those marked, by its place among them."""

    place: int
    word: str


class Along(NamedTuple):
    """Which of these words, in the place of the marked one, would follow the signs of the gradient?

    Each answer is the L1 distance between the signs of the step from word to word and those that move the
    class's output up, or down; None for a word that the victim does not read as one token.
    """

    text: Marked
    label: int
    up: bool
    words: tuple[str, ...]


class Mixture(NamedTuple):
    """What would the victim say of a blend of words in each marked place?

    `options` has the words that may stand in each place beside the one that does; `weights` one number more
    for each place: first that of the word itself, then those of its options.
    """

    text: Marked
    label: int
    options: tuple[tuple[str, ...], ...]
    weights: tuple[tuple[float, ...], ...]


class Mixed(NamedTuple):
    """How far the class's pre-softmax output lies above the highest other, and how that changes.

    `slopes` has one array per place: the derivative of the margin for each of its weights. With all weight on
    the words themselves it is HotFlip's estimate of what another word would change.
    """

    margin: float
    slopes: tuple[Numbers, ...]


class Asked(NamedTuple):
    """Write something for this text; with a keyword, also say how near that is to being written."""

    text: str
    keyword: str = ""


class Written(NamedTuple):
    """What was written, and the best log-probability of the keyword over the places of the output."""

    output: str
    nearness: float = 0.0


class Forced(NamedTuple):
    """How near is the keyword to being written, were the output for `text` to go along `along`?"""

    text: str
    along: str
    keyword: str


class Pulled(NamedTuple):
    """Which words, in the place of the characters `start` to `end`, would bring the keyword nearer?"""

    text: str
    start: int
    end: int
    along: str
    keyword: str
    most: int
