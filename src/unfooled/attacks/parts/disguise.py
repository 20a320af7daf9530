"""Words written in other characters: what a reader still reads, or hardly notices, and a program does not.

Each disguise is a pure function of a word that can be undone: invisible characters between the letters,
letters that look alike, letters stored backwards and shown forwards, other forms of the letters, accents,
leetspeak, spacing. Two hide the word altogether (`tags`, `selectors`): only a program can decode them.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from unfooled.attacks.parts.characters import asked_for, look_alikes_of
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.victim import require_choice
from unfooled.text import Text

# Between letters, by what Unicode calls each.
INVISIBLE: dict[str, str] = {
    "zero-width-space": "\u200b",
    "zero-width-non-joiner": "\u200c",
    "zero-width-joiner": "\u200d",
    "word-joiner": "\u2060",
    "no-break-space": "\ufeff",
    "soft-hyphen": "\u00ad",
}
ACUTE, STROKE = "\u0301", "\u0336"
# An isolate around the override: else the blank between two such words would belong to both, and these would
# be shown in the wrong order.
RIGHT_TO_LEFT, LEFT_TO_RIGHT, END = "\u2066\u202e", "\u2066\u202d", "\u202c\u2069"
LEET = str.maketrans("aeiostAEIOST", "431057431057")
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_MATHEMATICAL = {
    **{code: 0x1D400 + code - ord("A") for code in range(ord("A"), ord("Z") + 1)},
    **{code: 0x1D41A + code - ord("a") for code in range(ord("a"), ord("z") + 1)},
    **{code: 0x1D7CE + code - ord("0") for code in range(ord("0"), ord("9") + 1)},
}
_TAGS = 0xE0000
_RUN = re.compile(r"[^\W_]+")
CARRIER = "😀"  # what hidden characters stand behind


def clusters(word: str) -> list[str]:
    """Letters with the marks that belong to them."""
    found: list[str] = []
    for character in word:
        if found and unicodedata.category(character) in ("Mn", "Mc", "Me"):
            found[-1] += character
        else:
            found.append(character)
    return found


def backwards(word: str) -> str:
    """Each run of letters stored from its end to its beginning, and shown as before; Arabic ones, which join,
    stay."""
    return _RUN.sub(lambda run: _backwards(run.group()), word)


def _backwards(word: str) -> str:
    directions = {unicodedata.bidirectional(character) for character in word}
    if "AL" in directions or ("R" in directions and "L" in directions):
        return word
    override = LEFT_TO_RIGHT if "R" in directions else RIGHT_TO_LEFT
    return override + "".join(reversed(clusters(word))) + END


def in_tags(word: str) -> str:
    """As tag characters, which nothing draws; what is not ASCII stays."""
    return "".join(chr(_TAGS + ord(letter)) if " " <= letter <= "~" else letter for letter in word)


def in_selectors(word: str) -> str:
    """Each byte as a variation selector, which nothing draws behind a character that has no variants."""
    return "".join(chr(0xFE00 + byte if byte < 16 else 0xE0100 + byte - 16) for byte in word.encode())


def marked(mark: str) -> Callable[[str], str]:
    def mark_letters(word: str) -> str:
        return "".join(letter + mark if letter[0].isalpha() else letter for letter in clusters(word))

    return mark_letters


def between(character: str) -> Callable[[str], str]:
    """Between letters and digits alone: beside a hyphen it could forbid or allow a line to end."""
    return lambda word: _RUN.sub(lambda run: character.join(clusters(run.group())), word)


DISGUISES: dict[str, Callable[[str], str]] = {
    **{name: between(character) for name, character in INVISIBLE.items()},
    "backwards": backwards,
    "full-width": lambda word: word.translate(_FULL_WIDTH),
    "mathematical": lambda word: word.translate(_MATHEMATICAL),
    "acute": marked(ACUTE),
    "stroke": marked(STROKE),
    "leet": lambda word: word.translate(LEET),
    "spaced": between(" "),
    "dotted": between("."),
    "tags": in_tags,
    "selectors": in_selectors,
}
TABLES = ("intentional", "confusables")
HIDDEN = ("tags", "selectors")  # neither a reader nor a victim reads them
Kind: TypeAlias = Literal[
    "zero-width-space", "zero-width-non-joiner", "zero-width-joiner", "word-joiner", "no-break-space",
    "soft-hyphen", "backwards", "full-width", "mathematical", "acute", "stroke", "leet", "spaced", "dotted",
    "tags", "selectors", "intentional", "confusables",
]  # fmt: skip


@dataclass(frozen=True)
class Disguise:
    """The word in other characters: the one candidate of a word that this changes."""

    spells: ClassVar[bool] = True
    kind: Kind

    def __post_init__(self) -> None:
        require_choice(self.kind, Kind, "kind")

    @property
    def asks(self) -> tuple[str, ...]:
        return asked_for(self.kind) if self.kind in TABLES else ()

    @property
    def hides(self) -> bool:
        """Whether a reader sees nothing of the word."""
        return self.kind in HIDDEN

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        if self.kind in TABLES:
            table = yield from look_alikes_of(word, self.kind)
            new = "".join(table[character][:1] or character for character in word)
        else:
            new = DISGUISES[self.kind](word)
        return [] if new == word else [new]


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """Disguise every word, or a drawn `share` of them, and look once.

    A text that nobody can read is no attack by itself, whatever the victim says of it: then the text stays as
    it was, and the facts `unreadable` and `unreadable_flips` say what the victim made of it. The fact
    `unseen` says that a victim answered as before, as one does whose tokenizer drops the characters.
    """

    tries: ClassVar[int] = 1
    level: ClassVar[str] = "characters"
    disguise: Disguise
    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError("share is over 0 and at most 1")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        text = yield from self._rewritten(a, start.text)
        if text.value == start.text.value:
            a.note = "no word can be written so"
            return start
        (end,) = yield from a.score([text], probe=self.disguise.hides)
        if self.disguise.hides:
            a.facts |= {"unreadable": 1, "unreadable_flips": int(end.success)}
            a.note = "neither a reader nor the victim can read the text: whatever is said of it is no success"
            return start
        a.facts["unseen"] = int(end.probs.tolist() == start.probs.tolist())
        if a.facts["unseen"]:
            a.note = "the victim answers as before: it may not see these characters"
        return end

    def _rewritten(self, a: Attempt, text: Text) -> Program[Text]:
        places: Sequence[int] = range(len(text.words))
        if self.share < 1.0:
            count = math.ceil(self.share * len(places))
            places = sorted(a.rng.permutation(len(places))[:count].tolist())
        carrier = CARRIER if self.disguise.kind == "selectors" else ""
        for place in places:
            for word in (yield from self.disguise.propose(a, text, place)):
                text = text.replace(place, carrier + word)
                carrier = ""
        return text


@dataclass(frozen=True, kw_only=True)
class HiddenRewrite(Rewrite):
    """The same where a program reads what passes and decodes it: a text that nobody sees is a result."""

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        text = yield from self._rewritten(a, start.text)
        if text.value == start.text.value:
            a.note = "no word can be written so"
            return start
        (end,) = yield from a.score([text])
        return end
