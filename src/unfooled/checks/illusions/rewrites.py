"""Rewritten texts that say the same: what was learned by heart is not found again, what was understood is."""

from __future__ import annotations

import re
from itertools import cycle, islice

# Both ways; the first that fits is used.
_SAME = (
    ("don't", "do not"),
    ("doesn't", "does not"),
    ("didn't", "did not"),
    ("isn't", "is not"),
    ("wasn't", "was not"),
    ("can't", "cannot"),
    ("it's", "it is"),
    ("that's", "that is"),
    ("there's", "there is"),
    ("i'm", "i am"),
    ("we're", "we are"),
    ("although", "though"),
    ("until", "till"),
    ("upon", "on"),
    ("whilst", "while"),
    ("such as", "like"),
    ("and also", "and"),
)
# Sentences that belong to no class. About as many words are added as the text has.
_NEUTRAL = (
    "This was written down on a Tuesday.",
    "The page has a number at the bottom.",
    "It was read at a table by the window.",
    "Somebody copied it from a list.",
    "There were two more lines on the sheet.",
    "The clock in the hall said ten past four.",
    "A pencil lay beside the paper.",
    "The next entry follows after this one.",
)
_MOST_ADDED = 120  # words


def lightly(text: str) -> str:
    """Another casing, one contraction or small word written in its other form, another end."""
    changed = text
    for short, long in _SAME:
        for old, new in ((short, long), (long, short)):
            changed = re.sub(rf"\b{re.escape(old)}\b", new, text, count=1, flags=re.IGNORECASE)
            if changed != text:
                break
        if changed != text:
            break
    cased = changed.lower() if text != text.lower() else changed[:1].upper() + changed[1:]
    return cased.rstrip(" .") if cased.rstrip().endswith(".") else f"{cased.rstrip()} ."


def padded(text: str) -> str:
    """Between neutral sentences, so that less than half of what is read is the text itself."""
    wanted = min(_MOST_ADDED, max(16, len(text.split())))
    added: list[str] = []
    for sentence in islice(cycle(_NEUTRAL), _MOST_ADDED):
        if sum(len(sentence.split()) for sentence in added) >= wanted:
            break
        added.append(sentence)
    middle = (len(added) + 1) // 2
    return " ".join([*added[:middle], text, *added[middle:]])
