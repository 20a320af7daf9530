"""Which words an altered text has in place of which, with their tags in both texts.

The two texts are aligned: what both have in the same order stays, and in between words are paired so that
as few as possible are new or gone, words of one part of speech or of like spelling with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

from unfooled.text import EditKind

Pair: TypeAlias = tuple[int | None, int | None]  # a word of the first text, a word of the second

_ALONE = 1.0  # what a word without a partner costs: as much as the worst pair
_LARGEST = 10_000  # cells of the table that pairs words; larger stretches are paired in order


class WordEdit(NamedTuple):
    """One word replaced, inserted or deleted. What is missing on one side is "" there.

    `place_before` and `place_after` count words; for a missing word, those before the place it would have.
    """

    kind: EditKind
    before: str
    after: str
    tag_before: str
    tag_after: str
    place_before: int
    place_after: int


def tagged_edits(
    before: Sequence[str],
    after: Sequence[str],
    tags_before: Sequence[str],
    tags_after: Sequence[str],
    pairs: Sequence[Pair],
) -> list[WordEdit]:
    """The edits that these pairs are; words that stay need not be among the pairs."""
    found: list[WordEdit] = []
    shift = 0  # how many words more the second text has so far
    for i, j in pairs:
        if i is not None and j is not None:
            edit = WordEdit("replace", before[i], after[j], tags_before[i], tags_after[j], i, j)
        elif j is not None:
            edit = WordEdit("insert", "", after[j], "", tags_after[j], j - shift, j)
            shift += 1
        elif i is not None:
            edit = WordEdit("delete", before[i], "", tags_before[i], "", i, i + shift)
            shift -= 1
        else:
            raise ValueError("a pair names at least one word")
        found.append(edit)
    return found


def align(
    before: Sequence[str],
    after: Sequence[str],
    tags_before: Sequence[str] = (),
    tags_after: Sequence[str] = (),
) -> list[Pair]:
    """The differing words of two lists, in reading order; None stands for a word that the other lacks."""
    left = list(zip(before, tags_before or [""] * len(before), strict=True))
    right = list(zip(after, tags_after or [""] * len(after), strict=True))
    pairs: list[Pair] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            pairs += [
                (None if own is None else i + own, None if other is None else j + other)
                for own, other in _paired(left[i:i_end], right[j:j_end])
            ]
    return pairs


def _paired(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> list[Pair]:
    """Fewest insertions and deletions; among equals the pairs that are most alike."""
    n, m = len(before), len(after)
    if n == m or n == 0 or m == 0 or n * m > _LARGEST:
        both: list[Pair] = [(i, i) for i in range(min(n, m))]
        gone: list[Pair] = [(i, None) for i in range(m, n)]
        new: list[Pair] = [(None, j) for j in range(n, m)]
        return both + gone + new
    unlike = [[_unlike(word, other) for other in after] for word in before]
    cost = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(n, -1, -1):
        for j in range(m, -1, -1):
            ways = [_ALONE + cost[i + 1][j]] if i < n else []
            ways += [_ALONE + cost[i][j + 1]] if j < m else []
            ways += [unlike[i][j] + cost[i + 1][j + 1]] if i < n and j < m else []
            cost[i][j] = min(ways, default=0.0)
    pairs: list[Pair] = []
    i = j = 0
    while i < n or j < m:
        if i < n and j < m and cost[i][j] == unlike[i][j] + cost[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif i < n and cost[i][j] == _ALONE + cost[i + 1][j]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return pairs


def _unlike(word: tuple[str, str], other: tuple[str, str]) -> float:
    """0 for the same word, up to 1; half of it is the part of speech, half the spelling."""
    spelling = SequenceMatcher(None, word[0].lower(), other[0].lower(), autojunk=False).ratio()
    return (word[1][:2] != other[1][:2]) / 2 + (1.0 - spelling) / 2
