"""Somebody who watches a run."""

from __future__ import annotations

from unfooled.runs.attack import Observer


class Notices(Observer):
    """Keeps what a run says aloud."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def note(self, message: str) -> None:
        self.notices.append(message)
