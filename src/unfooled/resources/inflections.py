"""Inflected forms of English words, by Penn Treebank tag, from the resource `inflections`."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from unfooled.errors import ResourceError
from unfooled.resources import store

NAME = "inflections"
Forms: TypeAlias = Mapping[str, tuple[str, ...]]  # Penn tag → forms, the usual one first

# The columns that follow lemma and part of speech in the file.
_COLUMNS = {
    "noun": ("NNS",),
    "verb": ("VBD", "VBN", "VBG", "VBZ"),
    "adj": ("JJR", "JJS"),
    "adv": ("RBR", "RBS"),
}
# The file has no forms of this verb.
_BE = {"VBP": ("are", "am"), "VBD": ("was", "were"), "VBN": ("been",), "VBG": ("being",), "VBZ": ("is",)}
_BASE = {"noun": ("NN",), "verb": ("VB", "VBP"), "adj": ("JJ",), "adv": ("RB",)}


class Inflected(NamedTuple):
    """What a written form may be: the lemma, its part of speech and the Penn tag of the form."""

    lemma: str
    part: str
    tag: str


class InflectionTable:
    """Forms of a lemma, and lemmas of a form."""

    def __init__(self, forms: Mapping[tuple[str, str], Forms]) -> None:
        """`forms` of (lemma, part of speech), without the base forms, which are added here."""
        self._forms: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        self._readings: dict[str, list[Inflected]] = {}
        for (lemma, part), others in forms.items():
            every = dict.fromkeys(_BASE[part], (lemma,)) | dict(others)
            self._forms[lemma, part] = every
            for tag, written in every.items():
                for form in written:
                    self._readings.setdefault(form, []).append(Inflected(lemma, part, tag))

    def forms(self, lemma: str, part: str) -> Forms:
        """Empty for a word that is not listed."""
        return self._forms.get((lemma, part), {})

    def readings(self, form: str) -> list[Inflected]:
        return self._readings.get(form, [])


def open_inflections() -> InflectionTable:
    return _read(store.path(NAME) / "infl_lu.csv.gz")


@lru_cache(maxsize=1)
def _read(path: Path) -> InflectionTable:
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {("be", "verb"): _BE}
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for lemma, part, *columns in csv.reader(file):
                found[lemma.lower(), part] = _row(part, lemma, columns)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ResourceError(
            f"the inflections {path} cannot be read: {error}", f"run: unfooled resources get {NAME}"
        ) from error
    return InflectionTable(found)


def _row(part: str, lemma: str, columns: list[str]) -> dict[str, tuple[str, ...]]:
    forms = {
        tag: tuple(form.lower() for form in written.split("/"))
        for tag, written in zip(_COLUMNS[part], columns, strict=False)
        if written
    }
    if "VBD" in forms:
        forms.setdefault("VBN", forms["VBD"])  # left out where they are equal
    return forms
