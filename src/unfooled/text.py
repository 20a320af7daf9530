"""An immutable text that remembers where each of its words came from.

A text is words and the gaps between them; joined again they give back every byte of the input. An edit
returns a new `Text`. Which words changed, how many and what share of the original is computed here and
nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from itertools import accumulate, chain
from operator import ne
from typing import Literal, NamedTuple

# Letters and digits, with apostrophes, hyphens, underscores, asterisks and at signs inside a word.
# The same words as TextAttack finds, so that query counts and edit counts can be compared.
WORD = re.compile(r"[^\W_](?:[\w'’*@-]*[^\W_])?")
_WORDS_AND_GAPS = re.compile(f"({WORD.pattern})")  # splits into gap, word, gap, … in one call

EditKind = Literal["replace", "insert", "delete"]


class Edit(NamedTuple):
    """One difference from the original text.

    `position` counts original words (for an insertion: the original word it stands before); `at` is the
    character offset in the edited text; `step` says which edit it was, the first is 1: undone in falling
    order of their steps, edits lead back through every text on the way.
    """

    kind: EditKind
    position: int
    before: str
    after: str
    at: int
    step: int = 0  # unknown, in files of the first format


class _Step(NamedTuple):
    """The last edit of a text, linked to those before it; whole texts are not kept alive for it."""

    before: _Step | None
    kind: EditKind
    place: int


class Text:
    """Words, gaps and origins of the one field that may be edited, beside the fields that may not.

    Example:

        >>> text = unfooled.Text("A fine, fine film.").replace(1, "dull")
        >>> text.string, text.changes
        ('A dull, fine film.', 1)
    """

    __slots__ = (
        "_last_step",
        "_moved",
        "_starts",
        "field",
        "fields",
        "gaps",
        "origin",
        "root",
        "string",
        "words",
    )

    words: tuple[str, ...]
    gaps: tuple[str, ...]  # gaps[i] stands before words[i]; the last one ends the text
    origin: tuple[int, ...]  # index of the original word, or -1 for an inserted one
    string: str  # the editable field as it reads now
    fields: tuple[tuple[str, str], ...]  # every field's name and original content, in order
    field: int  # which of them may be edited
    root: Text  # the text before any edit
    _starts: list[int] | None
    _moved: tuple[list[int], int, int] | None  # the starts before a replacement, its place, its growth
    _last_step: _Step | None

    def __init__(self, content: str | Mapping[str, str], *, edit: str | None = None) -> None:
        """`content` is one text, or named fields such as premise and hypothesis.

        `edit` names the field that may be changed; the last field by default (the hypothesis of a pair).
        """
        if isinstance(content, str):
            content = {"text": content}
        names = list(content)
        if not names:
            raise ValueError("a text needs at least one field")
        if edit is not None and edit not in content:
            raise ValueError(f"no field {edit!r} to edit; the fields are {', '.join(names)}")
        self.fields = tuple(content.items())
        self.field = names.index(edit) if edit is not None else len(names) - 1
        self.string = self.fields[self.field][1]
        parts = _WORDS_AND_GAPS.split(self.string)
        self.words = tuple(parts[1::2])
        self.gaps = tuple(parts[::2])
        self.origin = tuple(range(len(self.words)))
        self.root = self
        self._starts = [*accumulate(map(len, parts))][:-1:2]
        self._moved = None
        self._last_step = None

    # -- what others see ---------------------------------------------------------------------------

    @property
    def value(self) -> str | tuple[str, ...]:
        """What a victim reads: the string, or one string per field."""
        if len(self.fields) == 1:
            return self.string
        return tuple(
            self.string if i == self.field else content for i, (_, content) in enumerate(self.fields)
        )

    @property
    def starts(self) -> list[int]:
        """Character offset of each word; computed once, when first needed."""
        if self._starts is None and self._moved is not None:
            before, index, growth = self._moved
            self._starts = before[: index + 1] + [start + growth for start in before[index + 1 :]]
            self._moved = None
        elif self._starts is None:
            parts = chain.from_iterable(zip(self.gaps, self.words, strict=False))
            self._starts = [*accumulate(map(len, parts))][::2]
        return self._starts

    def window(self, index: int, size: int | None, word: str | None = None) -> str:
        """The stretch of `size` words centred on `index`, shifted inwards at both ends; None: the whole text.

        With `word` as it would read if that stood at `index`, without the cost of a new text.
        """
        before, after = self.frame(index, size)
        return before + (self.words[index] if word is None else word) + after

    def frame(self, index: int, size: int | None) -> tuple[str, str]:
        """What stands before and after the word in its window; None takes the whole text as the window."""
        if size is None:
            begin, end = 0, len(self.string)
        else:
            first, last = self.bounds(index, size)
            begin, end = self.starts[first], self.starts[last] + len(self.words[last])
        at = self.starts[index]
        return self.string[begin:at], self.string[at + len(self.words[index]) : end]

    def bounds(self, index: int, size: int) -> tuple[int, int]:
        """The first and the last word of the window of `size` words around `index`; 0: of all words."""
        n = len(self.words)
        if n <= size or size == 0:
            return 0, n - 1
        first = min(max(0, index - size // 2), n - size)
        return first, first + size - 1

    def stretch(self, first: int, last: int) -> str:
        """The string from the first to the last of these words, both included."""
        return self.string[self.starts[first] : self.starts[last] + len(self.words[last])]

    # -- edits -------------------------------------------------------------------------------------

    def replace(self, index: int, word: str) -> Text:
        """With another word in that place."""
        start = self.starts[index]
        old = self.words[index]
        text = self._edited(
            self.words[:index] + (word,) + self.words[index + 1 :],
            self.gaps,
            self.origin,
            self.string[:start] + word + self.string[start + len(old) :],
            _Step(self._last_step, "replace", index),
        )
        text._moved = (self.starts, index, len(word) - len(old))
        return text

    def delete(self, index: int) -> Text:
        """Without the word and without one of the spaces around it."""
        before, after = self.gaps[index], self.gaps[index + 1]
        if index > 0 and before.endswith(" "):
            before = before[:-1]
        elif after.startswith(" "):
            after = after[1:]
        gaps = self.gaps[:index] + (before + after,) + self.gaps[index + 2 :]
        start = self.starts[index] - len(self.gaps[index])
        end = self.starts[index] + len(self.words[index]) + len(self.gaps[index + 1])
        return self._edited(
            self.words[:index] + self.words[index + 1 :],
            gaps,
            self.origin[:index] + self.origin[index + 1 :],
            self.string[:start] + before + after + self.string[end:],
            _Step(self._last_step, "delete", index),
        )

    def span(self, first: int, last: int) -> Text:
        """Only the words from `first` up to, not including, `last`, with the gaps between them."""
        starts = self.starts
        string = self.string[starts[first] : starts[last - 1] + len(self.words[last - 1])]
        gaps = ("", *self.gaps[first + 1 : last], "")
        return self._edited(self.words[first:last], gaps, self.origin[first:last], string, None)

    def insert(self, index: int, word: str, *, after: bool = False) -> Text:
        """Put `word` before the word at `index`; `index == len(words)` puts it after the last one.

        With `after` it follows the word before it at once, ahead of any comma that stands between.
        """
        n = len(self.words)
        if not 0 <= index <= n:
            raise IndexError(f"cannot insert at {index} in a text of {n} words")
        if n == 0:
            parts, at, new = (self.gaps[0], ""), len(self.gaps[0]), word
        elif index == n or (after and index):
            at = self.starts[index - 1] + len(self.words[index - 1])
            parts, new = (" ", self.gaps[index]), " " + word
        else:
            parts, at, new = (self.gaps[index], " "), self.starts[index], word + " "
        return self._edited(
            self.words[:index] + (word,) + self.words[index:],
            self.gaps[:index] + parts + self.gaps[index + 1 :],
            self.origin[:index] + (-1,) + self.origin[index:],
            self.string[:at] + new + self.string[at:],
            _Step(self._last_step, "insert", index),
        )

    def _edited(
        self,
        words: tuple[str, ...],
        gaps: tuple[str, ...],
        origin: tuple[int, ...],
        string: str,
        step: _Step | None,
    ) -> Text:
        text = object.__new__(Text)
        text.words = words
        text.gaps = gaps
        text.origin = origin
        text.string = string
        text.fields = self.fields
        text.field = self.field
        text.root = self.root
        text._starts = None
        text._moved = None
        text._last_step = step
        return text

    # -- differences from the original -------------------------------------------------------------

    def edits(self) -> list[Edit]:
        """Every difference from the original, in reading order."""
        original = self.root.words
        steps, gone = self._steps()
        if self.origin is self.root.origin:
            # Words were only replaced, which most attacks do: no alignment is needed.
            changed = [i for i, (new, old) in enumerate(zip(self.words, original, strict=True)) if new != old]
            return [Edit("replace", i, original[i], self.words[i], self.starts[i], steps[i]) for i in changed]
        found: list[Edit] = []
        expected = 0
        for word, came_from, at, step in zip(self.words, self.origin, self.starts, steps, strict=True):
            if came_from < 0:
                found.append(Edit("insert", expected, "", word, at, step))
                continue
            found += [
                Edit("delete", i, original[i], "", at, gone.get(i, 0)) for i in range(expected, came_from)
            ]
            if word != original[came_from]:
                found.append(Edit("replace", came_from, original[came_from], word, at, step))
            expected = came_from + 1
        end = len(self.string)
        left = range(expected, len(original))
        return found + [Edit("delete", i, original[i], "", end, gone.get(i, 0)) for i in left]

    def _steps(self) -> tuple[list[int], dict[int, int]]:
        """Which edit each word of this text comes from, 0 for none; the same of deleted original words."""
        taken: list[_Step] = []
        step = self._last_step
        while step is not None:
            taken.append(step)
            step = step.before
        steps, origin = [0] * len(self.root.words), list(self.root.origin)
        gone: dict[int, int] = {}
        for number, (_, kind, index) in enumerate(reversed(taken), 1):
            if kind == "replace":
                steps[index] = number
            elif kind == "insert":
                steps.insert(index, number)
                origin.insert(index, -1)
            else:
                gone[origin.pop(index)] = number
                del steps[index]
        if len(steps) != len(self.words):  # a span: what was cut off took no step
            return [0] * len(self.words), gone
        return steps, gone

    @property
    def changes(self) -> int:
        """How many words were replaced, inserted or deleted."""
        if self.origin is self.root.origin:
            return sum(map(ne, self.words, self.root.words))
        return len(self.edits())

    @property
    def perturbed(self) -> float:
        """Changes as a share of the original's words."""
        return self.changes / max(1, len(self.root.words))

    def __repr__(self) -> str:
        return f"Text({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.value == other.value and self.field == other.field

    def __hash__(self) -> int:
        key: Hashable = self.value
        return hash(key)


def match_case(word: str, like: str) -> str:
    """`word` in the casing of `like`: lower, UPPER or Capitalised; any other casing is left alone."""
    if like.islower():
        return word.lower()
    if like.isupper() and len(like) > 1:
        return word.upper()
    if like[:1].isupper() and (len(like) == 1 or like[1:].islower()):
        return word.capitalize()
    return word
