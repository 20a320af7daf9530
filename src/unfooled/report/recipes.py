"""What is told of an attack's recipe: its account, its settings, and its line in a list."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

from unfooled.core.recipe import Recipe


def account(recipe: Recipe) -> str:
    """The docstring of the recipe's own file: paper, algorithm, versions, differences."""
    for module in list(sys.modules.values()):
        recipes = getattr(module, "RECIPES", None)
        if isinstance(recipes, dict) and recipe in recipes.values() and module.__doc__:
            return inspect.cleandoc(module.__doc__)
    return f"{recipe.full_name}: {recipe.summary}\n{recipe.paper}"


def settings_of(described: Any, path: str = "") -> list[tuple[str, str]]:
    """Each setting of a recipe by the path that `--set` takes."""
    if isinstance(described, dict):
        part = str(described.get("part", "")).partition(":")[2]
        found = [(path, part)] if path else []
        for name, value in described.items():
            hidden = not path and name in ("name", "version", "summary", "paper", "needs")
            if name != "part" and not hidden:
                found += settings_of(value, f"{path}.{name}" if path else name)
        return found
    if isinstance(described, list) and any(isinstance(part, dict) for part in described):
        return [pair for i, part in enumerate(described) for pair in settings_of(part, f"{path}.{i}")]
    return [(path, json.dumps(described))]


def brief(recipe: Recipe) -> dict[str, Any]:
    """A recipe in a list of them."""
    return {
        "name": recipe.full_name,
        "summary": recipe.summary,
        "paper": recipe.paper,
        "needs": list(recipe.requires()),
        "levels": list(recipe.levels),
        "asks": recipe.oracles(),
    }
