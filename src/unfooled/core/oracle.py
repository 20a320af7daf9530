"""What the engine needs of anything that answers questions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable


class Oracle(Protocol):
    """Answers hashable items, one answer each, in order.

    The answer to an item depends on that item alone. `batch_size` is the most items one call may get.
    An exception means that some item of the call is bad; the engine finds out which.
    """

    @property
    def batch_size(self) -> int: ...

    def __call__(self, items: Sequence[Hashable], /) -> Sequence[Any]: ...


@runtime_checkable
class AsyncOracle(Protocol):
    """An oracle across a network: several calls may be under way at once."""

    @property
    def batch_size(self) -> int: ...

    @property
    def concurrency(self) -> int: ...

    async def answer(self, items: Sequence[Hashable], /) -> Sequence[Any]: ...
