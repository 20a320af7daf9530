"""Fine Penn Treebank tags of the words of a text.

The tagger has learned from texts in which punctuation marks are tokens and clitics stand apart ("do n't",
"it 's"), so it is shown a text in that way; a word has the tag of its first piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from unfooled.text import Text

_MARK = re.compile(r"\.{2,}|-{2,}|`{2}|'{2}|[^\s\w]|_+")
_CLITIC = re.compile(r"(?i)(n['’]t|['’](?:s|ll|re|ve|d|m))$")
_WRITTEN = {"—": "--", "–": "--", "…": "...", "“": "``", "”": "''", "’": "'", "‘": "`"}


class PennTagger(Protocol):
    def tag_all(self, sentences: Sequence[Sequence[str]], /) -> list[list[str]]: ...


def tag_texts(texts: Sequence[Text], tagger: PennTagger) -> list[tuple[str, ...]]:
    """The Penn tag of each word, text by text."""
    split = [penn_tokens(text) for text in texts]
    tags = tagger.tag_all([tokens for tokens, _ in split])
    return [tuple(found[place] for place in places) for found, (_, places) in zip(tags, split, strict=True)]


def penn_tokens(text: Text) -> tuple[list[str], list[int]]:
    """The tokens as the tagger knows them, and which of them each word of the text begins."""
    tokens: list[str] = []
    places: list[int] = []
    for gap, word in zip(text.gaps, text.words, strict=False):
        tokens += _marks(gap)
        places.append(len(tokens))
        tokens += pieces(word)
    return tokens + _marks(text.gaps[-1]), places


def pieces(word: str) -> list[str]:
    """A word and its clitic: don't → do, n't."""
    clitic = _CLITIC.search(word)
    if clitic is None or clitic.start() == 0:
        return [word]
    return [word[: clitic.start()], clitic[0].replace("’", "'")]


def _marks(gap: str) -> list[str]:
    return [_WRITTEN.get(mark, mark) for mark in _MARK.findall(gap)]
