"""What undoes disguises of characters: pure functions, text to text, that leave plain English as it is.

    decode       messages hidden in tag characters or variation selectors are written out
    bidi         text in the order in which it is shown; the controls of direction are gone
    controls     backspaces are done, other control characters go
    invisible    zero-width characters, fillers, soft hyphens, variation selectors go
    nfkc         full-width, mathematical, circled letters become plain ones (Unicode's NFKC)
    accents      marks on Latin letters go
    look-alikes  letters of other scripts that look like ASCII ones become these, where the text is Latin
    leet         digits and signs inside words become letters
    spacing      letters with something between them are joined, odd blanks become plain ones
    repeats      a letter three times and more becomes one or two

Where the tables come from: Unicode's decompositions and character names as Python has them, and pictures of
the letters of a font (`shapes.py`). The attacks take theirs from Unicode's list of confusable characters, so
that a cure which holds here has not learned its attack by heart. Leetspeak has no other source than what
people write: this table has signs that the attacks' has not, and reads 1 as i or l by the letters around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from unfooled.defenses.shapes import SHAPES

VERSION = 1  # of the tables and rules, for fingerprints

# -- hidden messages -------------------------------------------------------------------------------------

_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")  # of England, Scotland, Wales
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_MESSAGE = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}")  # never two in a row in honest text


def decode(text: str) -> str:
    text = _FLAG.sub("\U0001f3f4", text)
    text = _TAGS.sub(lambda run: _from_tags(run.group()), text)
    return _SELECTORS.sub(lambda run: _from_selectors(run.group()), text) if _MESSAGE.search(text) else text


def _from_tags(run: str) -> str:
    plain = (chr(ord(tag) - 0xE0000) for tag in run)
    return "".join(letter for letter in plain if " " <= letter <= "~")


def _from_selectors(run: str) -> str:
    codes = (ord(selector) for selector in run)
    message = bytes(code - 0xFE00 if code < 0xE0000 else code - 0xE0100 + 16 for code in codes)
    return message.decode(errors="replace").replace("\ufffd", "")


# -- direction -------------------------------------------------------------------------------------------

_OPENS = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c") | dict.fromkeys("\u2066\u2067\u2068", "\u2069")
_CLOSES = "\u202c\u2069"
_MARKS = "\u200e\u200f\u061c"
_BACKWARDS, _FORWARDS = "\u202e", "\u202d"
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
_DEEPEST = 100  # Unicode's own limit is 125


def bidi(text: str) -> str:
    if not _DIRECTION.search(text):
        return text
    return "\n".join(_shown(line) for line in text.split("\n"))


def _shown(line: str) -> str:
    """The order in which a line is drawn, as far as overrides change it; embeddings keep theirs."""
    open_: list[tuple[str, list[str]]] = [("", [])]  # what opened a level, and its parts so far
    for character in line:
        if character in _MARKS:
            continue
        if character in _OPENS:
            if len(open_) < _DEEPEST:
                open_.append((character, []))
        elif character in _CLOSES:
            # A pop of the other kind closes nothing here, but an isolate ends what was opened within it.
            levels = [n for n, (opener, _) in enumerate(open_) if _OPENS.get(opener) == character]
            if levels and (character == "\u2069" or levels[-1] == len(open_) - 1):
                while len(open_) > levels[-1]:
                    _close(open_)
        else:
            open_[-1][1].append(character)
    while len(open_) > 1:
        _close(open_)
    return "".join(open_[0][1])


def _close(open_: list[tuple[str, list[str]]]) -> None:
    opener, parts = open_.pop()
    if opener == _BACKWARDS:
        parts = _clustered(parts)[::-1]
    written = "".join(parts)
    # An isolate is one part of what is around it; anything else is as its characters.
    open_[-1][1].extend([written] if opener in "\u2066\u2067\u2068" else _levelled(opener, parts))


def _levelled(opener: str, parts: list[str]) -> list[str]:
    return ["".join(parts)] if opener in (_BACKWARDS, _FORWARDS) else parts


def _clustered(parts: list[str]) -> list[str]:
    """Marks stay with the letter before them."""
    found: list[str] = []
    for part in parts:
        if found and len(part) == 1 and unicodedata.category(part)[0] == "M":
            found[-1] += part
        else:
            found.append(part)
    return found


# -- characters that show nothing ------------------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_FILLERS = "\u3164\uffa0\u115f\u1160\u2800\u034f\u17b4\u17b5\u180e\u180b\u180c\u180d"
_JOINERS = "\u200c\u200d"


def controls(text: str) -> str:
    if not _CONTROL.search(text):
        return text
    kept: list[str] = []
    for character in text:
        if character == "\b":
            del kept[-1:]
        elif not _CONTROL.match(character):
            kept.append(character)
    return "".join(kept)


def invisible(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = []
    for place, character in enumerate(text):
        if character in _JOINERS:
            # Persian, Indic scripts and emoji need them; Latin letters and digits do not.
            beside = (kept[-1:] or [""])[0] + text[place + 1 : place + 2]
            if beside and not any(_is_latin(letter) or letter in _JOINERS for letter in beside):
                kept.append(character)
        elif not _shows_nothing(character):
            kept.append(character)
    return "".join(kept)


@lru_cache(maxsize=1 << 14)
def _shows_nothing(character: str) -> bool:
    code = ord(character)
    selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    return unicodedata.category(character) == "Cf" or character in _FILLERS or selector


@lru_cache(maxsize=1 << 14)
def _is_latin(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character.isspace()
    return unicodedata.name(character, "").startswith(("LATIN", "FULLWIDTH", "CYRILLIC", "GREEK"))


# -- forms of letters ------------------------------------------------------------------------------------


def nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def accents(text: str) -> str:
    """Marks on ASCII letters and digits go; those of other scripts are part of their letters."""
    if text.isascii():
        return text
    kept: list[str] = []
    plain = False
    for character in unicodedata.normalize("NFD", text):
        mark = unicodedata.category(character) in ("Mn", "Me")
        if mark and plain:
            continue
        plain = character.isascii() and (character.isalnum() or plain)
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))


_NAMED = re.compile(
    r"(?:LATIN (?P<case>SMALL|CAPITAL) LETTER |LATIN LETTER SMALL CAPITAL |REGIONAL INDICATOR SYMBOL LETTER "
    r"|(?:NEGATIVE |CROSSED NEGATIVE )?(?:SQUARED|CIRCLED) LATIN CAPITAL LETTER "
    r"|MODIFIER LETTER SMALL (?:CAPITAL )?)(?P<letter>[A-Z])(?: WITH .*| LONG STEM)?"
)


@lru_cache(maxsize=1 << 14)
def plain_letter(character: str) -> str:
    """The ASCII letter that a character's picture or name stands for; else the character."""
    if character in _by_shape():
        return _by_shape()[character]
    found = _NAMED.fullmatch(unicodedata.name(character, ""))
    if not found:
        return character
    return found["letter"] if found["case"] == "CAPITAL" else found["letter"].lower()


@cache
def _by_shape() -> Mapping[str, str]:
    return {other: letter for letter, others in SHAPES.items() for other in others}


_LATIN_TEXT = 0.8  # from this share of its letters on, a text is taken for one in Latin letters
_WORD = re.compile(r"\S+")


def look_alikes(text: str) -> str:
    if text.isascii():
        return text
    letters = [letter for letter in text if letter.isalpha() or plain_letter(letter) != letter]
    latin = sum(plain_letter(letter).isascii() for letter in letters)
    if letters and latin >= _LATIN_TEXT * len(letters):
        return "".join(map(plain_letter, text))
    # A text of another script: only words that mix it with ASCII letters are suspicious.
    return _WORD.sub(lambda word: _unmixed(word.group()), text)


def _unmixed(word: str) -> str:
    mixed = any(letter.isascii() and letter.isalpha() for letter in word)
    return "".join(map(plain_letter, word)) if mixed else word


# -- spelling --------------------------------------------------------------------------------------------

_SIGNS = {
    "0": "o", "1": "", "2": "z", "3": "e", "4": "a", "5": "s", "6": "g", "7": "t", "8": "b", "9": "g",
    "@": "a", "$": "s", "!": "", "+": "t", "|": "", "€": "e", "£": "l", "¢": "c",
}  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9@$!+|€£¢]+")
_LEET = re.compile(r"[A-Za-z]+[0-9@$!+|€£¢]|[0-9@$!+|€£¢]+[A-Za-z]")
_UNITS = "am|pm|k|bn|p|gb|mb|kb|tb|km|cm|mm|kg|mg|ml|hr|hrs|min|mins|yr|yrs"
_NUMBERED = re.compile(  # 4th, 10am, 50gb, £5k, mp3, covid19
    rf"[£€$]?\d+(?:{_UNITS})?|\d*(?:1st|2nd|3rd|\dth)|[A-Za-z]{{2,}}\d{{1,2}}", re.IGNORECASE
)
_VOWELS = "aeiouAEIOU034@"


def leet(text: str) -> str:
    return _TOKEN.sub(lambda token: _read_leet(token.group(), token.start(), text), text)


def _read_leet(token: str, start: int, text: str) -> str:
    end = len(token.rstrip("!|+£€¢"))  # what ends a sentence, or begins a price, is no letter
    begin = 1 if token.startswith(("@", "!")) else 0
    word = token[begin:end]
    linked = text[start - 1 : start] in ("/", ".", "_") or text[start + len(token) :][:1] in ("/", "_")
    address = "@" in word and text[start + len(token) : start + len(token) + 2].strip(".").isalnum()
    if linked or address or not _LEET.search(word) or _NUMBERED.fullmatch(word):
        return token
    read = "".join(_read_sign(word, place) for place in range(len(word)))
    return token[:begin] + (read.upper() if _shouted(word) else read) + token[end:]


def _shouted(word: str) -> bool:
    letters = [letter for letter in word if letter.isalpha()]
    return len(letters) > 1 and all(map(str.isupper, letters))


def _read_sign(word: str, place: int) -> str:
    sign = word[place]
    if sign not in _SIGNS:
        return sign
    if read := _SIGNS[sign]:
        return read
    # One stroke: i after a consonant and before one, l beside a vowel.
    before, after = word[place - 1 : place] if place else "", word[place + 1 : place + 2]
    if before and before not in _VOWELS:
        return "i"
    return "l" if before or (after and after in _VOWELS) else "i"


_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_SPACED = re.compile(  # three letters and more, the same between all of them
    r"(?<![\w'’])[A-Za-z0-9@$]([ .\-_*·,~/|]{1,2})[A-Za-z0-9@$](?:\1[A-Za-z0-9@$])+(?![\w'’])"
)


def spacing(text: str, split: Callable[[str], str] = str) -> str:
    """`split` is told what was joined, and may find words in it."""
    text = _BLANKS.sub(" ", text)
    return _SPACED.sub(lambda run: _joined(run, split), text)


def _joined(run: re.Match[str], split: Callable[[str], str]) -> str:
    letters = run.group().replace(run.group(1), "")
    return run.group() if letters.isdigit() else split(letters)


_REPEATED = re.compile(r"([A-Za-z])\1{2,}")


def repeats(text: str) -> str:
    return _REPEATED.sub(lambda run: _once_or_twice(run, text), text)


def _once_or_twice(run: re.Match[str], text: str) -> str:
    letter, after = run.group(1), text[run.end() : run.end() + 1]
    if len(run.group()) == 3 and letter in "wW" and after in (".", ""):
        return run.group()  # an address
    return letter * 2 if after.isalpha() and letter in "eoEO" else letter


NORMALISERS: Mapping[str, Callable[[str], str]] = {
    "decode": decode,
    "bidi": bidi,
    "controls": controls,
    "invisible": invisible,
    "nfkc": nfkc,
    "accents": accents,
    "look-alikes": look_alikes,
    "leet": leet,
    "spacing": spacing,
    "repeats": repeats,
}  # in the order in which they work together
