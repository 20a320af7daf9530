"""Connections that stall are closed: whoever is slow on purpose must not keep a place that others need.

uvicorn waits for ever for the rest of a request and for a reader that takes nothing. Here both have a time.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Patience:
    """Seconds that a connection may take."""

    request: float = 30.0  # for a whole request, from its first byte (or the connection) to its last
    reader: float = 60.0  # with an answer lying here that the reader does not take
    idle: int = 75  # between two requests
    vanished: int = 60  # until the kernel gives up on somebody who does not even acknowledge


def drop_vanished_readers(listening: socket.socket, patience: Patience) -> None:
    """The kernel ends connections whose other side is gone without a word, as after a power cut.

    Accepted connections inherit this. Without it an event stream to such a reader lives for a quarter of an
    hour, and its attack with it. Systems that lack an option go without.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_USER_TIMEOUT", 1000 * patience.vanished),
        ("TCP_KEEPIDLE", patience.vanished),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
    ):
        if (option := getattr(socket, name, None)) is not None:
            listening.setsockopt(socket.IPPROTO_TCP, option, value)


def patient_protocol(patience: Patience) -> type[H11Protocol]:
    """uvicorn's protocol with an end to its patience."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PatientProtocol(H11Protocol):
        _rest: asyncio.TimerHandle | None = None  # runs while part of a request is missing
        _look: asyncio.TimerHandle | None = None
        _unread_since: float | None = None  # an answer has been lying here since then

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_rest()
            self._look_at_reader()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._after_data()

        def on_response_complete(self) -> None:
            super().on_response_complete()  # takes up the next request, if it came with this one
            self._after_data()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            for timer in (self._rest, self._look):
                if timer is not None:
                    timer.cancel()

        def _after_data(self) -> None:
            state = self.conn.their_state
            begun = state is h11.IDLE and bool(self.conn.trailing_data[0])
            if begun or state is h11.SEND_BODY:
                self._await_rest()
            elif self._rest is not None:
                self._rest.cancel()
                self._rest = None

        def _await_rest(self) -> None:
            if self._rest is None:  # a trickle does not buy time
                self._rest = self.loop.call_later(patience.request, self.transport.abort)

        def _look_at_reader(self) -> None:
            now = self.loop.time()
            if not self.transport.get_write_buffer_size():
                self._unread_since = None
            elif self._unread_since is None:
                self._unread_since = now
            elif now - self._unread_since >= patience.reader:
                self._drop()
                return
            self._look = self.loop.call_later(patience.reader / 4, self._look_at_reader)

        def _drop(self) -> None:
            """At once, here and in the kernel: an orderly end would wait until all is read."""
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    return PatientProtocol
