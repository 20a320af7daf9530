"""The tagger and the lexicons that this room works with, opened together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from unfooled.language.relations import Relations
from unfooled.language.tagging import PennTagger
from unfooled.resources.inflections import InflectionTable, open_inflections
from unfooled.resources.synonyms import open_synonyms
from unfooled.resources.tagger import load_tagger


@dataclass(frozen=True, eq=False)
class English:
    tagger: PennTagger
    relations: Relations
    inflections: InflectionTable


@lru_cache(maxsize=1)
def open_english() -> English:
    """From the resources `perceptron-tagger`, `wordnet` and `inflections`; opened once per process."""
    lexicon = open_synonyms()
    return English(load_tagger(), Relations(lexicon.net, lexicon.readings), open_inflections())
