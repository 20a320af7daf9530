"""What stands between the network and a page: hosts, tokens, cross-site requests, sizes and headers.

- A page on loopback answers only to loopback names, so that no foreign site can point its own name here.
- A page open to the network asks for a token, once per browser.
- A request that changes something must come from the page itself, as the browser says: scheme, host and port.
- Guessing the token slows down.
- Nothing but the page's own files may be loaded, run or sent to.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from unfooled.people.web.slowing import SlowDown

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 256 * 1024  # of a request
MOST_PATH = 1000  # characters of an address
PORTS = {"http": 80, "https": 443}
NEEDS_TOKEN = "This page needs a token: open the whole link that you were given."
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
        # Slow to make: whoever guesses the pass instead of the token pays for each guess.
        self._pass = hashlib.scrypt(token.encode(), salt=b"unfooled pass", n=2**14, r=8, p=1).hex()
        self._slow = SlowDown()

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
            if not _from_here(headers, scope["scheme"], host):
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
        if scope["method"] != "GET" or not given:
            await _answer(send, 403, NEEDS_TOKEN)
            return
        client = client_of(scope)
        if wait := await self._slow.turn(client):
            text = f"Too many wrong tokens came from here: try again in {wait} seconds."
            await _answer(send, 429, text, {"retry-after": str(wait)})
            return
        right = hmac.compare_digest(given.encode(), self._token.encode())
        self._slow.tell(client, right=right)
        if not right:
            await _answer(send, 403, NEEDS_TOKEN)
            return
        # The token leaves the address bar at once; the browser keeps a pass made from it.
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        cookie = f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000"
        location = _here(scope["path"]) + (f"?{rest}" if rest else "")
        await _answer(send, 303, "", {"location": location, "set-cookie": cookie})


def client_of(scope: Scope) -> str:
    """The address that a request came from."""
    return str(scope["client"][0]) if scope.get("client") else ""


def _here(path: str) -> str:
    """This path on this host, whatever it holds.

    Browsers read `//`, `/\\` and a slash behind a tab or a line end as the beginning of another host's name.
    """
    return "/" + quote(path.lstrip("/"), safe="/")


def _is_loopback_host(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # no host has such a name
        return False


def _from_here(headers: MutableMapping[str, str], scheme: str, host: str) -> bool:
    """Whether the browser says that this page itself sent the request. No word about it is a no.

    Behind a proxy the scheme is that of the proxy's `X-Forwarded-Proto`, if the proxy is trusted.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    if origin is None:
        return True
    own = _origin(f"{scheme}://{host}")
    return own is not None and _origin(origin) == own


def _origin(address: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for anything that is more, or less, than that."""
    try:
        parts = urlsplit(address)
        port = parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    if not parts.hostname or "@" in parts.netloc or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port


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
