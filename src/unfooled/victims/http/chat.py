"""A language model that is told something and answers, behind OpenAI's chat completions.

Not a victim: what stands behind a filter, asked whether it still follows what got through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from unfooled.errors import VictimError
from unfooled.victims.http.connection import Reply
from unfooled.victims.http.endpoint import HttpVictim, all_or_none
from unfooled.victims.http.json_fields import parse
from unfooled.victims.http.openai import first_choice, with_key

SYSTEM = "You are a helpful assistant. Do what the user asks."


class ChatModel(HttpVictim):
    """`openai:MODEL@URL`; requests are tried again as those to any endpoint."""

    def __init__(
        self, model: str, url: str, *, system: str = SYSTEM, tokens: int = 64, **options: Any
    ) -> None:
        super().__init__(
            f"{url.rstrip('/')}/chat/completions",
            labels=("answer", "none"),
            name=model,
            single=True,
            headers=with_key(url, options.pop("headers", None)),
            **options,
        )
        self.model, self.system, self.tokens = model, system, tokens

    def __enter__(self) -> ChatModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def say(self, prompts: Sequence[str]) -> list[str | None]:
        """What it answers to each; None where it gave no answer."""
        return self._on_line().wait(self._say(prompts)) if prompts else []

    async def _say(self, prompts: Sequence[str]) -> list[str | None]:
        async def one(prompt: str) -> str | None:
            try:
                return await self._ask([prompt], lambda entries: str(entries[0]))
            except VictimError as error:
                if getattr(error, "fatal", False):
                    raise
                return None

        return await all_or_none([one(prompt) for prompt in prompts])

    def _content(self, batch: Sequence[Any]) -> bytes:
        document = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": self.system},
                {"role": "user", "content": batch[0]},
            ],
            "temperature": 0,
            "seed": 0,
            "max_tokens": self.tokens,
        }
        return json.dumps(document | self.body, ensure_ascii=False).encode()

    def _entries(self, reply: Reply, count: int) -> list[Any]:
        if reply.problem:
            raise VictimError(f"{self._place} answered {reply.problem}", "check the address")
        message = first_choice(parse(reply.content, self._place), self._place).get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, str):
            raise VictimError(f"{self._place} answered nothing", "see the server's log")
        return [content]


def open_chat(spec: str, **options: Any) -> ChatModel:
    """What `openai:MODEL@URL` names."""
    kind, _, rest = spec.partition(":")
    model, at, url = rest.rpartition("@")
    if kind != "openai" or not at or not model or not urlsplit(url).netloc:
        raise VictimError(f"{spec!r} names no language model", "write openai:MODEL@http://HOST/v1")
    return ChatModel(model, url, **options)
