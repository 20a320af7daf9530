"""HTTP victims against a real server on this machine, which misbehaves to order."""

from __future__ import annotations

import asyncio
import json
import pickle
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpx")

from loopback import LoopbackServer
from unfooled.core.program import AsyncOracle
from unfooled.core.victim_oracle import AsyncVictimOracle, oracle_for
from unfooled.errors import VictimError
from unfooled.values import literal, pairs
from unfooled.victims.checks import check_victim
from unfooled.victims.fake import FakeVictim
from unfooled.victims.http import connection
from unfooled.victims.http.connection import UnreachableError
from unfooled.victims.http.endpoint import HttpVictim
from unfooled.victims.loading import load_victim
from waiting import eventually

TEXTS = ["a great film", "a dull film", "a film", "", "naïve 🙂", "great great", "bad"]
Reply = tuple[int, Any, dict[str, str]]


class Server(LoopbackServer):
    """Answers like the fake victim unless `script` has something else to say first."""

    def __init__(self) -> None:
        self.script: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.form: Callable[[Any], Any] = self.probabilities
        self.pause = 0.0
        self.busy = self.busiest = 0
        self.lock = threading.Lock()
        super().__init__("/classify")

    def answer(
        self, path: str, document: Any, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]] | None:
        try:
            status, body, more = self.reply(document, headers)
        except ConnectionAbortedError:
            return None
        return status, body if isinstance(body, bytes) else json.dumps(body).encode(), more

    def reply(self, document: Any, headers: dict[str, str]) -> Reply:
        with self.lock:
            self.requests.append(document)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.busy += 1
            self.busiest = max(self.busy, self.busiest)
            reply = self.script.pop(0) if self.script else None
        time.sleep(self.pause)
        with self.lock:
            self.busy -= 1
        return reply or (200, self.form(document), {})

    def probabilities(self, document: Any) -> Any:
        texts = [tuple(t) if isinstance(t, list) else t for t in document["texts"]]
        return {"model": "fake", "probabilities": FakeVictim().predict(texts).tolist()}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., HttpVictim]]:
    made: list[HttpVictim] = []

    def connect(url: str = server.url, **options: Any) -> HttpVictim:
        options = {
            "labels": ("negative", "positive"),
            "backoff": 0.01,
            "retries": 2,
            "timeout": 5.0,
            **options,
        }
        victim = load_victim(url, **options)
        assert isinstance(victim, HttpVictim)
        made.append(victim)
        return victim

    yield connect
    for victim in made:
        victim.close()


Connect = Callable[..., HttpVictim]


def test_an_endpoint_is_a_victim(server: Server, connect: Connect) -> None:
    victim = connect(batch_size=2)
    expected = FakeVictim().predict(TEXTS)
    assert np.array_equal(victim.predict(TEXTS), expected)
    assert sorted(len(request["texts"]) for request in server.requests) == [1, 2, 2, 2]
    assert victim.capabilities == {"probabilities"}
    assert victim.name == "127.0.0.1"
    check_victim(victim, TEXTS)
    copy = pickle.loads(pickle.dumps(victim))
    assert copy.fingerprint() == victim.fingerprint()
    assert np.array_equal(copy.predict(TEXTS), expected)
    copy.close()


def test_pairs_travel_as_lists(server: Server, connect: Connect) -> None:
    pairs = [("a great", "film"), ("a", "dull film"), ("x", "y")]
    victim = connect()
    assert np.array_equal(victim.predict(pairs), FakeVictim().predict(pairs))
    check_victim(victim, pairs)
    assert server.requests[0] == {"texts": [list(pair) for pair in pairs]}


def scores(text: str) -> tuple[float, float]:
    negative, positive = FakeVictim().predict([text])[0].tolist()
    return negative, positive


FORMS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "by name": (
        lambda doc: {
            "probabilities": [
                dict(zip(("negative", "positive"), scores(t), strict=True)) for t in doc["texts"]
            ]
        },
        {},
    ),
    "list at the root, as hosted models answer": (
        lambda doc: [
            sorted(
                ({"label": n, "score": s} for n, s in zip(("negative", "positive"), scores(t), strict=True)),
                key=lambda entry: -entry["score"],
            )
            for t in doc["inputs"]
        ],
        {"input_field": "inputs", "output_field": "", "body": '{"parameters": {"top_k": null}}'},
    ),
    "deep paths": (
        lambda doc: {"result": [{"scores": [scores(t) for t in doc["data"]["rows"]]}]},
        {"input_field": "data.rows", "output_field": "result.0.scores"},
    ),
    "second class": (lambda doc: {"probabilities": [scores(t)[1] for t in doc["texts"]]}, {}),
    "logits": (
        lambda doc: {"probabilities": np.log([scores(t) for t in doc["texts"]]).tolist()},
        {"logits": True},
    ),
    "one text each": (lambda doc: {"probabilities": scores(doc["texts"])}, {"single": "true"}),
    "one text each, wrapped": (lambda doc: {"probabilities": [scores(doc["texts"])]}, {"single": True}),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_requests_and_answers(server: Server, connect: Connect, form: str) -> None:
    server.form, options = FORMS[form]
    victim = connect(**options)
    assert np.abs(victim.predict(TEXTS) - FakeVictim().predict(TEXTS)).max() < 1e-12
    if "body" in options:
        assert server.requests[0]["parameters"] == {"top_k": None}
    if options.get("single"):
        assert len(server.requests) == len(TEXTS)


def test_decided_labels_have_no_probabilities(server: Server, connect: Connect) -> None:
    server.form = lambda doc: {
        "probabilities": ["positive" if scores(t)[1] > 0.5 else "negative" for t in doc["texts"]]
    }
    victim = connect()
    assert victim.capabilities == frozenset()
    assert victim.predict(["great", "bad"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_labels_are_read_from_an_answer(server: Server, connect: Connect) -> None:
    assert connect(labels=None).labels == ("0", "1")
    server.form = FORMS["by name"][0]
    victim = connect(labels=None)
    assert victim.labels == ("negative", "positive")
    assert np.array_equal(victim.predict(TEXTS), FakeVictim().predict(TEXTS))


def test_an_endpoint_for_pairs_is_looked_at_with_a_pair(server: Server, connect: Connect) -> None:
    server.script = [(422, {"detail": "want two"}, {})]
    assert connect(labels=None).labels == ("0", "1")
    assert isinstance(server.requests[1]["texts"][0], list)


# -- trouble -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_servers_are_asked_again(server: Server, connect: Connect, status: int) -> None:
    server.script = [(status, b"later", {}), (status, b"later", {})]
    assert connect().predict(["great"]).shape == (1, 2)
    assert len(server.requests) == 3


def test_waits_double_and_follow_the_server(server: Server, connect: Connect) -> None:
    server.script = [(500, b"", {}), (500, b"", {}), (429, b"", {"retry-after": "0.3"})]
    connect(backoff=0.05, retries=3).predict(["great"])
    first, second, third = np.diff(server.times)
    assert 0.05 <= first < second < third
    assert second >= 0.1
    assert third >= 0.3


def test_a_server_that_stays_broken(server: Server, connect: Connect) -> None:
    server.script = [(500, b"stack trace " * 50, {})] * 9
    victim = connect(f"{server.url.replace('http://', 'http://me:secret@')}?key=secret")
    with pytest.raises(VictimError, match="/classify failed 3 times, last with status 500: 'stack") as caught:
        victim.predict(["great"])
    assert "secret" not in str(caught.value)
    assert len(caught.value.cause) < 350
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "remedy"), [(400, "fields"), (401, "token"), (404, "address")])
def test_other_refusals_are_final(server: Server, connect: Connect, status: int, remedy: str) -> None:
    server.script = [(status, b"no", {})]
    with pytest.raises(VictimError, match=f"status {status}: 'no'") as caught:
        connect().predict(["great"])
    assert remedy in caught.value.remedy
    assert len(server.requests) == 1


def test_redirects_are_not_followed(server: Server, connect: Connect) -> None:
    elsewhere = "http://me:secret@127.0.0.1:9/elsewhere?key=secret"
    victim = connect()
    server.script = [(302, b"", {"location": elsewhere})] * 3
    with pytest.raises(UnreachableError, match=r"a redirect to 'http://127.0.0.1:9/elsewhere'") as caught:
        victim.predict(["great"])
    assert "not followed" in caught.value.remedy
    server.script = [(302, b"", {"location": "http://["})]
    assert np.array_equal(victim.predict(["great"]), FakeVictim().predict(["great"]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>hello</html>", "answered no JSON, but '<html>hello"),
        (b"\xff\xfe", "answered no JSON"),
        (
            {"scores": [1], "model": "x"},
            "without 'probabilities' of the path 'probabilities'; there is only 'scores', 'model'",
        ),
        ([[0.5, 0.5]], "there is a list of 1"),
        ({"probabilities": [[0.5, 0.5]] * 3}, "3 entries to 1 texts"),
        ({"probabilities": {"a": 1}}, "a dict at 'probabilities', no list"),
        ({"probabilities": [[0.2, 0.3, 0.5]]}, "3 scores per text"),
        ({"probabilities": [None]}, "an answer reads 'None'"),
    ],
)
def test_garbage_is_named(server: Server, connect: Connect, body: Any, message: str) -> None:
    victim = connect()
    server.script = [(200, body, {})] * 3
    with pytest.raises(VictimError, match=message) as caught:
        victim.predict(["great"])
    assert caught.value.remedy
    assert not getattr(caught.value, "fatal", False)
    assert len(server.requests) == 3
    server.script = [(200, body, {})]
    assert np.array_equal(victim.predict(["great"]), FakeVictim().predict(["great"]))


def test_a_wrong_field_is_said_soon(server: Server, connect: Connect) -> None:
    victim = connect(output_field="scores", retries=99)
    for _ in range(10):
        with pytest.raises(VictimError, match="without 'scores'"):
            victim.predict(["great"])
    assert len(server.requests) == 4 + 4 + 8


def test_an_endpoint_that_made_sense_before_gets_all_tries(server: Server, connect: Connect) -> None:
    victim = connect(retries=9)
    victim.predict(["great"])
    server.script = [(200, {"probabilities": None}, {})] * 9
    assert victim.predict(["great"]).shape == (1, 2)
    assert len(server.requests) == 11


def test_one_bad_answer_at_the_start_does_not_spoil_the_labels(server: Server, connect: Connect) -> None:
    server.form = FORMS["by name"][0]
    server.script = [(200, {"probabilities": [None]}, {}), (200, b'{"probabilities": [{"nega', {})]
    assert connect(labels=None).labels == ("negative", "positive")


def test_the_time_is_for_the_whole_answer(server: Server, connect: Connect) -> None:
    """Bytes that keep dripping in do not keep a request alive."""
    server.drip = 0.05
    with pytest.raises(UnreachableError, match="failed 2 times, last with a timeout"):
        connect(timeout=0.3, retries=1).predict(["great"])


def test_an_absurd_wait_is_not_waited_for(server: Server, connect: Connect) -> None:
    server.script = [(429, b"quota", {"retry-after": "86400"})] * 9
    with pytest.raises(UnreachableError, match="status 429") as caught:
        connect(retries=1).predict(["great"])
    assert "come back in 24 hours" in caught.value.remedy


def test_cookies_are_not_kept(server: Server, connect: Connect) -> None:
    victim = connect()
    server.script = [(503, b"", {"set-cookie": "session=1"})]
    victim.predict(["great"])
    assert len(server.headers) == 2
    assert not any("cookie" in map(str.lower, headers) for headers in server.headers)


def test_a_slow_server_times_out(server: Server, connect: Connect) -> None:
    server.pause = 0.3
    with pytest.raises(UnreachableError, match="failed 2 times, last with a timeout") as caught:
        connect(timeout=0.05, retries=1).predict(["great"])
    assert "--victim-option timeout=60" in caught.value.remedy


def test_a_server_that_never_answered_is_given_up_early(server: Server, connect: Connect) -> None:
    server.pause = 0.3
    with pytest.raises(UnreachableError, match="failed 2 times, last with a timeout"):
        connect(timeout=0.05, retries=9).predict(["great"])


def test_a_server_that_answered_before_gets_all_tries(server: Server, connect: Connect) -> None:
    victim = connect(timeout=0.2, retries=3)
    victim.predict(["great"])
    server.pause = 0.5
    with pytest.raises(UnreachableError, match="failed 4 times, last with a timeout"):
        victim.predict(["awful"])


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("trouble", ["slow", "hangs up", 503])
def test_a_server_that_breaks_on_one_text_is_still_there(
    server: Server, connect: Connect, trouble: Any, pair: bool
) -> None:
    def breaks(document: Any) -> Any:
        if "poison" not in json.dumps(document):
            return server.probabilities(document)
        if trouble == "slow":
            time.sleep(0.4)
            return None
        raise ConnectionAbortedError

    if trouble == 503:
        server.script = [(503, b"later", {})] * 2
    else:
        server.form = breaks
    text = ("poison", "film") if pair else "poison"
    with pytest.raises(VictimError, match="failed 2 times") as caught:
        connect(timeout=0.2, retries=1).predict([text])
    assert not getattr(caught.value, "fatal", False)
    assert isinstance(server.requests[-1]["texts"][0], list) == pair  # the probe looks like the data


def test_a_server_that_is_busy_for_every_text_is_lost(server: Server, connect: Connect) -> None:
    server.script = [(429, b"quota", {})] * 9
    with pytest.raises(UnreachableError, match="status 429") as caught:
        connect(retries=1).predict(["great"])
    assert "--victim-option rate_limit=2" in caught.value.remedy
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "fatal"), [(401, True), (403, True), (404, True), (400, False)])
def test_what_does_not_depend_on_the_text_is_fatal(
    server: Server, connect: Connect, status: int, fatal: bool
) -> None:
    server.script = [(status, b"no", {})]
    with pytest.raises(VictimError) as caught:
        connect().predict(["great"])
    assert getattr(caught.value, "fatal", False) is fatal
    assert getattr(pickle.loads(pickle.dumps(caught.value)), "fatal", False) is fatal


def test_a_whole_number_among_scores_leaves_the_probabilities(server: Server, connect: Connect) -> None:
    server.form = lambda doc: {"probabilities": [1 if text == "sure" else 0.25 for text in doc["texts"]]}
    victim = connect(batch_size=2)
    assert victim.predict(["sure", "a"]).tolist() == [[0.0, 1.0], [0.75, 0.25]]
    assert victim.predict(["sure"]).tolist() == [[0.0, 1.0]]
    assert victim.capabilities == {"probabilities"}
    first = connect()
    assert first.predict(["sure"]).tolist() == [[0.0, 1.0]]
    first.predict(["a"])
    assert first.capabilities == {"probabilities"}


def test_nobody_there(connect: Connect) -> None:
    with pytest.raises(UnreachableError, match="failed 3 times, last with ConnectError") as caught:
        connect("http://127.0.0.1:9/classify").predict(["great"])
    assert "is the server running" in caught.value.remedy


def test_tokens_come_from_the_environment(
    server: Server, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = connect(headers='{"Authorization": "env:MY_TOKEN", "x-plain": "1"}')
    with pytest.raises(VictimError, match="wants the environment variable MY_TOKEN"):
        victim.predict(["great"])
    monkeypatch.setenv("MY_TOKEN", "Bearer secret")
    victim.predict(["great"])
    assert {key.lower(): value for key, value in server.headers[0].items()}[
        "authorization"
    ] == "Bearer secret"
    assert b"secret" not in pickle.dumps(victim)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"headers": "{"}, "headers is not JSON"),
        ({"body": "[1]"}, "body is not a JSON object"),
        ({"batch_size": 0}, "batch_size=0 makes no sense: it must be at least 1"),
        ({"concurrency": "0"}, "concurrency=0 makes no sense"),
        ({"timeout": 0}, "timeout=0.0 makes no sense: it must be above 0"),
        ({"retries": -1}, "retries=-1 makes no sense: it must be at least 0"),
        ({"rate_limit": "nan"}, "rate_limit=nan makes no sense"),
        ({"speed": 1}, "http victims have no option 'speed'"),
    ],
)
def test_wrong_options(connect: Connect, options: dict[str, Any], message: str) -> None:
    with pytest.raises(VictimError, match=message):
        connect(**options)
    with pytest.raises(VictimError, match="names no host"):
        connect("http:///classify")


# -- many at once --------------------------------------------------------------------------------------


def test_requests_overlap_up_to_the_limit(server: Server, connect: Connect) -> None:
    server.pause = 0.05
    victim = connect(batch_size=1, concurrency=3)
    texts = [f"great {i}" for i in range(9)]
    assert np.array_equal(victim.predict(texts), FakeVictim().predict(texts))
    assert server.busiest == 3


def test_the_rate_limit_holds(server: Server, connect: Connect) -> None:
    victim = connect(batch_size=1, concurrency=8, rate_limit=25.0)
    victim.predict([f"great {i}" for i in range(6)])
    assert max(server.times) - min(server.times) >= 5 / 25.0 - 0.02


def test_the_async_oracle(server: Server, connect: Connect) -> None:
    victim = connect(labels=None)
    oracle = oracle_for(victim)
    assert isinstance(oracle, AsyncVictimOracle)
    assert isinstance(oracle, AsyncOracle)
    assert (oracle.concurrency, oracle.batch_size) == (4, 32)

    async def all_three() -> Any:
        return await asyncio.gather(oracle.answer(TEXTS[:3]), oracle.answer(TEXTS[3:]), oracle.answer([]))

    for _ in range(2):  # each run has a loop of its own
        first, second, none = asyncio.run(all_three())
        expected = FakeVictim().predict(TEXTS).round(6)
        assert np.array_equal(np.stack([*first, *second]), expected)
        assert none == []
    assert np.array_equal(np.stack(oracle(TEXTS)), expected)
    server.script = [(200, {"probabilities": [[2.0, 3.0]]}, {})] * 3
    with pytest.raises(VictimError, match="logits"):
        asyncio.run(oracle.answer(["x"]))


def test_one_failing_batch_stops_the_others(server: Server, connect: Connect) -> None:
    server.script = [(400, b"no", {})]
    victim = connect(batch_size=1, concurrency=1)
    with pytest.raises(VictimError, match="status 400"):
        victim.predict([f"great {i}" for i in range(50)])
    assert len(server.requests) < 10
    assert victim.predict(["great"]).shape == (1, 2)


def test_ctrl_c_leaves_no_noise(server: Server) -> None:
    script = (
        # A busy machine makes asyncio warn of slow steps; what it calls errors must not be there.
        "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
        "from unfooled.victims.loading import load_victim\n"
        f"victim = load_victim({server.url!r}, labels='a,b')\n"
        "try:\n    victim.predict(['great'])\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    )
    server.pause = 5.0
    command = [sys.executable, "-W", "error", "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: server.requests)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "stopped\n", "")


@pytest.mark.parametrize("interrupted", ["__init__", "start"])
def test_an_interrupted_start_leaves_no_loop_open(monkeypatch: pytest.MonkeyPatch, interrupted: str) -> None:
    loops = []
    new_loop = asyncio.new_event_loop

    def remember() -> asyncio.AbstractEventLoop:
        loops.append(new_loop())
        return loops[-1]

    def stop(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    victim = load_victim("http://127.0.0.1:9/x", labels="a,b")
    monkeypatch.setattr(asyncio, "new_event_loop", remember)
    monkeypatch.setattr(threading.Thread, interrupted, stop)
    with pytest.raises(KeyboardInterrupt):
        victim.predict(["great"])
    assert [loop.is_closed() for loop in loops] == [True]


def test_an_endpoint_that_is_not_there_is_fatal() -> None:
    victim = load_victim("http://127.0.0.1:9/nothing", labels="a,b")
    with pytest.raises(UnreachableError, match="is the server running"):
        victim.predict(["great"])
    assert UnreachableError.fatal


def victim_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "unfooled-http"}


def test_connections_are_kept_and_closed(server: Server, connect: Connect) -> None:
    others = victim_threads()  # of victims that other tests left to the garbage collector
    victim = connect()
    before = threading.active_count()
    for _ in range(3):
        victim.predict(["great"])
    victim.close()
    victim.close()
    assert not victim_threads() - others
    assert threading.active_count() <= before + 1
    assert victim.predict(["great"]).shape == (1, 2)  # opens again


def test_a_line_that_is_busy_is_left_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector may close it at any moment, and would print whatever is raised."""
    monkeypatch.setattr(connection, "CLOSE_SECONDS", 0.05)
    line = connection.Connection(concurrency=1, timeout=1.0, rate_limit=0.0)
    free = threading.Event()
    line._loop.call_soon_threadsafe(free.wait)
    line.close()
    assert line._thread.is_alive()
    free.set()
    line._thread.join()
    line.close()
    assert line._loop.is_closed()


def test_an_answer_that_is_a_list_is_told_how_to_be_read_and_can_be(
    server: Server, connect: Callable[..., HttpVictim]
) -> None:
    """By the very words of the remedy, as the command line takes them."""
    server.form = lambda document: server.probabilities(document)["probabilities"]
    with pytest.raises(VictimError, match="an empty path means the whole answer") as told:
        connect().predict(TEXTS)
    typed = shlex.split(told.value.remedy.partition("--victim-option ")[2].partition(" (in Python")[0])
    given = {name: literal(value) for name, value in pairs(typed, "--victim-option").items()}
    assert given == {"output_field": ""}
    assert connect(**given).predict(TEXTS).tolist() == FakeVictim().predict(TEXTS).tolist()


def test_headers_without_end_are_not_called_slow(server: Server, connect: Callable[..., HttpVictim]) -> None:
    many = {f"x-{number}": "y" * 1000 for number in range(1000)}
    server.script = [(200, {}, many)] * 9
    with pytest.raises(VictimError, match="too many headers") as told:
        connect().predict(TEXTS[:1])
    assert "is the server running" not in str(told.value)
