"""Attacks under way, by visitor: what happened so far, who listens, and when nobody does any more."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from unfooled.errors import UserError
from unfooled.people.web.attack_service import AttackRequest, AttackService, RunningAttack

MOST_VISITS = 32  # attacks at once, all visitors together
PATIENCE = 5.0  # seconds without a listener before an attack is given up
KEPT = 120.0  # seconds that a finished one can still be read
PING = 10.0

Command = Callable[[int, int], str]  # of a model and the class that was attacked: how to repeat it


class Visit:
    """One press of the button: an attack on one or two victims. Only its number leads to it."""

    def __init__(self, service: AttackService, loop: asyncio.AbstractEventLoop) -> None:
        self.id = secrets.token_urlsafe(18)
        self.over = False
        self._service = service
        self._loop = loop
        self._running: list[RunningAttack] = []
        self._open: set[int] = set()
        self._events: list[str] = []
        self._lock = threading.Lock()
        self._listeners: set[asyncio.Event] = set()

    def begin(self, request: AttackRequest, command: Command) -> None:
        """May take a while when an attack is used first: call it in a thread."""
        models = range(len(self._service.victims))
        for model in models:
            self._service.prepare(request.attack, model)
        self._open = set(models)
        self._running = [
            self._service.begin(request, model, self._emitter(model, command)) for model in models
        ]
        if self.over:  # cancelled while it began
            self.cancel()

    def cancel(self) -> None:
        for running in self._running:
            self._service.cancel(running)
        with self._lock:
            if not self.over:
                self._events.append(json.dumps({"kind": "cancelled"}))
                self.over = True
        self._wake()

    @property
    def watched(self) -> bool:
        return bool(self._listeners)

    async def listen(self, after: int) -> AsyncIterator[str]:
        """Server-sent events from number `after` on, until the last one."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            while True:
                news.clear()
                while after < len(self._events):
                    yield f"id: {after}\ndata: {self._events[after]}\n\n"
                    after += 1
                if self.over and after >= len(self._events):
                    yield "event: end\ndata: {}\n\n"
                    return
                try:
                    await asyncio.wait_for(news.wait(), PING)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(news)

    def _emitter(self, model: int, command: Command) -> Callable[[dict[str, Any]], None]:
        def emit(event: dict[str, Any]) -> None:
            if "label" in event:
                event = event | {"command": command(model, event["label"])}
            with self._lock:
                if self.over:
                    return
                self._events.append(json.dumps({"model": model, **event}))
                if event["kind"] in ("done", "failed"):
                    self._open.discard(model)
                    self.over = not self._open
            # The engine's thread must not touch the loop itself, which may be gone at the end.
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._wake)

        return emit

    def _wake(self) -> None:
        for news in self._listeners:
            news.set()


class Visits:
    """All of them. Runs in the server's loop."""

    def __init__(self, service: AttackService) -> None:
        self._service = service
        self._visits: dict[str, Visit] = {}

    async def begin(self, request: AttackRequest, command: Command) -> Visit:
        if sum(not visit.over for visit in self._visits.values()) >= MOST_VISITS:
            raise UserError("too many attacks are under way", "try again when some have ended")
        visit = Visit(self._service, asyncio.get_running_loop())
        self._visits[visit.id] = visit  # it has its place before it begins: others begin meanwhile
        try:
            await asyncio.to_thread(visit.begin, request, command)
        except BaseException:
            del self._visits[visit.id]
            raise
        self._look_after(visit, seen=False)
        return visit

    def close(self) -> None:
        """Everybody who listens is told that it is over."""
        for visit in list(self._visits.values()):
            visit.cancel()

    def get(self, number: str) -> Visit | None:
        return self._visits.get(number)

    def _look_after(self, visit: Visit, *, seen: bool) -> None:
        """An attack that nobody watches twice in a row is given up; a finished one is forgotten later."""
        loop = asyncio.get_running_loop()
        if visit.over:
            loop.call_later(KEPT, self._visits.pop, visit.id, None)
        elif not visit.watched and not seen:
            loop.call_later(PATIENCE, lambda: self._look_after(visit, seen=True))
        elif not visit.watched:
            visit.cancel()
            loop.call_later(KEPT, self._visits.pop, visit.id, None)
        else:
            loop.call_later(PATIENCE, lambda: self._look_after(visit, seen=False))
