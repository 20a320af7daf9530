"""Attacks, one file each, and their parts: goals, importance, candidates, constraints, searches.

A recipe is a goal and a search; a search takes the other parts as its fields.

Example:

    >>> parts = unfooled.attacks
    >>> search = parts.GreedySwap(
    ...     importance=parts.Deletion(), candidates=parts.CharacterEdits(), constraints=()
    ... )
    >>> search.stopwords
    'textfooler'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unfooled.attacks.parts.candidates import CharacterEdits, Neighbours
    from unfooled.attacks.parts.constraints import MaxCharacterEdits, SamePartOfSpeech, SentenceSimilarity
    from unfooled.attacks.parts.english import (
        GoodGrammar,
        InForm,
        Interchangeable,
        MaxChangedShare,
        ProtectedWords,
        RelatedWords,
    )
    from unfooled.attacks.parts.fluency import Fluency, Grammar
    from unfooled.attacks.parts.goals import OnlyClass, Targeted, Untargeted
    from unfooled.attacks.parts.gradient_importance import Gradient
    from unfooled.attacks.parts.importance import Deletion, Masking, RandomOrder, TemporalScore
    from unfooled.attacks.parts.masks import FillMask, MaskAndFill
    from unfooled.attacks.parts.planned import PlannedSwap
    from unfooled.attacks.parts.search import GreedySwap
    from unfooled.attacks.parts.selection import AttentionSelect, GreedySelect
    from unfooled.attacks.parts.sources import Datamuse, InAll, Several, UserTable, WordNetSynonyms

__all__ = [
    "AttentionSelect",
    "CharacterEdits",
    "Datamuse",
    "Deletion",
    "FillMask",
    "Fluency",
    "GoodGrammar",
    "Gradient",
    "Grammar",
    "GreedySelect",
    "GreedySwap",
    "InAll",
    "InForm",
    "Interchangeable",
    "MaskAndFill",
    "Masking",
    "MaxChangedShare",
    "MaxCharacterEdits",
    "Neighbours",
    "OnlyClass",
    "PlannedSwap",
    "ProtectedWords",
    "RandomOrder",
    "RelatedWords",
    "SamePartOfSpeech",
    "SentenceSimilarity",
    "Several",
    "Targeted",
    "TemporalScore",
    "Untargeted",
    "UserTable",
    "WordNetSynonyms",
]

_HOMES = {
    "AttentionSelect": "selection",
    "CharacterEdits": "candidates",
    "Datamuse": "sources",
    "Deletion": "importance",
    "FillMask": "masks",
    "Fluency": "fluency",
    "GoodGrammar": "english",
    "Gradient": "gradient_importance",
    "Grammar": "fluency",
    "GreedySelect": "selection",
    "GreedySwap": "search",
    "InAll": "sources",
    "InForm": "english",
    "Interchangeable": "english",
    "MaskAndFill": "masks",
    "Masking": "importance",
    "MaxChangedShare": "english",
    "MaxCharacterEdits": "constraints",
    "Neighbours": "candidates",
    "OnlyClass": "goals",
    "PlannedSwap": "planned",
    "ProtectedWords": "english",
    "RandomOrder": "importance",
    "RelatedWords": "english",
    "SamePartOfSpeech": "constraints",
    "SentenceSimilarity": "constraints",
    "Several": "sources",
    "Targeted": "goals",
    "TemporalScore": "importance",
    "Untargeted": "goals",
    "UserTable": "sources",
    "WordNetSynonyms": "sources",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unfooled.attacks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"unfooled.attacks.parts.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
