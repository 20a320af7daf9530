"""Cleaning texts before they are attacked, so that it can be undone when they are shown.

    cleaned = clean("@united sooo late!! http://t.co/x", "tweets")
    cleaned.text                 # "so late!!"
    cleaned.put_back(()) == cleaned.original
    cleaned.put_back([(3, 7, "slow")])    # "@united sooo slow!! http://t.co/x"

Each step is a small function from a text to replacements. Every character of the cleaned text remembers the
stretch of the original that it came from, whatever number of steps it went through.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

from unfooled.data.contractions import CONTRACTIONS, SHORT_FORMS
from unfooled.errors import DataError
from unfooled.plugins import unknown_name
from unfooled.resources.english import Speller, open_speller
from unfooled.text import match_case

VERSION = 1  # raised when the same step may give another text; part of a data set's fingerprint

Span: TypeAlias = tuple[int, int]
Edit: TypeAlias = tuple[int, int, str]  # from, up to (not included), what comes there
Step: TypeAlias = Callable[[str], Iterator[Edit]]


class Change(NamedTuple):
    """`before` of the original became `after`; `start` counts in the original, `at` in the cleaned text."""

    start: int
    at: int
    before: str
    after: str


@dataclass(frozen=True)
class Cleaned:
    """A text, what became of it, and for each character of that the stretch of the original behind it."""

    original: str
    text: str
    spans: tuple[Span, ...]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What differs, in reading order: what was left out, and what became something else."""
        found: list[Change] = []
        done = 0
        for first, last in self._groups():
            start, stop = self.spans[first][0], max(end for _, end in self.spans[first:last])
            if start > done:
                found.append(Change(done, first, self.original[done:start], ""))
            before, after = self.original[start:stop], self.text[first:last]
            if before != after:
                found.append(Change(start, first, before, after))
            done = stop
        if done < len(self.original):
            found.append(Change(done, len(self.text), self.original[done:], ""))
        return tuple(found)

    def _groups(self) -> Iterator[Span]:
        """Runs of characters that came from the same stretch of the original."""
        first, end = 0, 0
        for at, (start, stop) in enumerate(self.spans):
            if at > first and start >= end:
                yield first, at
                first, end = at, 0
            end = max(end, stop)
        if self.spans:
            yield first, len(self.spans)

    def put_back(self, edits: Sequence[Edit]) -> str:
        """The original with edits of the cleaned text made in it: what somebody would have had to write.

        A stretch that cleaning changed comes back as it was, unless an edit touches it: then it stays clean.
        """
        letters = [*self.text, ""]
        inserted: dict[int, str] = {}  # before the character at that place
        touched: set[int] = set()
        for start, stop, new in edits:
            if start == stop:
                inserted[start] = inserted.get(start, "") + new
            else:
                letters[start:stop] = [new, *[""] * (stop - start - 1)]
                touched.update(range(start, stop))

        def shown(first: int, last: int) -> list[str]:
            return [inserted.get(at, "") + letters[at] for at in range(first, last)]

        parts: list[str] = []
        done = 0
        for change in self.changes:
            end = change.at + len(change.after)
            parts += shown(done, change.at)
            inside = range(change.at, end)
            if touched.intersection(inside) or inserted.keys() & set(inside[1:]):
                parts += shown(change.at, end)
            elif change.after:
                parts += [inserted.get(change.at, ""), change.before]
            else:
                parts.append(change.before)
            done = end
        return "".join([*parts, *shown(done, len(letters))])


def clean(text: str, steps: str | Sequence[str]) -> Cleaned:
    """`text` after the named steps, such as "tweets" or "handles,links"."""
    current, spans = text, [(i, i + 1) for i in range(len(text))]
    for step in (STEPS[name] for name in steps_named(steps)):
        made: list[str] = []
        kept: list[Span] = []
        done = 0
        for start, stop, new in step(current):
            made += [current[done:start], new]
            kept += spans[done:start]
            first = spans[start][0] if start < len(spans) else len(text)
            last = max((end for _, end in spans[start:stop]), default=first)
            kept += [(first, last)] * len(new)
            done = stop
        current, spans = "".join([*made, current[done:]]), kept + spans[done:]
    return Cleaned(text, current, tuple(spans))


def steps_named(steps: str | Sequence[str]) -> tuple[str, ...]:
    """The steps that a name or a list of names stands for, in the order in which they are made."""
    names = [step.strip() for step in steps.split(",")] if isinstance(steps, str) else list(steps)
    wanted: set[str] = set()
    for name in names:
        if name not in GROUPS and name not in STEPS:
            raise unknown_name("cleaning step", name, [*GROUPS, *STEPS])
        wanted.update(GROUPS.get(name, (name,)))
    return tuple(name for name in STEPS if name in wanted)


def require_steps(steps: str | Sequence[str]) -> tuple[str, ...]:
    """The same, after a look whether all that they need is here."""
    names = steps_named(steps)
    if not names:
        raise DataError("no cleaning step is named", f"choose from {', '.join([*GROUPS, *STEPS])}")
    if "spelling" in names or "elongations" in names:
        open_speller()
    return names


# -- steps -------------------------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8}\d?);", re.I)
_LINK = re.compile(r"(?:https?://|www\.)\S+|\bpic\.twitter\.com/\S+", re.I)
_HANDLE = re.compile(r"(?<![\w@])(?:RT\s+)?@\w+:?")
_HASHTAG = re.compile(r"(?<!\w)#(\w+)")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_TOKEN = re.compile(r"(?<![\w@#])\w+(?:['’]\w+)*(?!\w)")
_LONG = re.compile(r"([^\W\d_])\1{2,}", re.I)
_SPACE = re.compile(r"\s+")
_BREAK = re.compile(r"<br\s*/?>", re.I)
_MARK = re.compile(r"[^A-Za-z0-9 ]+")
_WORD = re.compile(r"\S+")
_MOST_WORDS = 250


def _entities(text: str) -> Iterator[Edit]:
    for found in _ENTITY.finditer(text):
        if (meant := html.unescape(found.group())) != found.group():
            yield (*found.span(), meant)


def _dropped(pattern: re.Pattern[str]) -> Step:
    def step(text: str) -> Iterator[Edit]:
        return ((*found.span(), "") for found in pattern.finditer(text))

    return step


def _breaks(text: str) -> Iterator[Edit]:
    return ((*found.span(), " ") for found in _BREAK.finditer(text))


def _hashtags(text: str) -> Iterator[Edit]:
    """#NeverAgain is "Never Again"; what has no humps cannot be told apart."""
    for found in _HASHTAG.finditer(text):
        yield found.start(), found.start() + 1, ""
        if found[1].isupper():
            continue
        yield from ((found.start(1) + hump.start(),) * 2 + (" ",) for hump in _HUMP.finditer(found[1]))


def _elongations(text: str) -> Iterator[Edit]:
    """sooo is "so", coool is "cool": of the shorter spellings that are words the commonest."""
    for found in _LETTERS.finditer(text):
        if _LONG.search(word := found.group()) and (short := shortened(word, open_speller())) != word:
            yield (*found.span(), short)


def shortened(word: str, speller: Speller) -> str:
    spellings = [word]
    for run in dict.fromkeys(found.group() for found in _LONG.finditer(word)):
        spellings = [spelling.replace(run, run[:size]) for spelling in spellings for size in (1, 2)]
    known = [spelling for spelling in spellings if speller.knows(spelling)]
    return max(known, key=speller.count) if known else spellings[-1]


def _table(table: dict[str, str]) -> Step:
    def step(text: str) -> Iterator[Edit]:
        for found in _TOKEN.finditer(text):
            word = found.group()
            if meant := table.get(word.lower().replace("’", "'")):
                yield (*found.span(), match_case(meant, word) if not meant.startswith("I ") else meant)

    return step


def _spelling(text: str) -> Iterator[Edit]:
    """Lower-case words only: names, tickers and flight numbers are left alone."""
    speller = open_speller()
    for found in _TOKEN.finditer(text):
        word = found.group()
        if word.islower() and (meant := speller.correct(word)) != word:
            yield (*found.span(), meant)


def _spaces(text: str) -> Iterator[Edit]:
    """One space between words, none at the ends, none left before a full stop."""
    for found in _SPACE.finditer(text):
        ends = found.start() == 0 or found.end() == len(text)
        wanted = "" if ends or text[found.end()] in ".,!?;:" else " "
        if found.group() != wanted:
            yield (*found.span(), wanted)


def _first_words(text: str) -> Iterator[Edit]:
    """What comes after the 250th word is left out, as a model that reads no more would do."""
    words = list(islice(_WORD.finditer(text), _MOST_WORDS))
    if len(words) == _MOST_WORDS and words[-1].end() < len(text):
        yield words[-1].end(), len(text), ""


# In the order in which they are made: a link may hold an entity, a hashtag a word to mend.
STEPS: dict[str, Step] = {
    "line-breaks": _breaks,
    "marks": _dropped(_MARK),
    "entities": _entities,
    "links": _dropped(_LINK),
    "handles": _dropped(_HANDLE),
    "hashtags": _hashtags,
    "elongations": _elongations,
    "short-forms": _table(SHORT_FORMS),
    "contractions": _table(CONTRACTIONS),
    "spelling": _spelling,
    "spaces": _spaces,
    "first-250": _first_words,
}
GROUPS: dict[str, tuple[str, ...]] = {
    "tweets": tuple(name for name in STEPS if name not in ("line-breaks", "marks", "first-250")),
    "reviews": ("line-breaks", "marks", "spaces"),  # letters, digits and blanks are left
}
