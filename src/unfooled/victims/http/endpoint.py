"""A classifier behind an HTTP endpoint that speaks JSON.

A request carries a list of texts at `input_field`; the answer holds one entry per text at `output_field`,
in any of the forms of `unfooled.victims.answers`. Both are dotted paths (`data.texts`, `result.0.scores`);
an empty one means the whole document. A pair of texts travels as a list `[premise, hypothesis]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from unfooled.core.victim import (
    SPECIMEN,
    Probabilities,
    Reloadable,
    TextValue,
    digest,
    option,
    options_of,
    require_not_negative,
    require_positive,
)
from unfooled.core.victim_oracle import ScoreRange, validate
from unfooled.errors import VictimError
from unfooled.retrying import retry_after
from unfooled.victims.answers import Answers, find_labels, interpret
from unfooled.victims.http.connection import Connection, Reply, Silence, UnreachableError
from unfooled.victims.http.json_fields import as_object, dig, parse, put

RETRIED = frozenset({429, 500, 502, 503, 504})
_OPENING = threading.Lock()  # callers in several threads must share one line
CONNECTIONS = 3  # tries after which a refused connection is believed
FIRST_WORDS = 1  # tries after which an endpoint that took every call but never answered is given up
LONGEST_WAIT = 120.0  # seconds, whatever Retry-After asks for
ABSURD_WAIT = 3600.0  # seconds; who asks for more is not waited for at all
FIRST_SENSE = 4  # tries after which answers that are none are believed, where nothing else ever came
NO_SENSE = 8  # answers that are none, after which each further question of such an endpoint has one try

T = TypeVar("T")

_TOKEN = f"give a valid token: {option('headers', {'authorization': 'env:NAME'})}"
_SILENT = f"is the server running? if it is only slow: {option('timeout', 60)}"
_GARBLED = "it breaks the rules of HTTP, perhaps by far too many headers: check the address and see its log"
_REMEDIES = {
    401: _TOKEN,
    403: _TOKEN,
    404: "check the address",
    422: f"check the fields, such as {option('input_field', 'texts')}, and body=",
    429: f"ask more slowly: {option('concurrency', 1)}, or {option('rate_limit', 2)}",
}


class RefusedError(VictimError):
    """The endpoint is there, but does not like what it was sent."""


class HttpVictim(Reloadable):
    """Asks an endpoint, several requests at once, patiently.

    A header value `env:NAME` is read from the environment when a request is made, so a token stands neither
    on the command line nor in a run file. `timeout` is for the whole answer. Busy answers (429, 500, 502,
    503, 504), redirects, broken connections and answers of status 200 that are none (cut JSON, NaN, a row too
    few) are tried again after `backoff` seconds, then twice that, and so on, or when the server says so; a
    connection that nobody takes is tried four times at most, one that is taken but never answered twice, and
    an endpoint that never made sense is believed soon. What does not depend on the text (nobody there, a
    wrong address or token, no answer to a short text either) raises `UnreachableError`, which ends a run.

    Example:

        >>> victim = unfooled.HttpVictim("http://localhost:8000/classify", labels=["negative", "positive"])
        >>> victim.name, victim.batch_size  # nothing is asked before an attack does
        ('localhost', 32)
    """

    def __init__(
        self,
        url: str,
        *,
        labels: Sequence[str] | None = None,
        name: str = "",
        input_field: str = "texts",
        output_field: str = "probabilities",
        single: bool = False,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        logits: bool = False,
        batch_size: int = 32,
        concurrency: int = 4,
        timeout: float = 30.0,
        retries: int = 5,
        backoff: float = 0.5,
        rate_limit: float = 0.0,
    ) -> None:
        self.url = url
        self.name = name or urlsplit(url).hostname or url
        self.input_field = input_field
        self.output_field = output_field
        self.single = single
        self.body = dict(body or {})
        self.headers = dict(headers or {})
        self.logits = logits
        self.batch_size = batch_size
        self.concurrency = concurrency
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.rate_limit = rate_limit  # requests per second; 0 means as many as they come
        self._labels = None if labels is None else tuple(labels)
        self._hard: bool | None = None
        self._line: Connection | None = None
        self._heard = False  # whether it ever answered
        self._understood = False  # whether an answer ever made sense
        self._nonsense = 0  # answers that made none
        self.raw_range = ScoreRange()  # of the numbers that a softmax was applied to

    # -- what a victim is ----------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        if self._labels is None:
            self._labels = self._look(find_labels)
        return self._labels

    @property
    def capabilities(self) -> frozenset[str]:
        if self._hard is None and self.labels:  # which may ask the endpoint, so before the loop is busy
            self._hard = self._look(self._read).hard
        return frozenset() if self._hard else frozenset({"probabilities"})

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        labels = self.labels  # may ask the endpoint, so before the loop is busy
        if not texts:
            return np.zeros((0, len(labels)))
        return self._on_line().wait(self._predict(texts))

    async def answer(self, items: Sequence[Any], /) -> Probabilities:
        """The same for a caller that has an event loop; calls may overlap."""
        if self._labels is None:
            await asyncio.to_thread(lambda: self.labels)
        if not items:
            return np.zeros((0, len(self.labels)))
        return await self._on_line().join(self._predict(items))

    def fingerprint(self) -> str:
        """Follows the address and the fields. A model that changes behind them cannot be seen."""
        parts = urlsplit(self.url)
        place = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        body = json.dumps(self.body, sort_keys=True)
        fields = (self.input_field, self.output_field, self.single, body, self.logits)
        return digest("http", place, *fields, self.labels)

    def close(self) -> None:
        """Let go of the connections; the next question opens new ones."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_line": None}

    # -- requests ------------------------------------------------------------------------------------

    def _on_line(self) -> Connection:
        with _OPENING:
            if self._line is None:
                self._line = Connection(
                    concurrency=self.concurrency, timeout=self.timeout, rate_limit=self.rate_limit
                )
                weakref.finalize(self, self._line.close)
            return self._line

    def _read(self, entries: list[Any]) -> Answers:
        """Checked here, where an answer that is none can still be asked for again."""
        answers = interpret(entries, len(entries), self.labels, logits=self.logits)
        validate(answers.scores, len(entries), self.labels, self.name)
        self.raw_range = self.raw_range.with_(answers.raw)
        return answers

    def _look(self, read: Callable[[list[Any]], T]) -> T:
        """What the answer to one text shows, or to one pair where the endpoint refuses a plain text."""
        line = self._on_line()
        try:
            return line.wait(self._ask([SPECIMEN], read))
        except RefusedError as error:
            try:
                return line.wait(self._ask([(SPECIMEN, SPECIMEN)], read))
            except VictimError:
                raise error from None

    async def _predict(self, texts: Sequence[TextValue]) -> Probabilities:
        size = 1 if self.single else self.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        answers = await all_or_none([self._ask(batch, self._read) for batch in batches])
        # Scores once, scores for ever: a batch of ones and zeros says nothing against it.
        self._hard = all(answer.hard for answer in answers) and self._hard is not False
        return np.concatenate([answer.scores for answer in answers])

    def _entries(self, reply: Reply, count: int) -> list[Any]:
        """What a good answer holds: one entry per text."""
        if reply.problem:
            raise VictimError(
                f"{self._place} answered {reply.problem}",
                f"check the address; if its answers are long, ask less at once: {option('batch_size', 1)}",
            )
        found = dig(parse(reply.content, self._place), self.output_field, self._place)
        if self.single:
            # Some servers wrap the one answer in a list of one.
            wrapped = isinstance(found, list) and len(found) == 1 and isinstance(found[0], (list, str))
            return found if wrapped else [found]
        if not isinstance(found, list):
            raise VictimError(
                f"{self._place} has a {type(found).__name__} at {self.output_field or '(root)'!r}, no list",
                f"name the list with one entry per text, such as {option('output_field', 'result.scores')}; "
                "an empty path means the whole answer",
            )
        if len(found) != count:
            raise VictimError(
                f"{self._place} answered {len(found)} entries to {count} texts",
                f"name the list with one entry per text, such as {option('output_field', 'result.scores')}; "
                f"for one text per request: {option('single', True)}",
            )
        return found

    def _content(self, batch: Sequence[TextValue]) -> bytes:
        sent = [text if isinstance(text, str) else list(text) for text in batch]
        document = put(self.body, self.input_field, sent[0] if self.single else sent)
        return json.dumps(document, ensure_ascii=False).encode()

    async def _ask(self, batch: Sequence[TextValue], read: Callable[[list[Any]], T]) -> T:
        """What `read` makes of the answer to one request, after as many tries as are allowed."""
        line, content, headers = self._on_line(), self._content(batch), self._all_headers()
        wait = 0.0
        for attempt in range(self.retries + 1):
            if attempt:
                await asyncio.sleep(wait)
            wait = min(LONGEST_WAIT, self.backoff * 2.0 ** min(attempt, 60))
            reply = await line.post(self.url, content, headers)
            if isinstance(reply, Silence):
                status, problem = 0, reply.reason
                remedy = _GARBLED if reply.garbled else _SILENT
                if not reply.connected and attempt >= CONNECTIONS:
                    break  # nobody listens there; a restart takes less than these tries
                if reply.slow and attempt >= FIRST_WORDS and not self._heard:
                    break
                continue
            self._heard = True
            status = reply.status
            if status == 200:
                try:
                    answer = read(self._entries(reply, len(batch)))
                except RefusedError:
                    raise  # said clearly enough, and would be said again
                except VictimError as error:
                    nonsense = error.with_traceback(None)  # which would keep the whole answer
                    if self._makes_no_sense(attempt):
                        break
                    continue
                self._understood = True
                return answer
            problem, remedy = self._complaint(reply)
            if status not in RETRIED and not 300 <= status < 400:
                refusal = UnreachableError if status in (401, 403, 404) else RefusedError
                raise refusal(f"{self._place} answered {problem}", remedy)
            if status not in RETRIED and self._makes_no_sense(attempt):
                break
            asked_for = retry_after(reply.retry_after)
            if asked_for <= ABSURD_WAIT:
                wait = max(wait, min(LONGEST_WAIT, asked_for))
        del reply  # an error keeps this frame for as long as somebody keeps the error
        if status == 200:
            times = f" ({attempt + 1} times in a row)" if attempt else ""
            raise type(nonsense)(f"{nonsense.cause}{times}", nonsense.remedy)
        # A server that breaks on one text still answers another; only one that does not is gone.
        if status in RETRIED or not status:
            lost = status != 500 and not await self._is_alive(batch)
        else:
            lost = not self._understood  # a redirect
        kind = UnreachableError if lost else RefusedError
        raise kind(f"{self._place} failed {attempt + 1} times, last with {problem}", remedy)

    def _makes_no_sense(self, attempt: int) -> bool:
        """Whether answers that are none are to be believed: a wrong field is said soon, not after minutes."""
        self._nonsense += 1
        return not self._understood and (attempt + 1 >= FIRST_SENSE or self._nonsense >= NO_SENSE)

    def _complaint(self, reply: Reply) -> tuple[str, str]:
        """What is wrong with an answer that is not of status 200, and what helps."""
        status = reply.status
        if 300 <= status < 400:
            place = _without_secrets(reply.location[:300])
            return (
                f"status {status}, a redirect to {place!r}",
                "redirects are not followed: check the address",
            )
        problem = f"status {status}: {_start(reply.content)!r}"
        asked_for = retry_after(reply.retry_after)
        if asked_for > ABSURD_WAIT:
            return problem, f"it asks to come back in {asked_for / 3600:,.0f} hours: repeat the command then"
        fallback = "see the server's log" if status >= 500 else "check the address and the fields"
        return problem, _REMEDIES.get(status, fallback)

    async def _is_alive(self, batch: Sequence[TextValue]) -> bool:
        """Whether a short text of the same shape gets any answer but "not now"."""
        first = batch[0]
        specimen = SPECIMEN if isinstance(first, str) else (SPECIMEN,) * len(first)
        reply = await self._on_line().post(self.url, self._content([specimen]), self._all_headers())
        return not isinstance(reply, Silence) and reply.status not in RETRIED

    def _all_headers(self) -> dict[str, str]:
        return {"content-type": "application/json", **self._resolved_headers()}

    def _resolved_headers(self) -> dict[str, str]:
        resolved = {}
        for key, value in self.headers.items():
            scheme, blank, last = value.rpartition(" ")
            if last.startswith("env:"):
                variable = last.removeprefix("env:")
                if variable not in os.environ:
                    raise UnreachableError(
                        f"the header {key} wants the environment variable {variable}", f"export {variable}=…"
                    )
                value = scheme + blank + os.environ[variable]
            resolved[key] = value
        return resolved

    @property
    def _place(self) -> str:
        return _without_secrets(self.url)


async def all_or_none(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them come to; where one fails, the others are called off and waited for."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


@options_of(HttpVictim)
def load(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> HttpVictim:
    """`http://HOST/PATH` or `https://HOST/PATH`; `body` and `headers` may be JSON text"""
    if not urlsplit(rest).netloc:
        raise VictimError(f"{rest!r} names no host", "write http://HOST/PATH")
    require_positive(**{name: options[name] for name in ("batch_size", "concurrency", "timeout")})
    require_not_negative(**{name: options[name] for name in ("retries", "backoff", "rate_limit")})
    headers = as_object("headers", options["headers"])
    options["headers"] = {key: str(value) for key, value in headers.items()}
    options["body"] = as_object("body", options["body"])
    return HttpVictim(rest, labels=labels, **options)


def _without_secrets(address: str) -> str:
    """An address without user, password and query."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a server may call anything an address
        return "?"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _start(content: bytes) -> str:
    return content[:800].decode(errors="replace")[:200]
