"""What attackers do to a page: foreign redirects, floods, stalled connections, guesses, other origins."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from study_runs import two_runs
from unfooled.core.victim import Probabilities
from unfooled.people.study.file import StudyFile
from unfooled.people.study.protocols import load_protocol
from unfooled.people.study.sampling import draw
from unfooled.people.web import slowing
from unfooled.people.web.connections import Patience
from unfooled.people.web.guard import Receive, Scope, Send
from unfooled.people.web.playground_app import Playground, PlaygroundApp
from unfooled.people.web.repeating import ModelArguments
from unfooled.people.web.serving import bound
from unfooled.people.web.study_app import study_app
from unfooled.people.web.visits import MOST_VISITS
from unfooled.victims.fake import FakeVictim
from web_server import request, serving

TOKEN = "a-token-of-24-characters"
LONG = 60  # seconds after which a test gives up, on however busy a machine


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads what it is sent and says so."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message.get("more_body", False)
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(str(size))).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": str(size).encode()})


def connected(url: str, source: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(
        ("127.0.0.1", urlsplit(url).port or 0), timeout=LONG, source_address=(source, 0)
    )
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def answer_to(url: str, raw: bytes, source: str = "127.0.0.1") -> tuple[int, dict[str, str]]:
    """Status and headers of what a raw request gets."""
    with closing(connected(url, source)) as connection:
        connection.sendall(raw)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


# -- redirects -------------------------------------------------------------------------------------

ASKED = [
    r"/\evil.example",
    r"/%5Cevil.example",
    "/%5c%5cevil.example/x",
    r"/\/evil.example",
    "//evil.example",
    "///evil.example/a",
    "/%2F%2Fevil.example",
    "/%2f%5Cevil.example",
    "/%09/evil.example",
    "/%0A/evil.example",
    "/%0D%0ALocation:%20http://evil.example",
    "/%00//evil.example",
    "/%E2%81%84/evil.example",
    "/%EF%BC%8Fevil.example",
    "/.//evil.example",
    "/..//evil.example",
    "/%20//evil.example",
    "/%3F//evil.example",
    "/%23@evil.example",
    "http://evil.example/",
    "http:evil.example",
    "/@evil.example",
    "/;//evil.example",
]


@pytest.mark.parametrize("asked", ASKED)
def test_the_token_leads_to_no_other_host(asked: str) -> None:
    with serving(plain, token=TOKEN) as url:
        raw = f"GET {asked}?token={TOKEN}&next=%0d%0a//evil.example HTTP/1.1\r\nHost: study.example\r\n\r\n"
        status, headers = answer_to(url, raw.encode("latin-1"))
        assert status == 303
        location = headers["location"]
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))
        path = location.partition("?")[0]
        assert path.isascii()
        assert path.isprintable()
        assert not set(path) & set("\\ \t:@;#?")
        assert TOKEN not in location


def test_no_page_sends_a_browser_to_the_host_that_it_named() -> None:
    with serving(PlaygroundApp(one_model(FakeVictim())), token=TOKEN) as url:
        _, headers = answer_to(url, f"GET /?token={TOKEN} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        cookie = headers["set-cookie"].split(";")[0]
        raw = f"GET /texts/ HTTP/1.1\r\nHost: evil.example\r\nCookie: {cookie}\r\n\r\n"
        status, headers = answer_to(url, raw.encode())
        assert (status, "location" in headers) == (404, False)


# -- other origins ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "more", "status"),
    [
        ("http://{host}", {}, 200),
        ("HTTP://{host}", {}, 200),
        ("https://{host}", {}, 403),
        ("ftp://{host}", {}, 403),
        ("http://127.0.0.1", {}, 403),
        ("http://127.0.0.1:1", {}, 403),
        ("http://{host}0", {}, 403),
        ("http://{host}/", {}, 403),
        ("http://{host}/x", {}, 403),
        ("http://u@{host}", {}, 403),
        ("http://{host}@evil.example", {}, 403),
        ("//{host}", {}, 403),
        ("{host}", {}, 403),
        ("null", {}, 403),
        ("", {}, 403),
        # A proxy with TLS on this machine says which scheme the browser used.
        ("https://{host}", {"X-Forwarded-Proto": "https"}, 200),
        ("http://{host}", {"X-Forwarded-Proto": "https"}, 403),
        ("https://study.example", {"X-Forwarded-Proto": "https", "Host": "study.example"}, 200),
        ("https://study.example:443", {"X-Forwarded-Proto": "https", "Host": "study.example"}, 200),
        ("http://study.example", {"X-Forwarded-Proto": "https", "Host": "study.example"}, 403),
        ("https://study.example:8443", {"X-Forwarded-Proto": "https", "Host": "study.example"}, 403),
        ("http://study.example:443", {"X-Forwarded-Proto": "https", "Host": "study.example:443"}, 403),
    ],
)
def test_scheme_host_and_port_of_the_origin_count(origin: str, more: dict[str, str], status: int) -> None:
    with serving(plain, token=TOKEN) as url:
        _, _, headers = request(url, "GET", f"/?token={TOKEN}", {})
        given = {"Cookie": headers["set-cookie"].split(";")[0]} | more
        given["Origin"] = origin.format(host=urlsplit(url).netloc)
        assert request(url, "POST", "/", given, "a=1")[0] == status


# -- floods ----------------------------------------------------------------------------------------


class Held(FakeVictim):
    """Answers only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def predict(self, texts: Any, /) -> Probabilities:
        assert self.may.wait(LONG)
        return super().predict(texts)


def one_model(victim: Any) -> Playground:
    return Playground((victim,), (ModelArguments(victim.name),), (victim.name,), attack="deepwordbug")


def test_of_200_attacks_at_once_32_begin() -> None:
    victim = Held()
    with serving(PlaygroundApp(one_model(victim))) as url:
        _, text, _ = request(url, "GET", "/", {})
        proof = text.partition('name="proof" value="')[2].partition('"')[0]
        body = f"proof={proof}&attack=deepwordbug%40textattack&field.text=a+great+film"
        together = threading.Barrier(200)

        def start(_: int) -> tuple[int, str]:
            together.wait(LONG)
            return request(url, "POST", "/attacks", {"Origin": url}, body)[:2]

        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(start, range(200)))
        begun = [json.loads(text)["id"] for status, text in answers if status == 200]
        refused = [json.loads(text)["cause"] for status, text in answers if status == 400]
        assert (len(begun), len(refused)) == (MOST_VISITS, 200 - MOST_VISITS)
        assert set(refused) == {"too many attacks are under way"}
        # One that is cancelled makes room for one, and only one.
        assert (
            request(url, "POST", f"/attacks/{begun[0]}/cancel", {"Origin": url}, f"proof={proof}")[0] == 200
        )
        assert [request(url, "POST", "/attacks", {"Origin": url}, body)[0] for _ in range(2)] == [200, 400]
        victim.may.set()


def test_an_attack_that_cannot_begin_takes_no_place() -> None:
    with serving(PlaygroundApp(one_model(FakeVictim()))) as url:
        _, text, _ = request(url, "GET", "/", {})
        proof = text.partition('name="proof" value="')[2].partition('"')[0]
        for _ in range(MOST_VISITS + 1):  # this model has no gradients
            body = f"proof={proof}&attack=jsma%40paper&field.text=a+great+film"
            status, text, _ = request(url, "POST", "/attacks", {"Origin": url}, body)
            assert status == 400
            assert "too many" not in text


# -- stalled connections ---------------------------------------------------------------------------

BRIEF = Patience(request=0.5, reader=0.5, idle=60)
HEAD = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
STALLS = {
    "says nothing": b"",
    "half a line": b"GET / HT",
    "headers without end": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\r\n",
    "no body": f"{HEAD}Content-Length: 10\r\n\r\n".encode(),
    "half a body": f"{HEAD}Content-Length: 10\r\n\r\nabc".encode(),
    "half a refused body": f"{HEAD}Content-Length: 10\r\n\r\nabc".replace(
        "127.0.0.1\r\nC", "x\r\nC"
    ).encode(),
    "a body that is too long": f"{HEAD}Content-Length: 300000\r\n\r\nabc".encode(),
    "chunks without end": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".encode(),
    "a second request": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /x HT",
}


@pytest.mark.parametrize("sent", STALLS.values(), ids=STALLS.keys())
def test_a_request_that_does_not_end_is_closed(sent: bytes) -> None:
    with serving(plain, patience=BRIEF) as url, closing(connected(url)) as connection:
        connection.sendall(sent)
        assert closed(connection)


def test_a_trickle_buys_no_time() -> None:
    with serving(plain, patience=BRIEF) as url, closing(connected(url)) as connection:
        connection.settimeout(0.05)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        until = time.monotonic() + LONG
        while True:
            assert time.monotonic() < until, "still open"
            try:
                connection.sendall(b"y")
                if not connection.recv(100):
                    return
            except TimeoutError:
                continue
            except OSError:
                return  # reset


def test_whoever_is_only_between_requests_stays() -> None:
    """Longer than a request may take: the connection waits for the next one, and answers it."""
    with serving(plain, patience=Patience(request=0.2, reader=0.2, idle=60)) as url:
        kept = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LONG)
        kept.request("GET", "/")
        kept.getresponse().read()
        first = kept.sock
        with closing(connected(url)) as stalled:  # opened later, and gone by its time
            assert closed(stalled)
        kept.request("GET", "/")
        assert kept.getresponse().status == 200
        assert kept.sock is first
        kept.close()


class Streaming:
    """Sends without end, and says when it was told that nobody reads."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        sending = asyncio.ensure_future(self._send(send))
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()
        self.ended.set()

    async def _send(self, send: Send) -> None:
        while True:
            await send({"type": "http.response.body", "body": b"data: x\n\n" * 4000, "more_body": True})


def test_a_stream_that_nobody_reads_ends() -> None:
    app = Streaming()
    with serving(app, patience=BRIEF) as url, closing(connected(url)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert app.ended.wait(LONG)


def test_a_closing_connection_does_not_wait_for_its_reader() -> None:
    """A whole answer that is never taken: the connection goes all the same."""
    size = 64 * 1024 * 1024
    done = threading.Event()

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b"x" * size})
            done.set()

    with serving(large, patience=BRIEF) as url, closing(connected(url)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert done.wait(LONG)
        until = time.monotonic() + LONG
        while connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:  # reset by the server
            assert time.monotonic() < until
            time.sleep(0.02)


def test_the_kernel_watches_over_accepted_connections() -> None:
    """Readers who vanish without a word: what it takes is set on the socket that listens, and inherited."""
    with (
        closing(bound("127.0.0.1", 0, Patience(vanished=7))) as listening,
        closing(socket.create_connection(listening.getsockname(), timeout=LONG)),
        closing(listening.accept()[0]) as accepted,
    ):
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7000


def closed(connection: socket.socket) -> bool:
    """Reads what still comes, until the other side closes; not, when that takes longer than its timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


# -- guesses ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return two_runs(tmp_path_factory.mktemp("runs"), 14)


@pytest.fixture
def study(runs: list[Path], tmp_path: Path) -> Iterator[StudyFile]:
    drawn = draw(runs, load_protocol("bae"), n=4, annotators=2, originals=2, checks=0, primer=0)
    StudyFile.create(tmp_path / "s.db", drawn).close()
    with StudyFile.open(tmp_path / "s.db") as opened:
        yield opened


def sign_in(url: str, code: str, source: str = "127.0.0.1") -> tuple[int, dict[str, str]]:
    body = f"code={code}"
    head = f"POST /sign-in HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nOrigin: {url}"
    return answer_to(url, f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode(), source)


def test_wrong_codes_slow_down_who_sends_them_and_nobody_else(study: StudyFile) -> None:
    with serving(study_app(study)) as url:
        assert [sign_in(url, "x")[0] for _ in range(slowing.FREE + 1)] == [403] * (slowing.FREE + 1)
        status, headers = sign_in(url, study.codes[1])  # even a right one waits now
        assert (status, headers["retry-after"]) == (429, "1")
        assert "set-cookie" not in headers
        assert sign_in(url, study.codes[1], "127.0.0.2")[0] == 303
        until = time.monotonic() + LONG
        while (status := sign_in(url, study.codes[1])[0]) == 429:
            assert time.monotonic() < until
        assert status == 303
        assert sign_in(url, "x")[0] == 403  # who signed in starts anew


def test_guesses_all_at_once_are_not_quicker(study: StudyFile) -> None:
    with serving(study_app(study)) as url, ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda _: sign_in(url, "x")[0], range(40)))
    # A wait may have passed in between, on a slow machine: then one more was looked at.
    assert answers.count(403) < 2 * slowing.FREE
    assert set(answers) == {403, 429}


def test_wrong_tokens_slow_down_too() -> None:
    with serving(plain, token=TOKEN) as url:
        for _ in range(20):
            assert request(url, "GET", "/", {})[0] == 403  # no token is no guess
        guesses = [request(url, "GET", "/?token=wrong", {})[0] for _ in range(slowing.FREE + 2)]
        assert guesses == [403] * (slowing.FREE + 1) + [429]
        raw = f"GET /?token={TOKEN} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        status, headers = answer_to(url, raw, "127.0.0.3")
        assert status == 303
        # A browser that was let in is not slowed down, wherever it is.
        assert request(url, "GET", "/", {"Cookie": headers["set-cookie"].split(";")[0]})[0] == 200


def test_guesses_from_everywhere_stand_in_one_line(study: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slowing, "FREE_IN_ALL", 8)
    monkeypatch.setattr(slowing, "MOST_WAITING", 4)
    with serving(study_app(study)) as url, ThreadPoolExecutor(30) as pool:
        for host in range(9):
            assert sign_in(url, "x", f"127.0.1.{host + 1}")[0] == 403
        flood = list(pool.map(lambda host: sign_in(url, "x", f"127.0.2.{host + 1}")[0], range(30)))
        assert 429 in flood
        assert 403 in flood
        # The owner, at an address that never failed, comes through while the line is in use.
        begun = time.monotonic()
        while (status := sign_in(url, study.codes[1], "127.0.3.1")[0]) == 429:
            assert time.monotonic() < begun + LONG
        assert status == 303


def test_what_is_remembered_of_guesses_is_bounded() -> None:
    slow = slowing.SlowDown()
    for number in range(slowing.MOST_CLIENTS + 500):
        slow.tell(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", right=False)
    assert len(slow._records) == slowing.MOST_CLIENTS
    assert len(slow._lately) == slowing.FREE_IN_ALL + 1
    # Whoever owns a network of IPv6 has as many addresses as they like: it counts as one.
    fresh = slowing.SlowDown()
    for number in range(slowing.FREE + 1):
        fresh.tell(f"2001:db8::{number:x}", right=False)
    assert asyncio.run(fresh.turn("2001:db8::ffff")) == 1
    assert asyncio.run(fresh.turn("2001:db8:0:1::1")) == 0
    # The longest wait has an end.
    for _ in range(2000):
        fresh.tell("2001:db8::1", right=False)
    assert asyncio.run(fresh.turn("2001:db8::1")) == slowing.LONGEST
