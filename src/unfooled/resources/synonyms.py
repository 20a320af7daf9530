"""Synonyms from WordNet: words that share a synset, in the form of the word they would replace.

    item    (word, senses)     a word in lower case; how many of its senses count per part of speech, 0: all
    answer  tuple[str, ...]    different single words, those of the commonest senses first

    item    Sisters(word, k)   a word in lower case; at most how many
    answer  tuple[str, ...]    words under the same more general sense, synonyms first, commonest senses first

    item    Lemmas(word)       a word as it is written
    answer  tuple[str, ...]    the words of all its synsets as WordNet writes them, by the alphabet

"delayed" is looked up as the verb "delay" in its past form, and its synonyms come back as "detained", not
"detain". Forms are made by rule and by WordNet's own list of exceptions. As `Lemmas` they come back in base
form, "delay" among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from unfooled.resources import store
from unfooled.resources.wordnet import PARTS, SenseKey, WordNet, read_wordnet
from unfooled.text import WORD

DEFAULT = "wordnet"
_REMEMBERED = 1 << 16
_VOWELS = "aeiou"
# Verbs whose past is their base form; the list of exceptions leaves them out.
_UNCHANGED = frozenset(
    ("bet", "bid", "burst", "cost", "cut", "fit", "hit", "hurt", "let", "put", "quit", "read", "rid", "shed")
    + ("shut", "slit", "split", "spread", "thrust", "wed")
)
# Ends of longer verbs whose last syllable is stressed.
_STRESSED = ("bmit", "cur", "dmit", "gret", "mmit", "pel", "rmit", "set")

# Ending of an inflected word, what may stand there in the base form, and which form it is.
_ENDINGS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "noun": (("ies", "y", "s"), ("es", "", "s"), ("s", "", "s")),
    "verb": (
        ("ies", "y", "s"), ("es", "", "s"), ("s", "", "s"), ("ied", "y", "ed"), ("ed", "e", "ed"),
        ("ed", "", "ed"), ("ing", "e", "ing"), ("ing", "", "ing"),
    ),
    "adj": (
        ("ier", "y", "er"), ("er", "e", "er"), ("er", "", "er"), ("iest", "y", "est"), ("est", "e", "est"),
        ("est", "", "est"),
    ),
    "adv": (),
}  # fmt: skip


# WordNet's own rules of detachment, as its manual page morphy(7) lists them.
_DETACHMENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "verb": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip


class WordForm(NamedTuple):
    """One way to understand a word: `base` of a part of speech in the form `slot` ("" is the base form)."""

    part: str
    base: str
    slot: str


class Lemmas(NamedTuple):
    """Single words of all synsets of a word, in base form."""

    word: str


class Sisters(NamedTuple):
    """Words that stand beside a word under a more general sense, in its form; its synonyms are among them."""

    word: str
    most: int


class SynonymOracle:
    batch_size = 1 << 14

    def __init__(self, net: WordNet) -> None:
        self.net = net
        self._irregular: dict[str, list[WordForm]] = {}
        for part, bases in net.irregular.items():
            for base, forms in bases.items():
                for form in forms:
                    self._irregular.setdefault(form, []).append(WordForm(part, base, _slot(part, form)))
        self._look_up = lru_cache(maxsize=_REMEMBERED)(self._find)
        self._lemmas = lru_cache(maxsize=_REMEMBERED)(self._find_lemmas)
        self._sisters = lru_cache(maxsize=_REMEMBERED)(self._find_sisters)

    def __call__(self, items: Sequence[tuple[str, int] | Lemmas | Sisters], /) -> list[tuple[str, ...]]:
        return [self._answer(item) for item in items]

    def _answer(self, item: tuple[str, int] | Lemmas | Sisters) -> tuple[str, ...]:
        if isinstance(item, Lemmas):
            return self._lemmas(item.word)
        if isinstance(item, Sisters):
            return self._sisters(*item)
        return self._look_up(*item)

    def readings(self, word: str) -> list[WordForm]:
        """Every reading that WordNet knows, base forms first."""
        found = [WordForm(part, word, "") for part in PARTS]
        found += self._irregular.get(word, [])
        found += _regular_readings(word)
        return [
            reading for reading in dict.fromkeys(found) if (reading.part, reading.base) in self.net.senses
        ]

    def inflected(self, part: str, base: str, slot: str, like: str) -> str:
        """The form of `base`, or "" where there is none in one word; of two past forms that like `like`."""
        if not slot:
            return base
        irregular = [
            form for form in self.net.irregular.get(part, {}).get(base, []) if _slot(part, form) == slot
        ]
        if irregular:
            alike = [form for form in irregular if form.endswith("n") == like.endswith("n")]
            return min(alike or irregular)
        if part == "noun" and base.endswith("s") and (part, base[:-1]) in self.net.senses:
            return base  # a plural by itself
        if part == "verb" and slot == "ed" and (base in _UNCHANGED or base.endswith(("set", "cast"))):
            return base
        if part in ("adj", "adv") and not _compares(base):
            return ""
        return _regular(base, slot)

    def _find(self, word: str, senses: int) -> tuple[str, ...]:
        readings = self.readings(word)
        keys = [self.net.senses[reading.part, reading.base][: senses or None] for reading in readings]
        found: dict[str, None] = {}
        for rank in range(max(map(len, keys), default=0)):
            for reading, own in zip(readings, keys, strict=True):
                if rank < len(own):
                    for other in self.net.synsets[own[rank]].words:
                        if other and other != reading.base:
                            found[self.inflected(reading.part, other, reading.slot, word)] = None
        return tuple(synonym for synonym in found if synonym not in ("", word))

    @cached_property
    def _below(self) -> dict[SenseKey, list[SenseKey]]:
        """The senses one step under each."""
        below: dict[SenseKey, list[SenseKey]] = {}
        for key, synset in self.net.synsets.items():
            for general in synset.hypernyms:
                below.setdefault(general, []).append(key)
        return below

    def _find_sisters(self, word: str, most: int) -> tuple[str, ...]:
        found = dict.fromkeys(self._look_up(word, 0))
        for reading in self.readings(word):
            for key in self.net.senses[reading.part, reading.base]:
                synset = self.net.synsets[key]
                beside = [sister for general in synset.hypernyms for sister in self._below.get(general, [])]
                for sister in (*synset.similar, *beside):
                    for other in self.net.synsets[sister].words:
                        if len(found) >= most:
                            break
                        if other and other != reading.base:
                            found[self.inflected(reading.part, other, reading.slot, word)] = None
        return tuple(name for name in found if name not in ("", word))[:most]

    def _find_lemmas(self, word: str) -> tuple[str, ...]:
        bases = [(part, base) for part in PARTS for base in self._detached(part, word.lower())]
        keys = [key for base in bases for key in self.net.senses[base]]
        found = {written for key in keys for written in self.net.synsets[key].written}
        single = (name for name in found if name != word and "_" not in name and len(WORD.findall(name)) == 1)
        return tuple(sorted(single))

    def _detached(self, part: str, word: str) -> list[str]:
        """The base forms that WordNet's own program finds: those of the exceptions if the word is one, else
        by endings taken off, again and again until something is known."""
        irregular = [form.base for form in self._irregular.get(word, []) if form.part == part]
        if irregular:
            return self._known(part, [word, *irregular])
        forms = [word]
        found = self._known(part, [word, *_taken_off(part, forms)])
        while not found and (forms := _taken_off(part, forms)):
            found = self._known(part, forms)
        return found

    def _known(self, part: str, forms: Sequence[str]) -> list[str]:
        return [form for form in dict.fromkeys(forms) if (part, form) in self.net.senses]


def open_synonyms(variant: str = "") -> SynonymOracle:
    """`wordnet:wordnet` reads the resource of that name."""
    return SynonymOracle(_read(variant or DEFAULT))


@lru_cache(maxsize=1)
def _read(name: str) -> WordNet:
    return read_wordnet(store.path(name))


def _slot(part: str, form: str) -> str:
    """Which form an irregular one is."""
    if part == "noun":
        return "s"
    if part == "verb":
        return "ing" if form.endswith("ing") else "s" if form.endswith("s") and form != "was" else "ed"
    return "est" if form.endswith("st") else "er"


def _taken_off(part: str, forms: Sequence[str]) -> list[str]:
    return [
        form[: len(form) - len(ending)] + instead
        for form in forms
        for ending, instead in _DETACHMENTS[part]
        if form.endswith(ending)
    ]


def _regular_readings(word: str) -> Iterator[WordForm]:
    for part, endings in _ENDINGS.items():
        for ending, instead, slot in endings:
            if not word.endswith(ending) or len(word) < len(ending) + 2:
                continue
            stem = word.removesuffix(ending)
            yield WordForm(part, stem + instead, slot)
            if slot not in ("", "s") and not instead and stem[-1] == stem[-2]:
                yield WordForm(part, stem[:-1], slot)  # stopped, bigger


def _regular(base: str, slot: str) -> str:
    soft = base[-1:] == "y" and base[-2:-1] not in _VOWELS
    if slot == "s":
        if soft:
            return base[:-1] + "ies"
        return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if slot == "ing":
        if base.endswith("ie"):
            return base[:-2] + "ying"
        silent = base.endswith("e") and not base.endswith(("ee", "oe", "ye"))
        return (base[:-1] if silent else _doubled(base)) + "ing"
    if soft:
        return base[:-1] + "i" + slot
    return base + slot[1:] if base.endswith("e") else _doubled(base) + slot


def _compares(base: str) -> bool:
    """Short adjectives take -er and -est: cold, happy; longer ones take "more"."""
    syllables = len(re.findall(r"[aeiouy]+", base.removesuffix("e")))
    return syllables == 1 or (syllables == 2 and base.endswith("y") and base.isalpha())


def _doubled(base: str) -> str:
    """The last letter twice where a stressed short syllable ends in it: stop, stopped; but open, opened."""
    if base.endswith(_STRESSED):
        return base + base[-1]
    short = re.fullmatch(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]", base)
    return base + base[-1] if short and len(base) > 2 else base
