"""Synonyms from Datamuse, a public word-finding service (https://www.datamuse.com/api/).

    item    (relation, word)            such as ("rel_syn", "ocean")
    answer  tuple[str, ...] | None      single words, the service's best first; None: not known, and offline

The oracle `datamuse:ADDRESS` asks the service at that address, a few requests at a time and not more than
`RATE` per second. Every answer is kept on disk for good, so a word is asked once per machine and an
interrupted run goes on with the same answers. `datamuse:cached:ADDRESS` never asks: it has what is on disk.

Busy answers (429, 5xx), silence and broken connections are tried again after a wait that doubles, or as long
as the server says. A service that stays away ends the run with what is finished saved; an answer that makes
no sense is an error of the examples that need that word.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from unfooled.bodies import UNPACKED, Body, BodyError
from unfooled.errors import MissingExtraError, OracleError, ResourceError
from unfooled.extras import libraries_of
from unfooled.resources import store
from unfooled.resources.answers import AnswerCache
from unfooled.retrying import retry_after
from unfooled.text import WORD

ADDRESS = "https://api.datamuse.com"
MOST = 100  # words per answer
RATE = 10.0  # requests per second: a day of it stays below what the service gives away
LONGEST_WAIT = 60.0  # seconds, whatever Retry-After asks for
_CACHED = "cached:"
_PROBE = ("rel_syn", "good")
_INVALID = "the address is not valid"


class DatamuseOracle:
    """Answers from disk first, then from the service."""

    batch_size = 256

    def __init__(
        self,
        address: str = ADDRESS,
        *,
        cache: AnswerCache,
        timeout: float = 10.0,
        tries: int = 5,
        backoff: float = 0.5,
        rate: float = RATE,
        concurrency: int = 4,
    ) -> None:
        self.address = address.rstrip("/")
        self.requests = 0  # sent so far
        self._cache = cache
        self._timeout = timeout
        self._tries = tries
        self._backoff = backoff
        self._interval = 1.0 / rate
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._next = 0.0
        self._client: Any = None
        # The engine halves a failed batch until the bad word is alone: it need not be asked each time.
        self._bad: dict[str, OracleError] = {}

    def __call__(self, items: Sequence[tuple[str, str]], /) -> list[tuple[str, ...]]:
        questions = [_question(*item) for item in items]
        known = self._cache.get(self.address, questions)
        missing = [question for question in dict.fromkeys(questions) if question not in known]
        known |= self._fetch_all([question for question in missing if question not in self._bad])
        for question in missing:
            if question in self._bad:
                raise self._bad[question]
        return [tuple(known[question]) for question in questions]

    def _fetch_all(self, questions: Sequence[str]) -> dict[str, list[str]]:
        """Ask for all, keep on disk whatever comes, and only then report what went wrong."""
        if not questions:
            return {}
        if self._client is None:
            self._client = _client(self._timeout)
        found: dict[str, list[str]] = {}
        gone: ResourceError | None = None
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="unfooled-datamuse")
        try:
            sent: dict[Future[list[str]], str] = {
                pool.submit(self._fetch, question): question for question in questions
            }
            for future in as_completed(sent):
                if future.cancelled():
                    continue
                try:
                    found[sent[future]] = future.result()
                except OracleError as error:
                    self._bad[sent[future]] = error
                except ResourceError as error:
                    gone = gone or error
                    pool.shutdown(wait=False, cancel_futures=True)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            self._cache.put(self.address, found)
        if gone is not None:
            raise gone
        return found

    def _fetch(self, question: str) -> list[str]:
        trouble = _Trouble("it was not asked")
        for attempt in range(self._tries):
            self._take_turn()
            reply = _get(self._client, self.address, question)
            if not isinstance(reply, _Trouble):
                return reply
            repeated = trouble.nonsense and reply.nonsense
            trouble = reply
            if trouble.final or repeated:
                break
            if attempt + 1 < self._tries:
                time.sleep(min(LONGEST_WAIT, max(self._backoff * 2**attempt, trouble.wait)))
        if trouble.nonsense:
            raise OracleError(f"Datamuse at {self.address} answered {trouble.problem} to {question!r}")
        raise ResourceError(
            f"Datamuse at {self.address} gave no answer: {trouble.problem}",
            "finished examples are saved: repeat the command later, or use --candidates wordnet "
            "with another --out",
        )

    def _take_turn(self) -> None:
        """Wait until one more request keeps to the rate."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._interval
            self.requests += 1
        time.sleep(start - now)


class CachedDatamuse:
    """Only what is on disk; None for any other word."""

    batch_size = 1 << 14

    def __init__(self, address: str, cache: AnswerCache) -> None:
        self.address = address
        self._cache = cache

    def __call__(self, items: Sequence[tuple[str, str]], /) -> list[tuple[str, ...] | None]:
        questions = [_question(*item) for item in items]
        known = self._cache.get(self.address, questions)
        return [tuple(known[question]) if question in known else None for question in questions]


class _Trouble(NamedTuple):
    problem: str
    wait: float = 0.0
    nonsense: bool = False  # something came, but no list of words; believed when it comes twice
    final: bool = False  # trying again would not help


def _get(client: Any, address: str, question: str) -> list[str] | _Trouble:
    """One request: the words, or what went wrong."""
    import httpx

    relation, _, word = question.partition("=")
    try:
        status, wait, content = _read(client, f"{address}/words", {relation: word, "max": MOST})
    except BodyError as error:
        return _Trouble(str(error), nonsense=True)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        return _Trouble(f"{_INVALID}: {error}", final=True)
    except httpx.TimeoutException:
        return _Trouble("a timeout")
    except httpx.TransportError as error:
        return _Trouble(f"{type(error).__name__}: {error}")
    if status == 429 or status >= 500:
        return _Trouble(f"status {status}", wait=retry_after(wait))
    if status != 200:
        return _Trouble(f"status {status}: check the address", final=True)
    try:
        return _words(json.loads(content))
    except (ValueError, RecursionError):
        return _Trouble(
            f"no list of words, but {content[:320].decode(errors='replace')[:80]!r}", nonsense=True
        )


def _read(client: Any, url: str, parameters: dict[str, Any]) -> tuple[int, str, bytes]:
    """Status, Retry-After and body. The time is for the whole body, however its bytes come, and so is the
    limit on its size."""
    import httpx

    until = time.monotonic() + float(client.timeout.read)
    with client.stream("GET", url, params=parameters) as response:
        body = Body(response.headers.get("content-encoding", ""))
        for chunk in response.iter_raw():
            body.add(chunk)
            if time.monotonic() > until:
                raise httpx.ReadTimeout("the whole answer took too long")
        return response.status_code, response.headers.get("retry-after", ""), body.finish()


def _words(reply: Any) -> list[str]:
    """Single words of `[{"word": …, "score": …}, …]`, in order; ValueError where that is not what came."""
    if not isinstance(reply, list):
        raise ValueError("not a list")
    found: dict[str, None] = {}
    for entry in reply:
        if not isinstance(entry, dict) or not isinstance(entry.get("word"), str):
            raise ValueError("an entry without a word")
        if WORD.fullmatch(entry["word"]):
            found[entry["word"]] = None
    return list(found)


def _client(timeout: float) -> Any:
    with libraries_of("http", "httpx", needed_for="Datamuse"):
        import httpx
    patience = httpx.Timeout(timeout, connect=min(timeout, 5.0))
    headers = {"user-agent": "unfooled", "accept-encoding": UNPACKED}
    return httpx.Client(timeout=patience, headers=headers, follow_redirects=False)


def _question(relation: str, word: str) -> str:
    return f"{relation}={word}"


def answer_cache() -> AnswerCache:
    return AnswerCache(store.cache_dir() / "datamuse" / "answers.sqlite")


def unreachable(address: str = ADDRESS, *, timeout: float = 3.0) -> str:
    """Why the service cannot be used now; empty where it can. One short request."""
    if os.environ.get("UNFOOLED_OFFLINE"):
        return "UNFOOLED_OFFLINE is set"
    try:
        client = _client(timeout)
    except MissingExtraError as error:
        return str(error.cause) + ": " + error.remedy
    with client:
        reply = _get(client, address.rstrip("/"), _question(*_PROBE))
    if isinstance(reply, _Trouble) and reply.problem.startswith(_INVALID):
        raise ResourceError(f"Datamuse at {address!r}: {reply.problem}", f"write it like {ADDRESS}")
    if isinstance(reply, list) or reply.problem == "status 429":  # busy is not away
        return ""
    return reply.problem


def open_datamuse(variant: str = "") -> DatamuseOracle | CachedDatamuse:
    """`ADDRESS` asks the service; `cached:ADDRESS` has only what is on disk."""
    if variant.startswith(_CACHED):
        return CachedDatamuse(variant.removeprefix(_CACHED).rstrip("/"), answer_cache())
    return DatamuseOracle(variant or ADDRESS, cache=answer_cache())


def fingerprint(variant: str) -> str:
    """The service has no version, so online this is its address; offline, the answers on disk."""
    if not variant.startswith(_CACHED):
        return (variant or ADDRESS).rstrip("/")
    address = variant.removeprefix(_CACHED).rstrip("/")
    count, digest = answer_cache().digest(address)
    return f"{address}, {count} kept answers {digest}"
