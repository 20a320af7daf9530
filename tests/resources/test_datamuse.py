"""The Datamuse client against a server on this machine that answers in the service's recorded form."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from notices import Notices
from reviews import sentences
from unfooled.attacks.breaking_bert import LowestConfidence
from unfooled.attacks.parts.goals import only_class
from unfooled.attacks.parts.importance import RandomOrder
from unfooled.attacks.parts.sources import Datamuse, WordNetSynonyms
from unfooled.bodies import MOST_BYTES
from unfooled.core.recipe import Recipe, fit_to_machine, load_recipe
from unfooled.core.session import require_resources
from unfooled.data.dataset import Dataset
from unfooled.errors import OracleError, ResourceError, RunFileError
from unfooled.resources import datamuse
from unfooled.resources.answers import AnswerCache
from unfooled.resources.datamuse import CachedDatamuse, DatamuseOracle, open_datamuse
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim

pytest.importorskip("httpx")

# As the service answers: words with a score, the best first, phrases among them.
WORDS = {
    "ocean": [
        {"word": "sea", "score": 3001},
        {"word": "the deep", "score": 88},
        {"word": "main", "score": 5},
    ],
    "dull": [{"word": "slow", "score": 9, "tags": ["syn", "adj"]}, {"word": "great", "score": 8}],
    "good": [{"word": "fine", "score": 9}],
}


@dataclasses.dataclass
class Drip:
    """The right answer, byte by byte."""

    seconds: float


class Service:
    """What the server does: `script` holds what to do for a word, one entry per request, then as recorded."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.times: list[float] = []
        self.script: dict[str, list[Any]] = {}
        self.always: Any = None
        self.address = ""
        self.lock = threading.Lock()

    def act(self, word: str) -> Any:
        with self.lock:
            self.asked.append(word)
            self.times.append(time.monotonic())
            return self.script[word].pop(0) if self.script.get(word) else self.always


class Handler(BaseHTTPRequestHandler):
    service: ClassVar[Service]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        (word,) = query.get("rel_syn") or query.get("ml") or [""]
        what = self.service.act(word)
        headers: dict[str, str] = {}
        status, body = 200, json.dumps(WORDS.get(word, [])).encode()
        if url.path != "/words" or query.get("max") != ["100"]:
            status, body = 404, b"not found"
        elif isinstance(what, int):
            status, body = what, b"not now"
        elif isinstance(what, dict):
            status, body, headers = 429, b"slower", what
        elif isinstance(what, float):
            time.sleep(what)
        elif isinstance(what, bytes):
            body = what
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            for byte in body if isinstance(what, Drip) else ():
                self.wfile.write(bytes([byte]))
                time.sleep(what.seconds)
            self.wfile.write(b"" if isinstance(what, Drip) else body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client did not wait

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def service() -> Iterator[Service]:
    here = Service()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"service": here}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    here.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield here
    server.shutdown()
    server.server_close()
    thread.join(timeout=60)
    assert not thread.is_alive()


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(tmp_path / "answers.sqlite")


def client(service: Service, cache: AnswerCache, **options: Any) -> DatamuseOracle:
    settings: dict[str, Any] = {"timeout": 2.0, "tries": 3, "backoff": 0.01, "rate": 1000.0} | options
    return DatamuseOracle(service.address, cache=cache, **settings)


def ask(oracle: Any, *words: str) -> list[Any]:
    found: list[Any] = oracle([("rel_syn", word) for word in words])
    return found


# -- answers -------------------------------------------------------------------------------------------


def test_single_words_come_in_the_services_order_and_an_empty_answer_is_an_answer(
    service: Service, cache: AnswerCache
) -> None:
    oracle = client(service, cache)
    assert ask(oracle, "ocean", "zzz", "ocean") == [("sea", "main"), (), ("sea", "main")]
    assert sorted(service.asked) == ["ocean", "zzz"]


def test_answers_are_kept_on_disk_and_asked_once(service: Service, cache: AnswerCache) -> None:
    ask(client(service, cache), "ocean", "zzz")
    service.always = 500
    assert ask(client(service, cache), "zzz", "ocean") == [(), ("sea", "main")]
    assert len(service.asked) == 2
    assert client(service, cache)([("rel_syn", "ocean")]) == [("sea", "main")]
    with pytest.raises(ResourceError):
        client(service, cache)([("ml", "ocean")])  # another question


def test_an_answer_that_changes_at_the_service_does_not_change_here(
    service: Service, cache: AnswerCache
) -> None:
    ask(client(service, cache), "good")
    cache.put(service.address, {"rel_syn=good": ["great"]})
    service.script["good"] = [b'[{"word": "great"}]']
    assert ask(client(service, cache), "good") == [("fine",)]


# -- trouble -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [429, 500, 503], ids=str)
def test_a_busy_service_is_asked_again(service: Service, cache: AnswerCache, trouble: int) -> None:
    service.script["ocean"] = [trouble, trouble]
    assert ask(client(service, cache), "ocean") == [("sea", "main")]
    assert len(service.asked) == 3


def test_it_waits_as_long_as_the_service_says(service: Service, cache: AnswerCache) -> None:
    service.script["ocean"] = [{"retry-after": "0.3"}]
    ask(client(service, cache), "ocean")
    assert service.times[1] - service.times[0] >= 0.3


def test_a_slow_answer_is_not_waited_for_and_tried_again(service: Service, cache: AnswerCache) -> None:
    service.script["ocean"] = [0.6]
    assert ask(client(service, cache, timeout=0.2), "ocean") == [("sea", "main")]


def test_the_time_is_for_the_whole_answer(service: Service, cache: AnswerCache) -> None:
    service.script["ocean"] = [Drip(0.05)]
    assert ask(client(service, cache, timeout=0.3), "ocean") == [("sea", "main")]
    assert len(service.asked) == 2


@pytest.mark.parametrize("trouble", [429, 503, 0.5], ids=str)
def test_a_service_that_stays_away_ends_the_run_and_says_what_to_do(
    service: Service, cache: AnswerCache, trouble: Any
) -> None:
    service.always = trouble
    with pytest.raises(ResourceError, match="--candidates wordnet"):
        ask(client(service, cache, timeout=0.1, tries=2), "ocean")
    assert len(service.asked) == 2


def test_what_came_before_the_outage_is_kept(service: Service, cache: AnswerCache) -> None:
    service.script["zzz"] = [503, 503]
    with pytest.raises(ResourceError):
        ask(client(service, cache, tries=2, concurrency=1), "ocean", "zzz")
    assert cache.get(service.address, ["rel_syn=ocean"]) == {"rel_syn=ocean": ["sea", "main"]}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b'[{"score": 1}]',
        b'["sea"]',
        b'[{"word": 3}]',
        b'[{"word": "se',
        b"\xff\xfe",
        b"[" * 200_000,
        b"[" + b" " * (MOST_BYTES + 1) + b"]",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_nonsense_twice_is_an_error_of_that_word_alone(
    service: Service, cache: AnswerCache, body: bytes
) -> None:
    service.script["ocean"] = [body, body]
    oracle = client(service, cache)
    with pytest.raises(OracleError, match="ocean"):
        ask(oracle, "good", "ocean")
    assert ask(oracle, "good") == [("fine",)]
    with pytest.raises(OracleError):
        ask(oracle, "ocean")
    assert service.asked.count("ocean") == 2, "it is not asked again in this run"
    assert ask(client(service, cache), "ocean") == [("sea", "main")], "nor is nonsense kept"


def test_nonsense_once_is_forgiven(service: Service, cache: AnswerCache) -> None:
    service.script["ocean"] = [b"<html>"]
    assert ask(client(service, cache), "ocean") == [("sea", "main")]


def test_a_wrong_address_is_not_tried_again(service: Service, cache: AnswerCache) -> None:
    oracle = DatamuseOracle(f"{service.address}/v2", cache=cache, backoff=0.01)
    with pytest.raises(ResourceError, match="check the address"):
        ask(oracle, "ocean")
    assert len(service.asked) == 1
    with pytest.raises(ResourceError, match="not valid"):
        ask(DatamuseOracle("datamuse", cache=cache), "ocean")


def test_requests_keep_to_the_rate_whatever_is_asked(service: Service, cache: AnswerCache) -> None:
    oracle = client(service, cache, rate=50.0, concurrency=8)
    began = time.monotonic()
    ask(oracle, *(f"word{i}" for i in range(11)))
    assert time.monotonic() - began >= 10 / 50.0
    assert oracle.requests == 11


def test_a_damaged_file_of_answers_is_explained(service: Service, tmp_path: Path) -> None:
    (tmp_path / "bad.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(ResourceError, match="delete it"):
        ask(client(service, AnswerCache(tmp_path / "bad.sqlite")), "ocean")


@pytest.mark.parametrize("damage", ['"sea"', '["lake"]', '["sea", "main"', "7"])
def test_a_damaged_answer_is_asked_for_again(service: Service, cache: AnswerCache, damage: str) -> None:
    ask(client(service, cache), "ocean", "good")
    before = cache.digest(service.address)
    with closing(sqlite3.connect(cache.file)) as database, database:
        changed = database.execute(
            "UPDATE kept_answers SET answer = ? WHERE question = 'rel_syn=ocean'", (damage,)
        )
        assert changed.rowcount == 1
    assert ask(CachedDatamuse(service.address, cache), "ocean", "good") == [None, ("fine",)]
    assert cache.digest(service.address)[0] == 1
    again = client(service, cache)
    assert ask(again, "ocean", "good") == [("sea", "main"), ("fine",)]
    assert again.requests == 1
    assert cache.digest(service.address) == before


# -- offline -------------------------------------------------------------------------------------------


def test_offline_only_kept_answers_are_known(service: Service, cache: AnswerCache) -> None:
    ask(client(service, cache), "ocean", "zzz")
    assert ask(CachedDatamuse(service.address, cache), "ocean", "good", "zzz") == [("sea", "main"), None, ()]


def test_the_probe_says_why_it_cannot_be_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert datamuse.unreachable(service.address) == ""
    service.always = 429
    assert datamuse.unreachable(service.address) == "", "busy is not away"
    service.always = 503
    assert datamuse.unreachable(service.address) == "status 503"
    assert "no list of words" in _with(service, b"<html>")
    assert "timeout" in _with(service, 0.5)
    assert "Connect" in datamuse.unreachable("http://127.0.0.1:9", timeout=0.5)
    with pytest.raises(ResourceError, match="not valid"):
        datamuse.unreachable("api.datamuse.com")
    monkeypatch.setenv("UNFOOLED_OFFLINE", "1")
    assert "UNFOOLED_OFFLINE" in datamuse.unreachable(service.address)


def _with(service: Service, what: Any) -> str:
    service.always = what
    return datamuse.unreachable(service.address, timeout=0.2)


def test_fingerprints_tell_online_from_what_is_kept(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    assert datamuse.fingerprint(f"{service.address}/") == service.address
    before = datamuse.fingerprint(f"cached:{service.address}")
    oracle = open_datamuse(service.address)
    assert isinstance(oracle, DatamuseOracle)
    ask(oracle, "ocean")
    after = datamuse.fingerprint(f"cached:{service.address}")
    assert (before != after, "1 kept answers" in after) == (True, True)
    assert isinstance(open_datamuse(f"cached:{service.address}"), CachedDatamuse)


# -- in an attack --------------------------------------------------------------------------------------


def recipe(address: str, **changes: Any) -> Recipe:
    search = LowestConfidence(
        importance=RandomOrder(), candidates=Datamuse(address=address, **changes), constraints=()
    )
    return dataclasses.replace(only_class(load_recipe("breaking-bert"), "any"), search=search)


def test_a_run_asks_the_service_says_so_and_its_file_can_go_on(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    told, data = (
        Notices(),
        Dataset.from_pairs([("a dull, dull film", "negative"), ("a good film", "positive")]),
    )
    run = attack(FakeVictim(), data, recipe(service.address), out=tmp_path / "run", observer=told, limit=1)
    assert "single words of the texts are sent there" in told.notices[0]
    with RunFile.read(run.path) as file:
        part = file.header["identity"]["recipe"]["search"]["candidates"]
        assert (part["mode"], part["fallback"]) == ("online", None)
        own = [notice for notice in told.notices if not notice.startswith("models compute on")]
        assert file.header["environment"]["notices"] == own
        assert [result.outcome for result in file.results()] == ["success"]
    assert "dull" in service.asked
    attack(FakeVictim(), data, recipe(service.address), out=tmp_path / "run")
    assert run.summary().total == 2
    service.always = 503
    with pytest.raises(RunFileError, match="mode"):
        attack(
            FakeVictim(), data, recipe(service.address, fallback=_fallback(tmp_path)), out=tmp_path / "run"
        )


def _fallback(tmp_path: Path) -> Any:
    from unfooled.attacks.parts.sources import UserTable

    table = tmp_path / "table.csv"
    table.write_text("film,movie\ngood,bad\n")
    return UserTable(str(table))


def test_without_the_service_the_fallback_is_announced_and_written_down(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    oracle = open_datamuse(service.address)
    ask(oracle, "dull")
    service.always = 503
    told, data = (
        Notices(),
        Dataset.from_pairs([("a dull, dull film", "negative"), ("a good film", "positive")]),
    )
    chosen = recipe(service.address, fallback=_fallback(tmp_path))
    run = attack(FakeVictim(), data, chosen, out=tmp_path / "run", observer=told)
    assert "status 503" in told.notices[0]
    assert "UserTable instead" in told.notices[0]
    with RunFile.read(run.path) as file:
        identity = file.header["identity"]
        assert identity["recipe"]["search"]["candidates"]["mode"] == "offline"
        assert "1 kept answers" in identity["resources"][f"datamuse:cached:{service.address}"]
        outcomes = {result.key: result.outcome for result in file.results()}
    # Word 1 from the kept answer of the service, word 2 from the table.
    assert outcomes == {0: "success", 1: "success"}


def test_without_service_and_fallback_nothing_runs(service: Service) -> None:
    service.always = 503
    with pytest.raises(ResourceError, match="no fallback"):
        fit_to_machine(recipe(service.address, fallback=None))


def test_the_fallback_is_wordnet_and_is_needed_only_offline(service: Service) -> None:
    assert Datamuse().fallback == WordNetSynonyms()
    online, _ = fit_to_machine(recipe(service.address))
    assert online.oracles() == [f"datamuse:{service.address}"]
    assert require_resources(online) == {f"datamuse:{service.address}": service.address}
    service.always = 503
    offline, notices = fit_to_machine(recipe(service.address))
    assert offline.oracles() == [f"datamuse:cached:{service.address}", "wordnet:wordnet"]
    assert fit_to_machine(offline) == (offline, [])
    assert len(notices) == 1


def test_an_outage_in_the_middle_stops_the_run_and_it_goes_on_later(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datamuse, "LONGEST_WAIT", 0.01)
    data = Dataset.from_pairs(sentences(12))
    service.script["predictable"] = [503] * 5
    service.script["film"] = [503] * 5
    with pytest.raises(ResourceError, match="finished examples are saved"):
        attack(FakeVictim(), data, recipe(service.address), out=tmp_path / "run")
    run = attack(FakeVictim(), data, recipe(service.address), out=tmp_path / "run")
    assert run.summary().counts["error"] == 0
    assert run.summary().total == 12
