"""The models of an evaluation: their names, their roles, and what each name stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unfooled.core.victim import CLASSIFICATION, Victim, task_of
from unfooled.errors import UserError, VictimError
from unfooled.plugins import registry, unknown_name
from unfooled.victims.loading import GivenVictim, as_victim, load_victim

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def roles(names: Sequence[str], base: str | None, control: str | None) -> tuple[str, str | None]:
    """Which model is the base and which the control."""
    if not names:
        raise UserError("there is no model", "write --models base=DIR fact=DIR")
    for name in names:
        if not _NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot name a model", "use letters, digits, - . and _")
    for given in (base, control):
        if given is not None and given not in names:
            raise unknown_name("model", given, list(names))
    base = base or ("base" if "base" in names else names[0])
    control = control or ("retuned" if "retuned" in names and base != "retuned" else None)
    if base == control:
        raise UserError(f"{base} is both base and control", "name two models")
    return base, control


def load_models(models: Mapping[str, GivenVictim], **options: Any) -> dict[str, Victim]:
    """Every model as a victim; `options` are those of `load_victim`."""
    specs = resolve({name: str(spec) for name, spec in models.items() if isinstance(spec, str | Path)})
    loaded = {
        name: load_victim(specs[name], **options) if name in specs else as_victim(given)
        for name, given in models.items()
    }
    for name, victim in loaded.items():
        if task_of(victim.capabilities) != CLASSIFICATION:
            raise VictimError(
                f"{name} writes text, and this is for models that choose a class",
                "attack it: unfooled attack --attack typo",
            )
    return loaded


def resolve(specs: Mapping[str, str]) -> dict[str, str]:
    """Let a model name another one: `five:fact` becomes `five:` and what `fact` stands for."""

    def settle(spec: str, above: frozenset[str]) -> str:
        if spec in specs and spec not in above:
            return settle(specs[spec], above | {spec})
        kind, colon, rest = spec.partition(":")
        if colon and kind in registry.names("victim"):
            return f"{kind}:{settle(rest, above)}"
        return spec

    return {name: settle(spec, frozenset({name})) for name, spec in specs.items()}
