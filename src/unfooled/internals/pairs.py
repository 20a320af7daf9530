"""A text before and after the attack, word beside word.

Everything that compares the two sides goes through here. A word that was inserted or deleted has no partner
on the other side and takes no part in a comparison; a replaced word is compared with the one in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unfooled.core.questions import Marked, Span, mark
from unfooled.core.result import Result
from unfooled.core.victim import TextValue
from unfooled.errors import RunFileError
from unfooled.text import Edit, Text

# Attention of a base-sized BERT: 144 maps of four-byte numbers. A portion stays below about 250 MB.
_CELLS = 250_000_000 // (144 * 4)
_MOST = 64


@dataclass(frozen=True, slots=True)
class TextPair:
    """`origin[j]` is the place before the attack of the j-th word after it; -1 where it was inserted."""

    key: int
    before: Marked
    after: Marked
    origin: tuple[int, ...]
    edited: frozenset[int]  # places before the attack whose word was replaced

    @property
    def shared(self) -> list[tuple[int, int]]:
        """Places, before and after, of the words that both sides have."""
        return [(i, j) for j, i in enumerate(self.origin) if i >= 0]


def pair_of(result: Result) -> TextPair:
    """Both sides of a result, rebuilt from its texts and edits."""
    name, _ = result.fields[result.field]
    original = Text(dict(result.fields), edit=name)
    inserted: dict[int, list[Edit]] = defaultdict(list)
    changed: dict[int, Edit] = {}
    for edit in result.edits:
        if edit.kind == "insert":
            inserted[edit.position].append(edit)
        else:
            changed[edit.position] = edit
    spans: list[Span] = []
    origin: list[int] = []

    def place(start: int, word: str, came_from: int) -> None:
        end = start + len(word)
        if start < (spans[-1][1] if spans else 0) or result.perturbed[start:end] != word:
            raise RunFileError(
                f"example {result.key}: its edits do not fit its text", "attack again with --restart"
            )
        spans.append((start, end))
        origin.append(came_from)

    for i, word in enumerate((*original.words, "")):
        for edit in inserted[i]:
            place(edit.at, edit.after, -1)
        if i == len(original.words):
            break
        if i not in changed:
            # Gaps hold no letter, so the word is what comes next.
            place(result.perturbed.find(word, spans[-1][1] if spans else 0), word, i)
        elif changed[i].kind == "replace":
            place(changed[i].at, changed[i].after, i)
    parts = [content for _, content in result.fields]
    parts[result.field] = result.perturbed
    value: TextValue = parts[0] if len(parts) == 1 else tuple(parts)
    edited = frozenset(i for i, edit in changed.items() if edit.kind == "replace")
    return TextPair(
        result.key, mark(original), Marked(value, result.field, tuple(spans)), tuple(origin), edited
    )


def portions(pairs: Sequence[TextPair] | Iterator[TextPair], longest: int) -> Iterator[list[TextPair]]:
    """Lists of pairs whose attention maps fit into memory; `longest` is the most tokens a text can have."""
    waiting: list[TextPair] = []
    cells = 0
    for pair in pairs:
        size = sum(min(longest, _tokens(side.value)) ** 2 for side in (pair.before, pair.after))
        if waiting and (cells + size > _CELLS or len(waiting) == _MOST):
            yield waiting
            waiting, cells = [], 0
        waiting.append(pair)
        cells += size
    if waiting:
        yield waiting


def _tokens(value: TextValue) -> int:
    """A generous guess: three characters per token, and a few special ones."""
    return (len(value) if isinstance(value, str) else sum(map(len, value))) // 3 + 8
