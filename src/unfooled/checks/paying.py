"""A victim whose every question is paid for first, whoever asks it: attacks, checks, cures.

A language model says how many tokens each answer took (`usage`): then these count, prompt and all, and a
batch is expected to take as many as those before it. A batch that failed stays paid: what was sent may have
been billed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unfooled.checks.asked_before import SameAnswers
from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.errors import UserError
from unfooled.runs.caps import Caps
from unfooled.runs.purse import Purse, tokens_in

if TYPE_CHECKING:
    from unfooled.runs.workers.where import Workers


class Paying(SameAnswers):
    """Raises `CapReachedError` in place of a batch that the purse cannot pay."""

    def __init__(self, inner: Victim, purse: Purse) -> None:
        super().__init__(inner)
        self.purse = purse
        self._usage = _usage_of(inner)
        self._lock = threading.Lock()
        self._last = self._told()
        self._sent = 0  # batches that are out now

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        with self._paid(texts):
            return self.inner.predict(texts)

    async def _answer(self, items: Sequence[Any], /) -> Probabilities:
        inner: Any = self.inner
        with self._paid(items):
            answers: Probabilities = await inner.answer(items)
            return answers

    def _redrawn(self, draw: int, /) -> Victim:
        inner: Any = self.inner
        return Paying(inner.redrawn(draw), self.purse) if draw else self

    @contextmanager
    def _paid(self, texts: Sequence[TextValue]) -> Iterator[None]:
        """Paid before it is sent; corrected once it is answered."""
        paid = self._pay(texts)
        with self._lock:
            self._sent += 1
        try:
            yield
        except BaseException:
            self._settle(paid, failed=True)
            raise
        self._settle(paid)

    def _pay(self, texts: Sequence[TextValue]) -> int:
        if not texts:
            return 0
        tokens = self._expected(texts)
        self.purse.pay(len(texts), tokens)
        return tokens

    def _expected(self, texts: Sequence[TextValue]) -> int:
        answers, tokens = self._told()
        if answers and tokens:
            return round(tokens / answers * len(texts))
        return sum(tokens_in(len(text if isinstance(text, str) else "".join(text))) for text in texts)

    def _settle(self, paid: int, *, failed: bool = False) -> None:
        with self._lock:
            self._sent -= 1
            if self._usage is None or not self.purse.caps.per_token or (failed and self._sent):
                return  # what was counted meanwhile may be of the other batches: they settle it
            answers, tokens = self._told()
            took, self._last = tokens - self._last[1], (answers, tokens)
        if tokens:
            self.purse.settle(max(took - paid, 0) if failed else took - paid)

    def _told(self) -> tuple[int, int]:
        """Answers and tokens, as the model counts them."""
        used = self._usage
        return (0, 0) if used is None else (used.answers, used.prompt_tokens + used.completion_tokens)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in super().__getstate__().items() if name != "_lock"}
        return {**kept, "_usage": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._usage = _usage_of(self.inner)
        self._lock = threading.Lock()
        self._last = self._told()
        self._sent = 0


def purse_for(caps: Caps | None, folder: Path, workers: int | Workers = 1) -> Purse | None:
    """The purse in that folder; None where nothing has a price or an end."""
    if caps is None or (caps.max_hours is None and not caps.priced):
        return None
    if not isinstance(workers, int) and workers.engine != "local":
        raise UserError(
            "what several machines ask cannot be counted in one file",
            "leave --max-cost and --max-hours out, or use --engine local",
        )
    return Purse(folder, caps)


def paying(victim: Victim, purse: Purse | None) -> Victim:
    """The same victim, which pays from the purse; itself where there is none."""
    return victim if purse is None else Paying(victim, purse)


def _usage_of(victim: Any) -> Any:
    """Of the model inside, whatever is around it."""
    while victim is not None:
        own = getattr(victim, "__dict__", {})
        if "usage" in own:
            return own["usage"]
        victim = own.get("inner")
    return None
