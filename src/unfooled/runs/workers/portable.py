"""How a victim gets to another process: by name where it has one, else by value."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unfooled.core.victim import Victim
from unfooled.errors import VictimError
from unfooled.victims.loading import load_victim


@dataclass(frozen=True)
class Reload:
    """A victim that each worker loads for itself, as the user named it."""

    spec: str
    options: dict[str, Any]

    def __call__(self) -> Victim:
        return load_victim(self.spec, **self.options)


def portable(victim: Victim, dumps: Callable[[Any], bytes] = pickle.dumps) -> Victim | Reload:
    """How a worker gets its own copy of the victim; `dumps` is how things are sent there."""
    spec = getattr(victim, "spec", None)
    if spec:
        return Reload(spec, dict(getattr(victim, "options", {})))
    try:
        dumps(victim)  # starting a process would fail with a message about processes
        return victim
    except Exception as error:
        raise VictimError(
            f"{victim.name} cannot be sent to worker processes: {error}",
            "use workers=1, or load the victim by path or `module:function` so that each worker can load it",
        ) from error
