"""Unfooled finds the words that fool a text classifier.

    import unfooled

    victim = unfooled.load_victim("model.skops")
    data = unfooled.load_data("reviews.csv")
    run = unfooled.attack(victim, data, "textfooler", out="runs/reviews", limit=100)
    print(run.summary())

Importing this package reads nothing, downloads nothing and loads no model library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unfooled.core.recipe import Recipe, load_recipe
    from unfooled.core.result import Result
    from unfooled.data.dataset import Dataset
    from unfooled.data.loading import load_data
    from unfooled.defenses.harden import harden
    from unfooled.errors import UnfooledError, UserError
    from unfooled.evaluation.compare import compare
    from unfooled.evaluation.evaluate import evaluate
    from unfooled.evaluation.export import export
    from unfooled.evaluation.replay import replay
    from unfooled.evaluation.run import Run, attack
    from unfooled.evaluation.session import Session, Settings
    from unfooled.registry import registry
    from unfooled.text import Text
    from unfooled.training.sweep import sweep
    from unfooled.training.trainer import train
    from unfooled.trust import trusting
    from unfooled.victims.base import Victim
    from unfooled.victims.function import FunctionVictim
    from unfooled.victims.loading import load_victim
    from unfooled.victims.sklearn import SklearnVictim

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "FunctionVictim",
    "Recipe",
    "Result",
    "Run",
    "Session",
    "Settings",
    "SklearnVictim",
    "Text",
    "UnfooledError",
    "UserError",
    "Victim",
    "attack",
    "compare",
    "evaluate",
    "export",
    "harden",
    "load_data",
    "load_recipe",
    "load_victim",
    "registry",
    "replay",
    "sweep",
    "train",
    "trusting",
]

_HOMES = {
    "Dataset": "data.dataset",
    "FunctionVictim": "victims.function",
    "Recipe": "core.recipe",
    "Result": "core.result",
    "Run": "evaluation.run",
    "Session": "evaluation.session",
    "Settings": "evaluation.session",
    "SklearnVictim": "victims.sklearn",
    "Text": "text",
    "UnfooledError": "errors",
    "UserError": "errors",
    "Victim": "victims.base",
    "attack": "evaluation.run",
    "compare": "evaluation.compare",
    "evaluate": "evaluation.evaluate",
    "export": "evaluation.export",
    "harden": "defenses.harden",
    "load_data": "data.loading",
    "load_recipe": "core.recipe",
    "load_victim": "victims.loading",
    "registry": "registry",
    "replay": "evaluation.replay",
    "sweep": "training.sweep",
    "train": "training.trainer",
    "trusting": "trust",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unfooled' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"unfooled.{_HOMES[name]}"), name)
    # `unfooled.registry` is also a submodule: what was asked for must win over it.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
