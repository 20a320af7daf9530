"""The same attack with another order of the words: from gradients, or without them."""

from __future__ import annotations

import dataclasses

from unfooled.attacks.parts.gradient_importance import Gradient
from unfooled.attacks.parts.importance import Deletion, Importance
from unfooled.core.recipe import Recipe


def needs_gradients(recipe: Recipe) -> bool:
    return any(name.startswith("gradients") for name in (*recipe.needs, *recipe.oracles()))


def with_other_order(recipe: Recipe) -> Recipe | None:
    """A black-box attack with the order of gradients; a white-box one with the order of deletions.

    None where the attack's search has no order to change.
    """
    if "importance" not in {field.name for field in dataclasses.fields(recipe.search)}:  # type: ignore[arg-type]
        return None
    rest = tuple(need for need in recipe.needs if need != "gradients")
    order: Importance = Deletion()
    needs, kind = rest, "black-box-order"
    if not needs_gradients(recipe):
        order, needs, kind = Gradient("logit"), (*rest, "gradients"), "white-box-order"
    search = dataclasses.replace(recipe.search, importance=order)  # type: ignore[type-var]
    return dataclasses.replace(
        recipe, search=search, needs=needs, version=f"{recipe.version.split('+')[0]}+{kind}"
    )
