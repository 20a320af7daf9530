"""Starts a page's server: on loopback, or beyond it when that is asked for in so many words."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from unfooled.errors import UserError
from unfooled.extras import libraries_of
from unfooled.people.web.connections import Patience, drop_vanished_readers, patient_protocol
from unfooled.people.web.guard import App, Guard, is_loopback

if TYPE_CHECKING:
    from uvicorn import Server

LEAST_TOKEN = 16  # characters


def checked_token(host: str, *, allow_remote: bool, token: str | None) -> str:
    """The token that visitors need; empty on loopback. Anything else must be wanted explicitly."""
    if is_loopback(host):
        return ""
    if not allow_remote:
        raise UserError(
            f"--host {host} opens the page to other machines",
            "if that is meant, add --allow-remote --token new",
        )
    if not token:
        raise UserError(
            "a page that other machines can reach needs a token", "add --token new to have one made"
        )
    if token == "new":
        return secrets.token_urlsafe(24)
    if len(token) < LEAST_TOKEN or not token.isascii():
        raise UserError(
            f"the token has {len(token)} characters", f"use {LEAST_TOKEN} or more plain ones, or --token new"
        )
    return token


def serve(
    app: App,
    *,
    host: str,
    port: int,
    token: str,
    announce: Callable[[str], None],
    stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted. `announce` gets the address once it is open; `stop` ends open streams."""
    server = made_server(app, token=token, stop=stop)
    listening = bound(host, port)
    everywhere = host in ("0.0.0.0", "::")  # nobody can open these; others reach this machine by its name
    shown = socket.gethostname() if everywhere else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    announce(f"{address}?token={token}" if token else address)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


def made_server(
    app: App,
    *,
    token: str = "",
    stop: Callable[[], None] = lambda: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Server:
    """A server of the application behind its guard; `run` it on a bound socket."""
    with libraries_of("web", "uvicorn", needed_for="the web page"):
        import uvicorn

    class StoppingServer(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            stop()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        Guard(app, token=token),
        http=patient_protocol(patience),
        log_level="error",  # warnings are about requests that are none
        access_log=False,  # addresses may hold a token
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=patience.idle,
        ws="none",
    )
    return StoppingServer(config)


def bound(host: str, port: int, patience: Patience = Patience()) -> socket.socket:  # noqa: B008 - frozen
    """A socket that listens."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        drop_vanished_readers(listening, patience)
        listening.bind(address)
        listening.listen(256)
    except OSError as error:
        raise UserError(
            f"{host}:{port} cannot be opened ({error.strerror or error})",
            "choose another --port; 0 takes any that is free",
        ) from error
    except OverflowError as error:
        raise UserError(f"{port} is not a port", "ports go up to 65535") from error
    return listening
