"""What a victim that is put around another takes from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unfooled.core.victim import Victim

# What is still shown of the inside; none of it says which class is decided.
INSIDE = frozenset(
    {"attention", "attention_maps", "embeddings", "gradients", "jacobian", "pieces", "sentence_vectors"}
    | {"max_length", "meter", "model", "tokenizer", "truncated", "unread"}
)


class AroundVictim:
    """Can do what `inner` can, in batches of its size."""

    inner: Victim

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def _seen(self, name: str, shown: Collection[str], own: Mapping[str, str]) -> Any:
        """What `inner` shows by that name, or the method of its own that stands for one `inner` has."""
        if name in shown:
            return getattr(self.inner, name)
        if name in own and hasattr(self.inner, name):
            return getattr(self, own[name])
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
