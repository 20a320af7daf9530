"""A server of chat completions that classifies as the fake victim does, and fails to order."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from typing import Any

from loopback import LoopbackServer
from unfooled.victims.fake import FakeVictim

FAULTS = ("500", "429", "cut", "no JSON", "hang up", "503", "slow")


class ChatServer(LoopbackServer):
    """`gives`: logprobs, json or words, what it understands. `faulty` is the share of failing questions.

    A question fails on its first try, on some also on the second, by the digest of its text: the same texts
    always fail in the same way, in whatever order they come.
    """

    def __init__(self, gives: str = "logprobs", *, faulty: float = 0.0, slow: float = 2.0) -> None:
        self.gives = gives
        self.faulty = faulty
        self.slow = slow
        self.say: dict[str, Any] = {}  # what the first choice holds, in place of what it would
        self.asked: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.answered = 0
        self._tries: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__("/v1")

    def answer(
        self, path: str, document: Any, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]] | None:
        assert path == "/v1/chat/completions", path
        fault = self._fault(document)
        whole = json.dumps(self._completion(document)).encode()
        if fault == "slow":
            time.sleep(self.slow)
        if fault == "429":
            return 429, b"{}", {"retry-after": "0"}
        if fault in ("500", "503"):
            return int(fault), b"{}", {}
        if fault == "hang up":
            return None
        if fault == "cut":
            return 200, whole[: len(whole) // 2], {}
        if fault == "no JSON":
            return 200, b"<html>busy</html>", {}
        if self.gives != "json" and "response_format" in document:
            return 400, b'{"error": "response_format is not known"}', {}
        with self._lock:
            self.answered += 1
        return 200, whole, {}

    def _fault(self, document: dict[str, Any]) -> str:
        number = hashlib.sha256(json.dumps(document["messages"]).encode()).digest()
        with self._lock:
            self.asked.append(document)
            tries = self._tries[number.hex()] = self._tries.get(number.hex(), 0) + 1
            if number[0] / 256 >= self.faulty or tries > 1 + number[1] % 2:
                return ""
            self.faults.append(FAULTS[number[2 + tries] % len(FAULTS)])
            return self.faults[-1]

    def _completion(self, document: dict[str, Any]) -> dict[str, Any]:
        system, user = (message["content"] for message in document["messages"])
        if "\n" not in user:  # no question about classes
            return {"choices": [{"message": {"content": user}} | self.say]}
        offered = dict(re.findall(r"^([A-Z]): (\w+)$", system, re.MULTILINE))
        text = user.split("\n", 1)[1].rsplit("\n", 2)[0]
        victim = FakeVictim()
        scores = dict(zip(victim.labels, victim.predict([text])[0].tolist(), strict=True))
        by_letter = {letter: scores[label] for letter, label in offered.items()}
        best = max(by_letter, key=lambda letter: by_letter[letter])
        said = json.dumps({"label": best}) if "response_format" in document else best
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        if self.gives == "logprobs" and document.get("logprobs"):
            top = [
                {"token": token, "logprob": math.log(max(score, 1e-9))}
                for letter, score in by_letter.items()
                for token, score in ((letter, 0.7 * score), (f" {letter.lower()}", 0.2 * score))
            ]
            choice["logprobs"] = {"content": [{"top_logprobs": [*top, {"token": "The", "logprob": -3.0}]}]}
        return {"choices": [choice | self.say], "usage": {"prompt_tokens": 50, "completion_tokens": 1}}
