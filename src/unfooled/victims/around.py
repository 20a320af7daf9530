"""What a victim that is put around another takes from it."""

from __future__ import annotations

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
