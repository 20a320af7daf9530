"""What stands between the network and a page: hosts, tokens, cross-site requests, sizes and headers.

- A page on loopback answers only to loopback names, so that no foreign site can point its own name here.
- A page open to the network asks for a token, once per browser.
- A request that changes something must come from the page itself, as the browser says.
- Nothing but the page's own files may be loaded, run or sent to.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 256 * 1024  # of a request
MOST_PATH = 1000  # characters of an address
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: with that a browser hides the origin of a page's own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Wraps an application. `token` is empty on loopback."""

    def __init__(self, app: App, *, token: str = "") -> None:
        self._app = app
        self._token = token
        self._cookie = "unfooled_access_" + hashlib.sha256(token.encode()).hexdigest()[:8]
        self._pass = hashlib.sha256(b"pass:" + token.encode()).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not self._token and not _is_loopback_host(host):
            await _answer(send, 421, "This page answers only under 127.0.0.1 or localhost.")
            return
        if len(scope["path"]) > MOST_PATH:
            await _answer(send, 414, "This address is too long.")
            return
        if scope["method"] not in ("GET", "HEAD"):
            if not _from_here(headers, host):
                await _answer(send, 403, "This request comes from another site, so it was refused.")
                return
            if not headers.get("content-length", "x").isdecimal():
                await _answer(send, 411, "The length of the request is missing.")
                return
            if int(headers["content-length"]) > MOST_BYTES:
                await _answer(send, 413, "This is too long.")
                return
        if self._token and not self._admitted(headers):
            await self._ask_for_token(scope, send)
            return
        await self._app(scope, receive, _with_headers(send))

    def _admitted(self, headers: MutableMapping[str, str]) -> bool:
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        given = [value for name, _, value in pairs if name == self._cookie]
        return any(hmac.compare_digest(value.encode(), self._pass.encode()) for value in given)

    async def _ask_for_token(self, scope: Scope, send: Send) -> None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), "")
        if scope["method"] == "GET" and hmac.compare_digest(given.encode(), self._token.encode()):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            # The token leaves the address bar at once; the browser keeps a pass made from it.
            path = "/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else "")
            cookie = f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000"
            await _answer(send, 303, "", {"location": path, "set-cookie": cookie})
            return
        await _answer(send, 403, "This page needs a token: open the whole link that you were given.")


def _is_loopback_host(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # no host has such a name
        return False


def _from_here(headers: MutableMapping[str, str], host: str) -> bool:
    """Whether the browser says that this page itself sent the request. No word about it is a no."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    try:
        return origin is None or urlsplit(origin).netloc == host
    except ValueError:
        return False


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            present = {name for name, _ in message.get("headers", [])}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in present]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return sending


async def _answer(send: Send, status: int, text: str, more: dict[str, str] | None = None) -> None:
    headers = {"content-type": "text/plain; charset=utf-8", **HEADERS, **(more or {})}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": text.encode()})
