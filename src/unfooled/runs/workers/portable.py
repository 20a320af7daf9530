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


@dataclass(frozen=True)
class SentVictim:
    """A victim on its way; with a `fingerprint`, what arrives must be the model that was sent."""

    victim: Victim | Reload
    fingerprint: str = ""

    def __call__(self) -> Victim:
        victim = self.victim() if isinstance(self.victim, Reload) else self.victim
        if self.fingerprint and victim.fingerprint() != self.fingerprint:
            raise VictimError(
                f"{victim.name} is another model than on the machine that started the run",
                "put the same files on every machine",
            )
        return victim
