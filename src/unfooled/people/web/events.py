"""What an attack does, told step by step while it runs.

A watched search is the same search: it asks the same questions in the same order and ends with the same
result. `AttackEvents` sees every text that was scored and turns it into events for a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from unfooled.core.attempt import Attempt, Row, Scored, Search
from unfooled.core.program import Ask, Program
from unfooled.core.result import Result
from unfooled.report.diffs import pieces, visible
from unfooled.text import Edit

Event = dict[str, Any]
Emit = Callable[[Event], None]

MOST_TRIES = 24  # candidates shown of one step, the best first
MOST_STEPS = 4000  # remembered texts of one attack


@dataclass(frozen=True)
class WatchedSearch:
    """A search whose steps are told to `AttackEvents`."""

    search: Search
    events: AttackEvents

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        self.events.begin(a, start)
        a.watch = self.events.scored
        return (yield from self.search.run(a, start))


class AttackEvents:
    """Turns scores into events: importance of words, candidates tried, edits accepted."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._attempt: Attempt | None = None
        self._start: Scored | None = None
        self._known: dict[tuple[Edit, ...], Row] = {}
        self._accepted: tuple[tuple[Any, ...], ...] = ()

    def begin(self, a: Attempt, start: Scored) -> None:
        self._attempt, self._start = a, start
        text = start.text
        self._emit(
            {
                "kind": "start",
                "words": [visible(word) for word in text.words],
                "gaps": [visible(gap) for gap in text.gaps],
                "others": [
                    [visible(name), visible(content)]
                    for place, (name, content) in enumerate(text.fields)
                    if place != text.field
                ],
                "label": a.label,
                "probs": _rounded(start.probs),
                "queries": a.queries,
            }
        )

    def scored(self, texts: Sequence[Scored], probe: bool) -> None:
        if self._attempt is None or self._start is None or not texts:
            return
        if probe:
            self._probes(texts)
            return
        label = self._attempt.label
        found = [(text, text.text.edits()) for text in texts]
        if len(self._known) < MOST_STEPS:
            self._known.update({_plain(edits): scored.probs for scored, edits in found})
        self._accept(found[0][1])
        best = sorted(found, key=lambda pair: (-pair[0].success, -pair[0].score))[:MOST_TRIES]
        self._emit(
            {
                "kind": "tries",
                "count": len(texts),
                "tries": [
                    [*_shown(_newest(edits)), round(float(scored.probs[label]), 4), bool(scored.success)]
                    for scored, edits in best
                    if edits
                ],
                "queries": self._attempt.queries,
            }
        )

    def _accept(self, edits: Sequence[Edit]) -> None:
        """Edits besides the newest one were accepted before this step."""
        newest = _newest(edits)
        before = [edit for edit in edits if edit is not newest]
        shown = tuple(_shown(edit) for edit in sorted(before, key=lambda edit: edit.step))
        if shown == self._accepted or self._attempt is None:
            return
        self._accepted = shown
        probs = self._known.get(_plain(before))
        self._emit(
            {
                "kind": "accepted",
                "edits": [list(edit) for edit in shown],
                "probs": None if probs is None else _rounded(probs),
                "queries": self._attempt.queries,
            }
        )

    def _probes(self, texts: Sequence[Scored]) -> None:
        """A word deleted or masked: how far the true class falls is what the word is worth."""
        worth = {}
        for text in texts:
            edits = text.text.edits()
            if len(edits) == 1:
                worth[edits[0].position] = self._fall(text.probs)
        self._tell_worth(worth)

    def answered(self, asks: Sequence[Ask], answers: Sequence[Sequence[Any]]) -> None:
        """Importance that comes from inside the victim: gradients, attention, vectors set to zero."""
        if self._start is None:
            return
        count = len(self._start.text.words)
        for (oracle, items), found in zip(asks, answers, strict=True):
            kind = oracle.partition(":")[0]
            if kind == "zeroed":
                rows = zip(cast("Sequence[tuple[Any, int]]", items), found, strict=True)
                self._tell_worth({place: self._fall(row) for (_, place), row in rows})
            elif kind in ("gradients", "attention") and len(found) == 1:
                values = found[0].norms if kind == "gradients" else found[0]
                if len(values) == count:
                    self._tell_worth({i: round(float(value), 4) for i, value in enumerate(values)})

    def _fall(self, probs: Row) -> float:
        assert self._start is not None
        assert self._attempt is not None
        label = self._attempt.label
        return round(float(self._start.probs[label] - probs[label]), 4)

    def _tell_worth(self, worth: Mapping[int, float]) -> None:
        if worth and self._attempt is not None:
            self._emit({"kind": "importance", "worth": worth, "queries": self._attempt.queries})

    def end(self, result: Result, seconds: float) -> None:
        self._emit(
            {
                "kind": "done",
                "outcome": result.outcome,
                "note": visible(result.note),
                "label": result.label,
                "pieces": [[piece.kind, visible(piece.text)] for piece in pieces(result)],
                "others": [
                    [visible(name), visible(content)]
                    for place, (name, content) in enumerate(result.fields)
                    if place != result.field
                ],
                "edits": [list(_shown(edit)) for edit in sorted(result.edits, key=lambda edit: edit.step)],
                "before": [round(p, 4) for p in result.probs],
                "probs": [round(p, 4) for p in result.perturbed_probs],
                "queries": result.queries,
                "words": result.words,
                "similarity": result.similarity,
                "seconds": round(seconds, 2),
            }
        )


def renamed(
    program: Program[Any],
    names: Callable[[str], str],
    answered: Callable[[Sequence[Ask], Sequence[Sequence[Any]]], None],
) -> Program[Any]:
    """The same program with its questions sent to other names, so that several victims share an engine."""
    try:
        asks = next(program)
        while True:
            try:
                answers = yield [Ask(names(ask.oracle), ask.items) for ask in asks]
            except Exception as error:
                asks = program.throw(error)
                continue
            answered(asks, answers)
            asks = program.send(answers)
    except StopIteration as stop:
        return stop.value
    finally:
        program.close()


def _newest(edits: Sequence[Edit]) -> Edit | None:
    return max(edits, key=lambda edit: edit.step, default=None)


def _plain(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same for the same changes, whatever came after them."""
    return tuple(edit._replace(at=0, step=0) for edit in edits)


def _shown(edit: Edit | None) -> tuple[Any, ...]:
    if edit is None:
        return (-1, "replace", "", "")
    return (edit.position, edit.kind, visible(edit.before), visible(edit.after))


def _rounded(probs: Row) -> list[float]:
    return [round(float(p), 4) for p in np.asarray(probs)]
