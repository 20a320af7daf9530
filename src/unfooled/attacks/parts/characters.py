"""What may be done to the characters of a word: edits as small functions, tables as data.

An edit of a kind at a place gives one or several words (`variants`); where in a word a kind has a place says
`places`. `Misspelling` and `LookAlikes` make candidates of them: all, one drawn for each place, or only one.
Tables of look-alikes that are not written here (`confusables`, `names`, `pictures`) are asked of an oracle.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from unfooled.attacks.parts.candidates import added, drawn, dropped, exchanged, swapped
from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.recipe import require_counts
from unfooled.core.victim import require_choice
from unfooled.text import Text

# Letters of a word that are looked at: all typos of a text without blanks would fill the memory.
LONGEST = 100

# -- tables ----------------------------------------------------------------------------------------

ZERO_WIDTH = "\u200b\u200c\u200d"  # space, non-joiner, joiner: what Boucher et al. put in
BACKSPACE = "\b"
PRINTABLE = "".join(map(chr, range(33, 127)))
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_PLACES = {letter: (row, column) for row, keys in enumerate(_ROWS) for column, letter in enumerate(keys)}
_SHIFTED = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))  # rows stand half a key to the right
_STRAIGHT = ((0, -1), (0, 1), (-1, 0), (1, 0))


def _keyboard(steps: Sequence[tuple[int, int]]) -> dict[str, str]:
    """For each letter those that are such a step away on a QWERTY keyboard, in alphabetical order."""
    return {
        letter: "".join(
            sorted(other for other, spot in _PLACES.items() if (spot[0] - row, spot[1] - column) in steps)
        )
        for letter, (row, column) in _PLACES.items()
    }


# qwerty: rows shifted by half a key. grid: the four straight neighbours, rows one below the other (Pruthi et
# al.). textattack: by hand, with diagonals.
KEYBOARDS: dict[str, Mapping[str, str]] = {
    "qwerty": _keyboard(_SHIFTED),
    "grid": _keyboard(_STRAIGHT),
    "textattack": {
        "q": "was", "w": "qeasd", "e": "wsdfr", "r": "edfgt", "t": "rfghy", "y": "tghju", "u": "yhjki",
        "i": "ujklo", "o": "iklp", "p": "ol", "a": "qwszx", "s": "qweadzx", "d": "werfcxs", "f": "ertgvcd",
        "g": "rtyhbvd", "h": "tyugjbn", "j": "yuikmnh", "k": "uiolmj", "l": "iopk", "z": "asx", "x": "sdzc",
        "c": "xdfv", "v": "cfgb", "b": "vghn", "n": "bhjm", "m": "njk",
    },
}  # fmt: skip
KEYS = KEYBOARDS["qwerty"]

# intentional: the ASCII keys of Unicode's list of letters that are meant to look alike, one twin each.
# textbugger: the letters, digits and signs that DeepWordBug, TextBugger and TextAttack exchange; those of
# digits are other ASCII.
TWINS: dict[str, Mapping[str, str]] = {
    "intentional": dict(
        zip(
            "ABEHIKMNOPTXYZCJS" + "acdehipsxyjo" + "!",
            "ΑΒΕΗΙΚΜΝΟΡΤΧΥΖСЈЅ" + "асԁеһірѕхуϳο" + "ǃ",
            strict=True,
        )
    ),
    "textbugger": dict(
        zip(
            "-9876543210'abcdefghijklmnopqrstuvwxyz",
            "˗৭Ȣ𝟕бƼᏎƷᒿlO`ɑЬϲԁе𝚏ɡհіϳ𝒌ⅼｍոорԛⲅѕ𝚝սѵԝ×уᴢ",
            strict=True,
        )
    ),
}
TableName: TypeAlias = Literal["intentional", "textbugger", "confusables", "names", "pictures"]

# -- one edit at one place -------------------------------------------------------------------------


def displayed_swapped(word: str, at: int) -> str:
    """Two neighbours stored in the wrong order and shown in the right one, by Unicode's bidi controls."""
    shown = f"\u202d\u2066\u202e\u2066{word[at + 1]}\u2069\u2066{word[at]}\u2069\u202c\u2069\u202c"
    return word[:at] + shown + word[at + 2 :]


def cased(letter: str, like: str) -> str:
    return letter.upper() if like.isupper() else letter.lower()


# -- all edits of a kind ---------------------------------------------------------------------------

Kind: TypeAlias = Literal["swap", "drop", "add", "keyboard", "blank", "invisible", "bidi-swap", "backspace"]
_PAIRS = ("swap", "bidi-swap")
_INSERTIONS = ("add", "blank", "invisible", "backspace")


def places(word: str, kind: str, *, inner: bool, before_last: bool = True) -> range:
    """Where in a word an edit of the kind may be; `inner` keeps the first and the last character.

    A character is put in between two others; just `before_last` too, which TextAttack never does.
    """
    count = min(len(word), LONGEST)
    margin = 1 if inner else 0
    if kind in _PAIRS:
        return range(margin, count - 1 - margin)
    if kind in _INSERTIONS:
        return range(margin, count if inner and before_last else count - 1 if inner else count + 1)
    return range(margin, count - margin)


def variants(word: str, at: int, kind: str, *, letters: str, keys: Mapping[str, str]) -> list[str]:
    """What the word may become by one edit of the kind at that place; `letters` are those to put in."""
    if kind == "swap":
        return [swapped(word, at)]
    if kind == "bidi-swap":
        return [displayed_swapped(word, at)]
    if kind == "drop":
        return [dropped(word, at)]
    if kind == "keyboard":
        return [exchanged(word, at, cased(key, word[at])) for key in keys.get(word[at].lower(), "")]
    if kind == "blank":
        return [added(word, at, " ")]
    if kind == "invisible":
        return [added(word, at, character) for character in ZERO_WIDTH]
    if kind == "backspace":
        return [added(word, at, letter + BACKSPACE) for letter in letters]
    return [added(word, at, letter) for letter in letters]


def typos_of(word: str, kinds: tuple[str, ...] = ("transposition", "keyboard")) -> list[str]:
    """Every such typo in the first letters of a word, never the word itself; casing stays in its place."""
    made: list[str] = []
    if "transposition" in kinds:
        pairs = [(at, word[at], word[at + 1]) for at in range(min(len(word) - 1, LONGEST))]
        made += [
            word[:at] + cased(right, left) + cased(left, right) + word[at + 2 :]
            for at, left, right in pairs
            if left.isalpha() and right.isalpha()
        ]
    if "keyboard" in kinds:
        made += [
            exchanged(word, at, cased(key, letter))
            for at, letter in enumerate(word[:LONGEST])
            for key in KEYS.get(letter.lower(), "")
        ]
    return [typo for typo in dict.fromkeys(made) if typo != word]


# -- candidates ------------------------------------------------------------------------------------

Pick: TypeAlias = Literal["all", "each-place", "one"]


@dataclass(frozen=True)
class Misspelling:
    """A word with one edit of a kind. `pick`: every edit, one drawn for each place, or one drawn place.

    `inner` keeps the first and the last character; words of fewer than `least` characters have no edits.
    """

    spells: ClassVar[bool] = True
    kind: Kind
    pick: Pick = "all"
    inner: bool = True
    least: int = 2
    letters: str = string.ascii_lowercase
    keyboard: Literal["qwerty", "grid", "textattack"] = "qwerty"
    before_last: bool = True

    def __post_init__(self) -> None:
        require_choice(self.kind, Kind, "kind")
        require_choice(self.pick, Pick, "pick")
        if not self.letters or self.keyboard not in KEYBOARDS:
            raise ValueError(f"letters may not be empty, and keyboard is one of {', '.join(KEYBOARDS)}")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        return self.of(text.words[index], a.rng)
        yield  # no question is needed, but a program is a generator

    def of(self, word: str, rng: np.random.Generator) -> list[str]:
        """The misspellings of a word; random numbers are drawn only where not all are taken."""
        if len(word) < self.least:
            return []
        where: Sequence[int] = places(word, self.kind, inner=self.inner, before_last=self.before_last)
        if self.pick == "one":
            where = [drawn(where, rng)] if where else []
        keys = KEYBOARDS[self.keyboard]
        found = [variants(word, at, self.kind, letters=self.letters, keys=keys) for at in where]
        if self.pick != "all":
            found = [[drawn(options, rng)] for options in found if options]
        return [new for new in dict.fromkeys(new for options in found for new in options) if new != word]


@dataclass(frozen=True)
class LookAlikes:
    """A word with one character exchanged for one that looks like it; `most` of them for a character."""

    spells: ClassVar[bool] = True
    table: TableName = "intentional"
    pick: Pick = "all"
    inner: bool = False
    most: int = 1

    def __post_init__(self) -> None:
        require_choice(self.table, TableName, "table")
        require_choice(self.pick, Pick, "pick")
        require_counts(self, "most")

    @property
    def asks(self) -> tuple[str, ...]:
        return asked_for(self.table)

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        where: Sequence[int] = places(word, "look-alike", inner=self.inner)
        table = yield from look_alikes_of("".join(word[at] for at in where), self.table)
        if self.pick == "one":
            where = [drawn(where, a.rng)] if where else []
        found = [[exchanged(word, at, twin) for twin in table[word[at]][: self.most]] for at in where]
        if self.pick != "all":
            found = [[drawn(options, a.rng)] for options in found if options]
        return [new for options in found for new in options]


def asked_for(table: str) -> tuple[str, ...]:
    """The oracle of a table that is not written here."""
    return () if table in TWINS else (f"look-alikes:{table}",)


def look_alikes_of(characters: str, table: str) -> Program[dict[str, str]]:
    """For each different character those that look like it, the nearest first."""
    distinct = list(dict.fromkeys(characters))
    if table in TWINS:
        return {character: TWINS[table].get(character, "") for character in distinct}
    (oracle,) = asked_for(table)
    answers = yield from ask(oracle, distinct)
    return {
        character: "".join(look_alike.character for look_alike in found)
        for character, found in zip(distinct, answers, strict=True)
    }
