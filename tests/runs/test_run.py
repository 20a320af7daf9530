"""A whole attack into a run file: outcomes, resuming, refusing, and surviving what goes wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfooled
from command_line import attack_fake
from reviews import sentences, write_csv
from stored_runs import rows_written
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.batching import Meter
from unfooled.core.recipe import load_recipe
from unfooled.core.result import Result
from unfooled.core.session import Settings
from unfooled.errors import CapabilityError, DataError, RunFileError, UserError, VictimError
from unfooled.runs.attack import Observer, Run, attack
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from waiting import eventually


def digest(path: Path) -> str:
    with closing(RunFile.read(path)) as file:
        return file.content_digest()


class Counting(FakeVictim):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.texts: list[Any] = []

    def predict(self, texts: Sequence[Any], /) -> Any:
        self.texts.extend(texts)
        return super().predict(texts)


def test_six_lines_of_python(tmp_path: Path) -> None:
    write_csv(tmp_path / "mine.csv", sentences(30))
    victim = unfooled.load_victim("fake")
    data = unfooled.load_data(tmp_path / "mine.csv")
    run = unfooled.attack(victim, data, "deepwordbug", out=tmp_path / "run", limit=20)
    summary = run.summary()
    assert summary.total == 20
    assert summary.accuracy_before.value == 1.0
    assert summary.success_rate.value > 0.3
    assert summary.accuracy_under_attack.value == pytest.approx(1 - summary.success_rate.value)
    for result in run.results():
        assert result.queries > 1
        assert (result.perturbed != result.original) == bool(result.edits)


def test_the_same_call_again_asks_nothing_new_and_a_larger_limit_goes_on(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(40)))
    victim = Counting()
    attack(victim, data, "deepwordbug", out=tmp_path / "run", limit=10)
    first = digest(tmp_path / "run")
    before = len(victim.texts)
    started: list[tuple[int, int]] = []

    class Watch(Observer):
        def started(self, total: int, done: int = 0, *, what: str = "") -> None:
            started.append((total, done))

        def finished(self, result: Result) -> None:
            started.append((-1, result.key))

    attack(victim, data, "deepwordbug", out=tmp_path / "run", limit=10, observer=Watch())
    assert started == [(10, 10)]
    assert digest(tmp_path / "run") == first
    asked_by_checks = len(victim.texts) - before
    assert asked_by_checks < 200  # the checks before an attack, and nothing else
    attack(victim, data, "deepwordbug", out=tmp_path / "run")
    attack(Counting(), data, "deepwordbug", out=tmp_path / "whole")
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


@pytest.mark.parametrize("window", [1, 7, 500])
def test_the_window_does_not_change_the_run(tmp_path: Path, window: int) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(25)))
    attack("fake", data, "deepwordbug", out=tmp_path / "a", settings=Settings(window=window))
    attack("fake", data, "deepwordbug", out=tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_another_seed_is_another_run_and_is_not_mixed_in(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(5)))
    attack("fake", data, "deepwordbug", out=tmp_path / "run")
    with pytest.raises(RunFileError, match="seed"):
        attack("fake", data, "deepwordbug", out=tmp_path / "run", settings=Settings(seed=1))
    attack("fake", data, "deepwordbug", out=tmp_path / "run", settings=Settings(seed=1), restart=True)
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert file.header["identity"]["seed"] == 1


def test_the_header_alone_rebuilds_the_recipe(tmp_path: Path) -> None:
    from unfooled.core.recipe import load_recipe, recipe_from_json

    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(3)))
    attack("fake", data, "deepwordbug@paper", out=tmp_path / "run")
    with closing(RunFile.read(tmp_path / "run")) as file:
        assert recipe_from_json(file.header["identity"]["recipe"]) == load_recipe("deepwordbug@paper")
        assert file.header["environment"]["unfooled"] == unfooled.__version__
        assert file.counters()["victim"]["computed"] > 0


def test_a_victim_that_throws_on_one_text_errs_on_that_one_only_and_it_is_tried_again(tmp_path: Path) -> None:
    rows = sentences(12)
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", rows))
    run = attack(FakeVictim(poison="number 7."), data, "deepwordbug", out=tmp_path / "run")
    results = {result.key: result for result in run.results()}
    assert [key for key, result in results.items() if result.outcome == "error"] == [7]
    assert "number 7." in results[7].note or "poison" in results[7].note
    assert run.summary().errors == 1
    assert run.summary().success_rate.n == 11

    again: list[int] = []

    class Watch(Observer):
        def finished(self, result: Result) -> None:
            again.append(result.key)

    attack(FakeVictim(poison="number 7."), data, "deepwordbug", out=tmp_path / "run", observer=Watch())
    assert again == [7]


def test_many_bad_rows_do_not_stop_the_others(tmp_path: Path) -> None:
    rows = [*sentences(5), *((f"poison {i}", "positive") for i in range(45)), *sentences(20, seed=1)]
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", rows))
    run = attack(FakeVictim(poison="poison"), data, "deepwordbug", out=tmp_path / "run")
    assert run.summary().errors == 45
    assert run.summary().attacked + run.summary().counts["skipped"] == 25


def test_a_changed_table_of_words_is_another_run(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    search = GreedySwap(importance=Deletion(), candidates=Neighbours(table=str(table)), constraints=())
    recipe = dataclasses.replace(load_recipe("textfooler"), search=search)
    table.write_text(json.dumps({"great": ["awful"], "superb": ["dull"]}))
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(6)))
    attack("fake", data, recipe, out=tmp_path / "run", limit=3)
    table.write_text(json.dumps({"great": ["lame"]}))
    with pytest.raises(RunFileError, match="neighbours"):
        attack("fake", data, recipe, out=tmp_path / "run")


def test_plain_python_values_are_enough(tmp_path: Path) -> None:
    fake = FakeVictim()

    def classify(texts: list[str]) -> np.ndarray:
        return fake.predict(texts)

    classify.labels = ("negative", "positive")  # type: ignore[attr-defined]
    run = attack(classify, sentences(8), "deepwordbug", out=tmp_path / "run")
    assert run.summary().total == 8
    with pytest.raises(VictimError, match="not a victim"):
        attack(3, sentences(3), out=tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="limit=-5"):
        attack("fake", sentences(3), "deepwordbug", out=tmp_path / "x", limit=-5)


@pytest.mark.parametrize("wrong", [{"window": 0}, {"budget": 0}, {"seed": -1}, {"max_words": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="makes no sense"):
        Settings(**wrong)


def test_counters_belong_to_the_run_not_to_the_victim(tmp_path: Path) -> None:
    class Metered(FakeVictim):
        meter = Meter()

        def predict(self, texts: Sequence[Any], /) -> Any:
            self.meter.add(len(texts), 0, 0, 0.0)
            return super().predict(texts)

    victim, counted = Metered(), []
    for name in ("a", "b"):
        attack(victim, sentences(5), "deepwordbug", out=tmp_path / name)
        with closing(RunFile.read(tmp_path / name)) as file:
            counted.append(file.counters()["victim"])
    assert counted[0]["model"]["items"] == counted[1]["model"]["items"] == counted[0]["computed"]


def test_nan_for_one_text_is_an_error_for_that_one_only(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(70)))
    run = attack(FakeVictim(nan_on="number 68."), data, "deepwordbug", out=tmp_path / "run")
    errors = [result for result in run.results() if result.outcome == "error"]
    assert [result.key for result in errors] == [68]
    assert "NaN" in errors[0].note


def test_wrong_shapes_and_logits_are_refused_before_the_attack(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(70)))

    def three(texts: list[str]) -> np.ndarray:
        return np.full((len(texts), 3), 1 / 3)

    def logits(texts: list[str]) -> np.ndarray:
        return np.array([[len(text), -len(text)] for text in texts], dtype=float)

    for wrong in (three, logits):
        with pytest.raises(VictimError):
            attack(
                FunctionVictim(wrong, labels=("negative", "positive")),
                data,
                "deepwordbug",
                out=tmp_path / "x",
            )


def test_hard_labels_only_names_what_would_work(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(5)))

    def hard(texts: list[str]) -> list[str]:
        return ["positive" if "great" in text else "negative" for text in texts]

    with pytest.raises(CapabilityError, match=r"(?s)needs probabilities.*work on it: .*tack-on@paper"):
        attack(FunctionVictim(hard, labels=("negative", "positive")), data, "deepwordbug", out=tmp_path / "x")


def test_labels_that_do_not_match_show_both_lists(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", [("good film", "ham"), ("bad film", "spam")]))
    with pytest.raises(DataError, match="ham") as caught:
        attack("fake", data, "deepwordbug", out=tmp_path / "x")
    assert "negative" in str(caught.value)
    label_map = {"ham": "positive", "spam": "negative"}
    run = attack("fake", data, "deepwordbug", out=tmp_path / "y", label_map=label_map)
    assert run.summary().total == 2


def test_rows_that_cannot_be_attacked_are_named_errors(tmp_path: Path) -> None:
    rows = [*sentences(3), ("", "positive"), ("😀 😀 😀", "negative"), ("great " * 20_000, "positive")]
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", rows))
    results = {
        result.key: result for result in attack("fake", data, "deepwordbug", out=tmp_path / "run").results()
    }
    assert results[3].outcome == "error"
    assert "line 5 of the file" in results[3].note
    assert (results[4].outcome, results[4].note) == ("error", "there are no words to edit")
    assert results[5].outcome == "error"
    assert "20,000 words" in results[5].note
    assert "--max-words" in results[5].note


def test_a_target_class_by_name(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(6)))
    run = attack("fake", data, "deepwordbug", out=tmp_path / "run", target="negative")
    by_label = {result.label: result.outcome for result in run.results()}
    assert by_label[0] == "skipped"  # already negative
    summary = run.summary()
    assert summary.accuracy_before.value == 1.0  # skipped because the goal was reached, not because it erred
    fooled = summary.counts["success"]
    assert summary.accuracy_under_attack.value == pytest.approx(1 - fooled / 6)
    with pytest.raises(DataError, match="negative, positive"):
        attack("fake", data, "deepwordbug", out=tmp_path / "x", target="neutral")


# -- what kills a run ------------------------------------------------------------------------------


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = attack_fake(folder / "d.csv")
    command += ["--attack", "deepwordbug", "--out", str(folder / "run"), "--window", "8", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_rows(folder: Path, process: subprocess.Popen[str], n: int) -> None:
    def written() -> bool:
        assert process.poll() is None, process.communicate(timeout=60)
        return rows_written(folder / "run") >= n

    eventually(written)


@pytest.mark.parametrize(
    ("how", "workers"), [(signal.SIGKILL, "1"), (signal.SIGINT, "1"), (signal.SIGKILL, "2")]
)
def test_killed_and_continued_equals_uninterrupted(tmp_path: Path, how: signal.Signals, workers: str) -> None:
    write_csv(tmp_path / "d.csv", sentences(800))
    slow = ["--workers", workers, "--victim-option", "delay=0.05"]
    process = start(tmp_path, *slow)
    wait_for_rows(tmp_path, process, 20)
    os.kill(process.pid, how)
    _, errors = process.communicate(timeout=60)
    saved = rows_written(tmp_path / "run")
    assert 20 <= saved < 800
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "repeat the command to go on" in errors
    again = start(tmp_path, "--victim-option", "delay=0.0", "--json")
    output, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    whole = attack("fake", tmp_path / "d.csv", "deepwordbug", out=tmp_path / "whole")
    assert digest(tmp_path / "run") == digest(whole.path)
    assert '"total": 800' in output


class Endpoint:
    """The fake victim behind HTTP, with faults: every third new request is refused once; it can go down."""

    def __init__(self) -> None:
        fake, outer = FakeVictim(), self
        self.requests = 0
        self.seen: set[bytes] = set()
        self.answers_left: int | None = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.requests += 1
                content = self.rfile.read(int(self.headers["Content-Length"]))
                body = json.loads(content)
                new = content not in outer.seen
                outer.seen.add(content)
                if new and len(outer.seen) % 3 == 0:
                    return self._send(429, {"error": "slow down"}, {"Retry-After": "0"})
                if outer.answers_left is not None:
                    if outer.answers_left <= 0:
                        return self._send(500, {"error": "down"}, {})
                    outer.answers_left -= 1
                return self._send(200, {"probabilities": fake.predict(body["texts"]).tolist()}, {})

            def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
                payload = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(payload))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def victim(self) -> Any:
        url = f"http://127.0.0.1:{self.server.server_port}/classify"
        return unfooled.load_victim(
            url, labels=["negative", "positive"], batch_size=8, retries=6, backoff=0.001
        )

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()
        self.server.server_close()


def test_an_endpoint_gives_the_results_of_the_model_behind_it(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(30)))
    with Endpoint() as endpoint:
        remote = attack(endpoint.victim(), data, "deepwordbug", out=tmp_path / "remote")
        assert endpoint.requests > 10
    local = attack("fake", data, "deepwordbug", out=tmp_path / "local")
    assert list(remote.results()) == list(local.results())


def test_an_endpoint_that_goes_down_stops_the_run_and_it_goes_on_later(tmp_path: Path) -> None:
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(60)))
    few = Settings(window=4)
    with Endpoint() as endpoint:
        victim = endpoint.victim()
        endpoint.answers_left = 60
        with pytest.raises(VictimError, match="repeat the command"):
            attack(victim, data, "deepwordbug", out=tmp_path / "run", settings=few)
        with closing(RunFile.read(tmp_path / "run")) as file:
            assert 0 < file.count()["success"] + file.count()["failure"] < 60
        endpoint.answers_left = None
        run = attack(endpoint.victim(), data, "deepwordbug", out=tmp_path / "run", settings=few)
    local = attack("fake", data, "deepwordbug", out=tmp_path / "local")
    assert list(run.results()) == list(local.results())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        data = write_csv(tmp_path / f"{rows}.csv", sentences(rows))
        code = (
            "import resource, sys; from unfooled.runs.attack import attack; "
            "from unfooled.core.session import Settings; "
            "settings = Settings(cache_size=5000); "
            "attack('fake', sys.argv[1], 'deepwordbug', out=sys.argv[2], settings=settings); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        command = [sys.executable, "-c", code, str(data), str(tmp_path / f"run{rows}")]
        return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)

    small, large = peak(3_000), peak(12_000)
    assert large < small * 1.15


@pytest.mark.slow
def test_memory_is_bounded_for_long_texts(tmp_path: Path) -> None:
    rows = [(" ".join(f"{text} {i}" for i in range(100)), label) for text, label in sentences(5)]
    data = write_csv(tmp_path / "long.csv", rows)  # about 1,000 words each
    code = (
        "import resource, sys; from unfooled.runs.attack import attack; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "attack('fake', sys.argv[1], 'deepwordbug', out=sys.argv[2]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, str(data), str(tmp_path / "run")]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
    assert grown < 160_000  # kilobytes; every near-copy kept would be several times that


def test_run_is_read_from_its_file_only(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="no run"):
        Run(tmp_path / "nothing").summary()
