"""A victim around a victim, with settings that say all there is besides the model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from unfooled.batching import Meter
from unfooled.core.victim import Probabilities, Reloadable, TextValue, Victim, digest, margins_of


class Wrapper(Reloadable):
    """What a defence around a model can say of itself; `defense.json` holds its method and settings."""

    method = ""
    settings: Any  # a frozen dataclass
    later: tuple[str, ...] = ()  # settings that an earlier version had not: empty ones are in no fingerprint

    def __init__(self, model: Victim, settings: Any, *, name: str = "") -> None:
        self.inner = model
        self.settings = settings
        self.name = name or f"{self.method}({model.name})"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities & {"probabilities"}

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        raise NotImplementedError

    @property
    def meter(self) -> Meter | None:
        """Of the wrapped model, where it has one."""
        return getattr(self.inner, "meter", None)

    def fingerprint(self) -> str:
        settings = dataclasses.asdict(self.settings)
        known = {name: value for name, value in settings.items() if value or name not in self.later}
        return digest(self.method, json.dumps(known, sort_keys=True), self.inner.fingerprint())

    def describe(self) -> dict[str, Any]:
        """The settings and what they mean for this model; for tables and `defense.json`."""
        scores = margins_of(self.inner)
        settings: dict[str, Any] = dataclasses.asdict(self.settings)
        return settings | ({"scores": scores} if scores else {})
