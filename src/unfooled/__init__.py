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
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unfooled import attacks
    from unfooled.checks.compare import compare
    from unfooled.checks.evaluate import evaluate
    from unfooled.checks.replay import replay
    from unfooled.checks.stress import stress
    from unfooled.checks.transfer import transfer
    from unfooled.core.recipe import Recipe, load_recipe
    from unfooled.core.result import Example, Result
    from unfooled.core.session import Session, Settings
    from unfooled.core.victim import Victim
    from unfooled.data.dataset import Dataset
    from unfooled.data.loading import load_data
    from unfooled.defenses.harden import harden
    from unfooled.device import computing
    from unfooled.errors import UnfooledError, UserError
    from unfooled.internals.analysis import analyse
    from unfooled.metrics.measures import measure
    from unfooled.metrics.validity.judging import judge
    from unfooled.plugins import registry
    from unfooled.report.html import report
    from unfooled.runs.attack import Run, attack
    from unfooled.runs.caps import Caps
    from unfooled.runs.export import export
    from unfooled.runs.merge import merge
    from unfooled.runs.workers.where import Workers
    from unfooled.text import Text
    from unfooled.training.sweep import sweep
    from unfooled.training.trainer import train
    from unfooled.trust import trusting
    from unfooled.victims.function import FunctionVictim
    from unfooled.victims.http.endpoint import HttpVictim
    from unfooled.victims.loading import load_victim
    from unfooled.victims.sklearn.pipeline import SklearnVictim
    from unfooled.victims.torch.huggingface import HuggingFaceVictim

__version__ = "0.1.0"

__all__ = [
    "Caps",
    "Dataset",
    "Example",
    "FunctionVictim",
    "HttpVictim",
    "HuggingFaceVictim",
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
    "Workers",
    "analyse",
    "attack",
    "attacks",
    "compare",
    "computing",
    "evaluate",
    "export",
    "harden",
    "judge",
    "load_data",
    "load_recipe",
    "load_victim",
    "measure",
    "merge",
    "registry",
    "replay",
    "report",
    "stress",
    "sweep",
    "train",
    "transfer",
    "trusting",
]

_HOMES = {
    "Caps": "runs.caps",
    "Dataset": "data.dataset",
    "Example": "core.result",
    "FunctionVictim": "victims.function",
    "HttpVictim": "victims.http.endpoint",
    "HuggingFaceVictim": "victims.torch.huggingface",
    "Recipe": "core.recipe",
    "Result": "core.result",
    "Run": "runs.attack",
    "Session": "core.session",
    "Settings": "core.session",
    "SklearnVictim": "victims.sklearn.pipeline",
    "Text": "text",
    "UnfooledError": "errors",
    "UserError": "errors",
    "Victim": "core.victim",
    "Workers": "runs.workers.where",
    "attack": "runs.attack",
    "compare": "checks.compare",
    "computing": "device",
    "evaluate": "checks.evaluate",
    "export": "runs.export",
    "harden": "defenses.harden",
    "judge": "metrics.validity.judging",
    "load_data": "data.loading",
    "load_recipe": "core.recipe",
    "load_victim": "victims.loading",
    "measure": "metrics.measures",
    "merge": "runs.merge",
    "registry": "plugins",
    "replay": "checks.replay",
    "report": "report.html",
    "stress": "checks.stress",
    "sweep": "training.sweep",
    "train": "training.trainer",
    "transfer": "checks.transfer",
    "trusting": "trust",
}
# Of wings, which may be missing: the kind and the name under which the registry knows it.
_OF_WINGS = {"analyse": ("analysis", "internals")}


def __getattr__(name: str) -> Any:
    if name == "attacks":
        return importlib.import_module("unfooled.attacks")
    if name in _OF_WINGS:
        return importlib.import_module("unfooled.plugins").registry.load(*_OF_WINGS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'unfooled' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"unfooled.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _PublicFace(ModuleType):
    """A folder may be called like a public name (`unfooled.report`): importing it must not hide the name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _PublicFace
