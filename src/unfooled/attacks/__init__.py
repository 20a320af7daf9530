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
    from unfooled.attacks.parts.beam import BeamSwap
    from unfooled.attacks.parts.candidates import CharacterEdits, Neighbours
    from unfooled.attacks.parts.characters import LookAlikes, Misspelling
    from unfooled.attacks.parts.constraints import MaxCharacterEdits, SamePartOfSpeech, SentenceSimilarity
    from unfooled.attacks.parts.disguise import Disguise
    from unfooled.attacks.parts.english import (
        GoodGrammar,
        InForm,
        Interchangeable,
        MaxChangedShare,
        ProtectedWords,
        RelatedWords,
    )
    from unfooled.attacks.parts.fluency import Fluency, Grammar
    from unfooled.attacks.parts.goals import Confident, OnlyClass, Targeted, Untargeted
    from unfooled.attacks.parts.gradient_importance import Gradient, GradientSum
    from unfooled.attacks.parts.importance import Bisection, Deletion, Masking, RandomOrder, TemporalScore
    from unfooled.attacks.parts.inflections import OtherForms
    from unfooled.attacks.parts.limits import (
        FirstOptions,
        KeepLikeliest,
        MaxWords,
        MeanVector,
        MinLetters,
        NoAntonyms,
        OncePerPlace,
        OnlyTags,
        WordDistance,
        WordLoss,
    )
    from unfooled.attacks.parts.masks import FillMask, FillWord, MaskAndFill
    from unfooled.attacks.parts.own_words import OwnWords
    from unfooled.attacks.parts.planned import PlannedSwap
    from unfooled.attacks.parts.population import Genetic, Swarm
    from unfooled.attacks.parts.prose import ReadsOn
    from unfooled.attacks.parts.saliency import WeightedSaliency
    from unfooled.attacks.parts.search import GreedySwap
    from unfooled.attacks.parts.selection import AttentionSelect, GreedySelect
    from unfooled.attacks.parts.sources import (
        Datamuse,
        InAll,
        Several,
        UserTable,
        WordNetLemmas,
        WordNetSisters,
        WordNetSynonyms,
    )

__all__ = [
    "AttentionSelect",
    "BeamSwap",
    "Bisection",
    "CharacterEdits",
    "Confident",
    "Datamuse",
    "Deletion",
    "Disguise",
    "FillMask",
    "FillWord",
    "FirstOptions",
    "Fluency",
    "Genetic",
    "GoodGrammar",
    "Gradient",
    "GradientSum",
    "Grammar",
    "GreedySelect",
    "GreedySwap",
    "InAll",
    "InForm",
    "Interchangeable",
    "KeepLikeliest",
    "LookAlikes",
    "MaskAndFill",
    "Masking",
    "MaxChangedShare",
    "MaxCharacterEdits",
    "MaxWords",
    "MeanVector",
    "MinLetters",
    "Misspelling",
    "Neighbours",
    "NoAntonyms",
    "OncePerPlace",
    "OnlyClass",
    "OnlyTags",
    "OtherForms",
    "OwnWords",
    "PlannedSwap",
    "ProtectedWords",
    "RandomOrder",
    "ReadsOn",
    "RelatedWords",
    "SamePartOfSpeech",
    "SentenceSimilarity",
    "Several",
    "Swarm",
    "Targeted",
    "TemporalScore",
    "Untargeted",
    "UserTable",
    "WeightedSaliency",
    "WordDistance",
    "WordLoss",
    "WordNetLemmas",
    "WordNetSisters",
    "WordNetSynonyms",
]

_HOMES = {
    "AttentionSelect": "selection",
    "BeamSwap": "beam",
    "Bisection": "importance",
    "CharacterEdits": "candidates",
    "Confident": "goals",
    "Datamuse": "sources",
    "Deletion": "importance",
    "Disguise": "disguise",
    "FillMask": "masks",
    "FillWord": "masks",
    "FirstOptions": "limits",
    "Fluency": "fluency",
    "Genetic": "population",
    "GoodGrammar": "english",
    "Gradient": "gradient_importance",
    "GradientSum": "gradient_importance",
    "Grammar": "fluency",
    "GreedySelect": "selection",
    "GreedySwap": "search",
    "InAll": "sources",
    "InForm": "english",
    "Interchangeable": "english",
    "KeepLikeliest": "limits",
    "LookAlikes": "characters",
    "MaskAndFill": "masks",
    "Masking": "importance",
    "MaxChangedShare": "english",
    "MaxCharacterEdits": "constraints",
    "MaxWords": "limits",
    "MeanVector": "limits",
    "MinLetters": "limits",
    "Misspelling": "characters",
    "Neighbours": "candidates",
    "NoAntonyms": "limits",
    "OncePerPlace": "limits",
    "OnlyClass": "goals",
    "OnlyTags": "limits",
    "OtherForms": "inflections",
    "OwnWords": "own_words",
    "PlannedSwap": "planned",
    "ProtectedWords": "english",
    "RandomOrder": "importance",
    "ReadsOn": "prose",
    "RelatedWords": "english",
    "SamePartOfSpeech": "constraints",
    "SentenceSimilarity": "constraints",
    "Several": "sources",
    "Swarm": "population",
    "Targeted": "goals",
    "TemporalScore": "importance",
    "Untargeted": "goals",
    "UserTable": "sources",
    "WeightedSaliency": "saliency",
    "WordDistance": "limits",
    "WordLoss": "limits",
    "WordNetLemmas": "sources",
    "WordNetSisters": "sources",
    "WordNetSynonyms": "sources",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unfooled.attacks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"unfooled.attacks.parts.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
