"""Servers of pages for tests: in a process of its own as a user starts it, or quickly in a thread."""

from __future__ import annotations

import http.client
import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from unfooled.people.web.connections import Patience
from unfooled.people.web.guard import App
from unfooled.people.web.serving import bound, made_server

# Each process of the test run has ports of its own, below those that the system gives to outgoing calls:
# nobody takes a port between the moment it is found free and the moment a server opens it.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.cycle(range(20_000 + 500 * _WORKER, 20_500 + 500 * _WORKER))


def free_port() -> int:
    for port in itertools.islice(_PORTS, 500):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def start(*arguments: str | Path, port: int) -> subprocess.Popen[str]:
    """`unfooled …` with this port; returns when the port answers."""
    pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
    command = [sys.executable, "-m", "unfooled", *map(str, arguments), "--port", str(port)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
    )
    wait_until_answering(process, port)
    return process


def wait_until_answering(process: subprocess.Popen[str], port: int) -> None:
    """Until the port takes a connection; a process that ends before, or takes a minute, is a failure."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            assert process.stdout is not None
            raise AssertionError(process.stdout.read())
        try:
            with closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
                return
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise AssertionError("the server did not start")


@contextmanager
def serving(app: App, *, token: str = "", patience: Patience = Patience()) -> Iterator[str]:  # noqa: B008
    """The address of a real server, in a thread."""
    pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
    listening = bound("127.0.0.1", 0, patience)
    server = made_server(app, token=token, patience=patience)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        getattr(app, "close", lambda: None)()
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()


def request(
    url: str, method: str, path: str, headers: dict[str, str], body: str = ""
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    kind = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    connection.request(method, path, body or None, kind | headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
    connection.close()
    return found
