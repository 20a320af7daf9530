"""The wire under an HTTP victim: one client, a limit on requests at once and on requests per second."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple, TypeVar

from unfooled.bodies import UNPACKED, Body, BodyError
from unfooled.errors import VictimError
from unfooled.extras import libraries_of

T = TypeVar("T")

CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 5.0


class UnreachableError(VictimError):
    """No answer, whatever the text: the engine stops at once instead of looking for a bad text."""

    fatal = True


class Silence(NamedTuple):
    """Why there is no response."""

    reason: str
    connected: bool  # somebody took the call, so the text may be what they choke on
    slow: bool = False  # the time was up
    garbled: bool = False  # what came back is no HTTP, or its headers have no end


class Reply(NamedTuple):
    """What came back within the time."""

    status: int
    content: bytes
    retry_after: str = ""
    location: str = ""
    problem: str = ""  # what is wrong with the body, of which `content` is only the start then


class Connection:
    """One client on one event loop in one thread, so that sync and async callers share its connections."""

    def __init__(self, *, concurrency: int, timeout: float, rate_limit: float) -> None:
        with libraries_of("http", "httpx", needed_for="an HTTP victim"):
            import httpx
        self._httpx = httpx
        self._timeout = timeout
        self._interval = 1.0 / rate_limit if rate_limit > 0 else 0.0
        self._next = 0.0
        self._slots = asyncio.Semaphore(concurrency)
        # Who does not take a call within seconds is not there, however long an answer may take.
        patience = httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        self._client = httpx.AsyncClient(
            timeout=patience,
            follow_redirects=False,
            headers={"accept-encoding": UNPACKED},
            # No answer may depend on the ones before it, nor what is kept of them grow.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
        self._loop = asyncio.new_event_loop()
        try:
            self._thread = threading.Thread(target=self._loop.run_forever, name="unfooled-http", daemon=True)
            self._thread.start()
        except BaseException:  # Ctrl-C, say
            self._abandon()
            raise

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def join(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def post(self, url: str, content: bytes, headers: dict[str, str]) -> Reply | Silence:
        """What came back, whole, before the time was up."""
        async with self._slots:
            if self._interval:
                now = time.monotonic()
                start = max(now, self._next)
                self._next = start + self._interval
                await asyncio.sleep(start - now)
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._exchange(url, content, headers)
            except (self._httpx.ConnectTimeout, self._httpx.ConnectError) as error:
                return Silence(f"{type(error).__name__}: {error}", connected=False)
            except (self._httpx.TimeoutException, TimeoutError):
                return Silence("a timeout", connected=True, slow=True)
            except (self._httpx.InvalidURL, self._httpx.UnsupportedProtocol) as error:
                raise UnreachableError(
                    f"the address is not valid: {error}", "write http://HOST/PATH"
                ) from None
            except self._httpx.RemoteProtocolError as error:
                # Also raised where the line went dead before anything came; that is silence.
                garbled = "disconnected" not in str(error) and "closed" not in str(error)
                return Silence(f"{type(error).__name__}: {error}", connected=True, garbled=garbled)
            except self._httpx.TransportError as error:
                return Silence(f"{type(error).__name__}: {error}", connected=True)

    async def _exchange(self, url: str, content: bytes, headers: dict[str, str]) -> Reply:
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            said = response.headers
            body = Body(said.get("content-encoding", ""))
            problem = ""
            try:
                async for chunk in response.aiter_raw():
                    body.add(chunk)
                body.finish()
            except BodyError as error:
                problem = str(error)
            return Reply(
                response.status_code,
                body.content[:1000] if problem else body.content,
                said.get("retry-after", ""),
                said.get("location", ""),
                problem,
            )

    def _abandon(self) -> None:
        """Leave nothing behind when the start was interrupted."""
        thread = getattr(self, "_thread", None)
        if thread is not None and thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(timeout=5)
        self._loop.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        if threading.current_thread() is self._thread:
            self._loop.stop()
            return
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
            self._thread.join(timeout=CLOSE_SECONDS)
        # Also called by the garbage collector, which prints what is raised: a busy thread ends by itself.
        if not self._thread.is_alive():
            self._loop.close()

    async def _finish(self) -> None:
        """Let what was under way end (the user may have pressed Ctrl-C), then hang up and end the thread."""
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        try:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._client.aclose()
        finally:
            self._loop.call_soon(self._loop.stop)
