"""Endpoints that misbehave, over real sockets on this machine.

A fault that comes now and then must leave a run as if it had not been: the same texts, outcomes and numbers
of queries as with the model at hand. One that always comes, from the start or from the middle of a run on,
must end the run or its rows with a cause and a remedy, with no more in memory than an answer may hold.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hostile import some

pytest.importorskip("httpx")

from unfooled.bodies import MOST_BYTES
from unfooled.data.dataset import Dataset
from unfooled.errors import UserError
from unfooled.runs.attack import attack
from unfooled.victims.fake import FakeVictim
from unfooled.victims.http.endpoint import HttpVictim

HANGING = 120  # seconds after which a run counts as hanging
MEMORY = 96 << 20
LABELS = ("negative", "positive")
TEXTS = [
    "a great and charming film",
    "a dull and tedious mess",
    "brilliant, witty and warm",
    "the worst film of the year, an awful bore",
]


class Exchange(NamedTuple):
    """One request as a fault sees it."""

    connection: socket.socket
    answer: Any  # what a good server would say
    stop: threading.Event

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reply(self, body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> None:
        size = f"content-length: {len(body) if length is None else length}"
        head = [f"HTTP/1.1 {status}", "content-type: application/json", size, *headers, "", ""]
        self.send("\r\n".join(head).encode("latin-1") + body)

    def json(self, document: Any) -> None:
        self.reply(json.dumps(document).encode())

    def rows(self, change: Callable[[list[Any]], Any]) -> None:
        self.json({"probabilities": change(list(self.answer["probabilities"]))})

    def chunked(self, *headers: str, encoding: str = "") -> None:
        packed = [f"content-encoding: {encoding}"] if encoding else []
        head = ["HTTP/1.1 200 OK", "transfer-encoding: chunked", *packed, *headers, "", ""]
        self.send("\r\n".join(head).encode())

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    @property
    def body(self) -> bytes:
        return json.dumps(self.answer).encode()


Fault = Callable[[Exchange], None]
FAULTS: dict[str, Fault] = {}
SLOW: set[str] = set()  # faults that are only seen when the time is up


def fault(function: Fault) -> Fault:
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


def slow(function: Fault) -> Fault:
    SLOW.add(function.__name__.replace("_", "-"))
    return fault(function)


# -- time ----------------------------------------------------------------------------------------------


@slow
def body_drips(x: Exchange) -> None:
    x.chunked()
    while not x.stop.wait(0.05):
        x.chunk(b" ")


@slow
def headers_drip(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nx: ")
    while not x.stop.wait(0.05):
        x.send(b"y")


@slow
def hangs_before_a_word(x: Exchange) -> None:
    x.stop.wait()


@slow
def hangs_within_the_body(x: Exchange) -> None:
    x.reply(x.body[:20], length=len(x.body))
    x.stop.wait()


@slow
def body_shorter_than_its_length_on_an_open_line(x: Exchange) -> None:
    x.reply(x.body, length=len(x.body) + 10)
    x.stop.wait()


# -- size ----------------------------------------------------------------------------------------------


@fault
def endless_body(x: Exchange) -> None:
    x.chunked()
    while not x.stop.is_set():
        x.chunk(b" " * 65536)


@fault
def huge_length(x: Exchange) -> None:
    x.reply(b"", length=1 << 40)
    while not x.stop.is_set():
        x.send(b"[" * 65536)


BOMB = gzip.compress(b" " * (64 << 20), 9)
DOUBLE_BOMB = gzip.compress(BOMB, 9)


@fault
def gzip_bomb(x: Exchange) -> None:
    x.reply(BOMB, "content-encoding: gzip")


_PACKER = zlib.compressobj(9, zlib.DEFLATED, 31)
ENDLESS = _PACKER.compress(bytes(16 << 20)) + _PACKER.flush(zlib.Z_FULL_FLUSH)  # has no end


@fault
def endless_gzip(x: Exchange) -> None:
    x.chunked(encoding="gzip")
    x.chunk(ENDLESS)
    x.stop.wait()


@fault
def bomb_within_a_bomb(x: Exchange) -> None:
    x.reply(DOUBLE_BOMB, "content-encoding: gzip, gzip")


@fault
def full_of_empty_lists(x: Exchange) -> None:
    x.reply(b"[" + b"[]," * (MOST_BYTES // 3 - 10) + b"[]]")


@fault
def huge_headers(x: Exchange) -> None:
    x.reply(x.body, *(f"x-{number}: {'y' * 1000}" for number in range(1000)))


# -- packing -------------------------------------------------------------------------------------------


@fault
def broken_gzip(x: Exchange) -> None:
    packed = bytearray(gzip.compress(x.body))
    packed[12] ^= 0xFF
    packed[-6] ^= 0xFF
    x.reply(bytes(packed), "content-encoding: gzip")


@fault
def cut_gzip(x: Exchange) -> None:
    x.reply(gzip.compress(x.body)[:-9], "content-encoding: gzip")


@fault
def gzip_that_is_none(x: Exchange) -> None:
    x.reply(x.body, "content-encoding: gzip")


@fault
def deflate_rubbish(x: Exchange) -> None:
    x.reply(b"\xff\xfe rubbish" * 9, "content-encoding: deflate")


@fault
def packing_that_nobody_asked_for(x: Exchange) -> None:
    x.reply(x.body, "content-encoding: br")


# -- the line ------------------------------------------------------------------------------------------


@fault
def body_cut_by_hanging_up(x: Exchange) -> None:
    x.reply(x.body[:20], length=len(x.body))


@fault
def body_longer_than_its_length(x: Exchange) -> None:
    x.reply(x.body, length=len(x.body) - 5)


@fault
def two_lengths(x: Exchange) -> None:
    x.reply(x.body, "content-length: 3")


@fault
def hangs_up_without_a_word(x: Exchange) -> None:
    pass


@fault
def connection_reset(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    x.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@fault
def no_http(x: Exchange) -> None:
    x.send(b"\x16\x03\x01 this is not HTTP\r\n\r\n")


@fault
def broken_chunks(x: Exchange) -> None:
    x.chunked()
    x.send(b"zz\r\nwhatever\r\n")


# -- status --------------------------------------------------------------------------------------------

# Status, body, headers.
STATUSES: dict[str, tuple[str, bytes, *tuple[str, ...]]] = {
    "status-500": ("500 Oops", b"stack trace \x1b[31m" * 99),
    "status-500-with-broken-gzip": ("500 Oops", b"no gzip", "content-encoding: gzip"),
    "too-many-requests-for-a-century": ("429 Slow down", b"later", "retry-after: 3153600000"),
    "retry-after-infinity": ("503 Busy", b"later", "retry-after: 1e999"),
    "retry-after-rubbish": ("503 Busy", b"later", "retry-after: NaN, tomorrow"),
    "redirect-elsewhere": ("302 Found", b"", "location: http://127.0.0.1:9/elsewhere"),
    "redirect-to-itself": ("307 Again", b"", "location: /classify"),
    "redirect-to-no-address": ("301 Moved", b"", "location: http://["),
}


def with_status(x: Exchange, status: str, body: bytes, headers: Sequence[str]) -> None:
    x.reply(body, *headers, status=status)


FAULTS |= {
    name: partial(with_status, status=status, body=body, headers=headers)
    for name, (status, body, *headers) in STATUSES.items()
}


@fault
def status_503_with_an_endless_body(x: Exchange) -> None:
    x.send(b"HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n")
    while not x.stop.is_set():
        x.chunk(b"busy " * 10_000)


# -- status 200, but no answer -------------------------------------------------------------------------


@fault
def empty_body(x: Exchange) -> None:
    x.reply(b"")


@fault
def page_of_html(x: Exchange) -> None:
    x.reply(b"<html><title>Log in</title></html>", "content-type: text/html")


@fault
def cut_json(x: Exchange) -> None:
    x.reply(x.body[:-7])


@fault
def deep_json(x: Exchange) -> None:
    x.reply(b"[" * 500_000 + b"]" * 500_000)


@fault
def deep_row(x: Exchange) -> None:
    x.reply(b'{"probabilities": [' + b"[" * 900 + b"0.5" + b"]" * 900 + b"]}")


@fault
def wrong_charset(x: Exchange) -> None:
    x.reply(b'{"n\xe9gatif": 1, "probabilities": null}', "content-type: application/json; charset=latin-1")


@fault
def utf_16_cut_within_a_character(x: Exchange) -> None:
    x.reply(json.dumps(x.answer).encode("utf-16")[:-1])


@fault
def key_twice(x: Exchange) -> None:
    x.reply(
        x.body[:-1] + b', "probabilities": ' + json.dumps(x.answer["probabilities"][::-1]).encode() + b"}"
    )


@fault
def number_of_ten_thousand_digits(x: Exchange) -> None:
    x.reply(b'{"probabilities": [[' + b"9" * 10_000 + b", 0]]}")


@fault
def too_large_for_a_float(x: Exchange) -> None:
    rows = ["[1e999, -1e999]", *map(json.dumps, x.answer["probabilities"][1:])]
    x.reply(f'{{"probabilities": [{", ".join(rows)}]}}'.encode())


DOCUMENTS: dict[str, Any] = {
    "null": None,
    "null-for-the-answers": {"probabilities": None},
    "one-string": {"probabilities": "positive"},
    "error-with-status-200": {"error": "model is loading", "estimated_time": 20},
}
FAULTS |= {name: partial(Exchange.json, document=document) for name, document in DOCUMENTS.items()}
# What becomes of the rows of probabilities.
ROWS: dict[str, Callable[[list[Any]], Any]] = {
    "nan": lambda rows: [[float("nan"), float("nan")], *rows[1:]],
    "infinity": lambda rows: [*rows[:-1], [float("inf"), float("-inf")]],
    "whole-number-too-large-for-a-float": lambda rows: [[10**400, 0], *rows[1:]],
    "null-for-one-text": lambda rows: [None, *rows[1:]],
    "null-for-one-class": lambda rows: [[None, 1.0], *rows[1:]],
    "negative": lambda rows: [[-0.2, 1.2], *rows[1:]],
    "single-negative-numbers": lambda rows: [-0.4 for _ in rows],
    "sums-to-two": lambda rows: [[1.0, 1.0] for _ in rows],
    "all-zero": lambda rows: [[0.0, 0.0] for _ in rows],
    "one-row-too-few": lambda rows: rows[:-1],
    "one-row-too-many": lambda rows: [*rows, rows[0]],
    "one-class-too-few": lambda rows: [row[:1] for row in rows],
    "one-class-too-many": lambda rows: [[*row, 0.0] for row in rows],
    "ragged": lambda rows: [[], *rows[1:]],
    "strings": lambda rows: [["low", "high"] for _ in rows],
    "label-that-nobody-knows": lambda rows: ["\ud800 \x1b[31m" * 1000 for _ in rows],
    "classes-by-strange-names": lambda rows: [
        {f"\ud800\x1b[2J{number}" * 99: 0.1 for number in range(50)} for _ in rows
    ],
    "class-named-twice": lambda rows: [
        [{"label": name, "score": 0.5} for name in (*LABELS, "positive")] for _ in rows
    ],
}
FAULTS |= {name: partial(Exchange.rows, change=change) for name, change in ROWS.items()}


class Endpoint:
    """A good server, except for the requests that `faulty` names."""

    def __init__(self, behave: Fault, faulty: Callable[[int], bool]) -> None:
        self._behave, self._faulty = behave, faulty
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.requests = 0
        self.failed = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/classify"
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(HANGING)
        with closing(connection), connection.makefile("rb") as stream:
            try:
                while (document := _read(stream)) is not None:
                    with self._lock:
                        bad = self._faulty(self.requests)
                        self.requests += 1
                        self.failed += bad
                    answer = {"probabilities": FakeVictim().predict(document["texts"]).tolist()}
                    exchange = Exchange(connection, answer, self._stop)
                    if bad:
                        self._behave(exchange)
                        return
                    exchange.json(answer)
            except OSError:
                return  # the client has had enough

    def close(self) -> None:
        self._stop.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=HANGING)
            assert not thread.is_alive()


def _read(stream: Any) -> Any:
    size = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    content = stream.read(size)
    return json.loads(content) if content and len(content) == size else None


@contextmanager
def endpoint(
    kind: str, faulty: Callable[[int], bool], tries: int = 3
) -> Iterator[tuple[Endpoint, HttpVictim]]:
    server = Endpoint(FAULTS[kind], faulty)
    victim = HttpVictim(
        server.url,
        labels=LABELS,
        timeout=1.0 if kind in SLOW else 30.0,
        backoff=0.001,
        retries=1 if kind in SLOW else tries,
        batch_size=32,
        concurrency=2,
    )
    try:
        yield server, victim
    finally:
        victim.close()
        server.close()


def outcome_of(victim: Any, out: Path) -> dict[int, tuple[str, str, int]]:
    """What a real attack comes to; a run that hangs fails the test instead of stopping all of them."""
    data = Dataset.from_pairs(
        [(text, FakeVictim().predict([text])[0].argmax()) for text in TEXTS], labels=LABELS
    )
    pool = ThreadPoolExecutor(1)
    run = pool.submit(attack, victim, data, "deepwordbug", out=out / "run.sqlite").result(timeout=HANGING)
    pool.shutdown()
    return {result.key: (result.outcome, result.perturbed, result.queries) for result in run.results()}


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def require_explained(error: UserError) -> None:
    assert error.cause
    assert error.remedy
    assert len(error.cause) < 1000
    shown = str(error).encode("utf-8")  # no half characters
    assert b"\x1b" not in shown


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[str, str, int]]:
    return outcome_of(FakeVictim(), tmp_path_factory.mktemp("direct"))


@pytest.mark.hostile("HTTP endpoints that misbehave now and then")
@pytest.mark.parametrize("kind", some(list(FAULTS), few=4))
def test_a_fault_now_and_then_leaves_no_trace(
    kind: str, expected: dict[int, tuple[str, str, int]], tmp_path: Path
) -> None:
    # The very first request, the first of the attack itself, and some that follow.
    bad = {0, 4} if kind in SLOW else {0, 4, 6, 9, 13}
    with little_memory(), endpoint(kind, bad.__contains__) as (server, victim):
        assert outcome_of(victim, tmp_path) == expected
        assert server.failed >= 2


@pytest.mark.hostile("HTTP endpoints that always misbehave")
@pytest.mark.parametrize("kind", some(list(FAULTS), few=4))
def test_a_fault_from_the_start_ends_the_run_with_a_remedy(kind: str, tmp_path: Path) -> None:
    with little_memory(), endpoint(kind, lambda _: True) as (server, victim):
        with pytest.raises(UserError) as caught:
            outcome_of(victim, tmp_path)
        require_explained(caught.value)
        assert server.requests < 100


@pytest.mark.hostile("HTTP endpoints that misbehave from some time on")
@pytest.mark.parametrize("kind", some(list(FAULTS), few=4))
def test_a_fault_from_the_middle_ends_the_run_or_its_rows(
    kind: str, expected: dict[int, tuple[str, str, int]], tmp_path: Path
) -> None:
    with little_memory(), endpoint(kind, lambda number: number >= 7, tries=1) as (server, victim):
        try:
            results = outcome_of(victim, tmp_path)
        except UserError as error:
            require_explained(error)
        else:
            assert any(result[0] == "error" for result in results.values())
            assert all(result == expected[key] for key, result in results.items() if result[0] != "error")
        assert server.failed
