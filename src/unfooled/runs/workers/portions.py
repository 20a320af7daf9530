"""Work that is done by portions: texts scored again, texts measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field
from typing import Any, TypeAlias

from unfooled.core.session import Life
from unfooled.device import Compute, computing, said
from unfooled.runs.workers.job import Runner
from unfooled.trust import Trust, granted

DoPortion: TypeAlias = Callable[[list[Any]], Iterable[Any]]


@dataclass(frozen=True)
class PortionJob:
    """`opens` travels to each worker and gives there what turns a portion of items into their results; `lost`
    makes the result of an item that kills its worker."""

    opens: Callable[[], DoPortion]
    lost: Callable[[Any, str], Any]
    window: int = 500
    trust: Trust = field(default_factory=granted)
    compute: Compute = field(default_factory=said)

    def open(self) -> Runner:
        with self.trust.here(), computing(*astuple(self.compute)):
            return _PortionRunner(self.opens(), self.window)

    def killed(self, item: Any, cause: str, /) -> Any:
        return self.lost(item, f"the worker process died on this text ({cause})")


class _PortionRunner:
    def __init__(self, do: DoPortion, size: int) -> None:
        self._do = do
        self._size = size
        self._waiting: list[Any] = []
        self._done = 0

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def run(self, items: Iterable[Any], /) -> Iterator[Any]:
        for item in items:
            if item is not None:
                self._waiting.append(item)
            if item is None or len(self._waiting) >= self._size:
                yield from self._portion()
        yield from self._portion()

    def _portion(self) -> Iterator[Any]:
        if self._waiting:
            yield from self._do(self._waiting)
            self._done += len(self._waiting)
            self._waiting = []

    def life(self) -> Life:
        return Life(examples=len(self._waiting), answered=self._done)

    def counters(self) -> dict[str, Any]:
        return {}
