"""Fine Penn Treebank tags of the words of a text.

The tagger has learned from texts in which punctuation marks are tokens and clitics stand apart ("do n't",
"it 's"), so it is shown a text in that way; a word has the tag of its first piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from unfooled.batching import up_to
from unfooled.text import Text

_MARK = re.compile(r"\.{2,}|-{2,}|`{2}|'{2}|[^\s\w]|_+")
_CLITIC = re.compile(r"(?i)(n['’]t|['’](?:s|ll|re|ve|d|m))$")
_AT_ONCE = 1 << 18  # characters tagged side by side: the tagger holds a row of scores for each token
_WRITTEN = {"—": "--", "–": "--", "…": "...", "“": "``", "”": "''", "’": "'", "‘": "`"}


class PennTagger(Protocol):
    def tag_all(self, sentences: Sequence[Sequence[str]], /) -> list[list[str]]: ...


def tag_texts(texts: Sequence[Text], tagger: PennTagger) -> list[tuple[str, ...]]:
    """The Penn tag of each word, text by text. Equal texts are tagged once, long ones a few at a time."""
    keys = [(text.words, text.gaps) for text in texts]
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
    distinct = list(dict(zip(keys, texts, strict=True)).values())
    for block in up_to(_AT_ONCE, distinct, lambda text: len(text.string)):
        split = [penn_tokens(text) for text in block]
        tags = tagger.tag_all([tokens for tokens, _ in split])
        for text, found, (_, places) in zip(block, tags, split, strict=True):
            known[text.words, text.gaps] = tuple(found[place] for place in places)
    return [known[key] for key in keys]


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
