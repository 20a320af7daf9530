"""Several processes at one plan: nobody waits while there is work, nothing changes, nobody is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from places import SUPPORT
from toy_plan import TEST, Seen, held, plan
from unfooled.cli.app import app
from unfooled.errors import LockedError, UserError
from unfooled.papers import runner as laboratory
from unfooled.papers.findings import Findings
from unfooled.papers.paper import Paper, Plan
from unfooled.papers.reproduce import reproduce
from unfooled.papers.runner import FILE, StageObserver, StageRunner, read_note
from unfooled.papers.stages import Stage, TrainStage
from unfooled.papers.workers import helpers
from unfooled.runs.lock import Lock
from unfooled.training.observer import TrainObserver
from waiting import PATIENCE, eventually


def words_of(work: Path) -> Path:
    """Where the stage `words` lies, once it was begun."""
    eventually(lambda: any(work.glob(f"words/words-*/{FILE}")))
    return next(work.glob("words/words-*"))


def test_a_stage_that_is_held_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(laboratory, "_PAUSE", 0.0)
    lock = held(tmp_path, plan()[1])
    waits: list[str] = []

    class Waiting(Seen):
        def waits(self, stage: Stage) -> None:
            assert self.done == ["words"]  # all that could be done without the model
            waits.append(stage.name)
            lock.release()

    seen = Waiting()
    done = StageRunner(tmp_path, watcher=seen).carry_out(plan())
    assert waits == ["nb"]
    assert seen.done == ["words", "nb", "swapped"]
    assert list(done) == ["reviews", "nb", "words", "swapped"]  # told in the plan's order all the same


def test_a_helper_does_what_the_first_is_not_at(tmp_path: Path) -> None:
    """The first process trains until somebody else has counted the words."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    alone = Findings(StageRunner(tmp_path / "alone").carry_out(plan()))
    work = tmp_path / "work"

    class Slow(Seen):
        @contextmanager
        def training(self, title: str) -> Iterator[TrainObserver]:
            eventually(lambda: read_note(words_of(work)).get("status") == "finished")
            yield TrainObserver()

    seen = Slow()
    with helpers(1, plan(), work, None, seen):
        together = Findings(StageRunner(work, watcher=seen).carry_out(plan()))
    assert multiprocessing.active_children() == []
    assert "words" in seen.there
    assert "nb" in seen.done
    assert together.results("swapped") == alone.results("swapped")
    marks = [{name: done.fingerprint for name, done in found.done.items()} for found in (alone, together)]
    assert marks[0] == marks[1]


def test_a_helper_that_fails_says_so_and_the_first_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = (plan()[0], TrainStage(name="nb", family="naive-bayes", data=TEST, options=(("alpha", "x"),)))
    with pytest.raises(UserError, match="alpha"), helpers(1, wrong, tmp_path, None, StageObserver()):
        (helper,) = multiprocessing.active_children()
        helper.join(PATIENCE)
        assert helper.exitcode == 1
        StageRunner(tmp_path).carry_out(wrong)
    assert multiprocessing.active_children() == []
    told = capfd.readouterr().err
    assert "a helper stopped" in told
    assert "alpha" in told
    assert "Traceback" not in told


def test_a_helper_that_was_killed_is_told_of(tmp_path: Path) -> None:
    seen = Seen()
    with helpers(1, plan()[:1], tmp_path, None, seen):
        (helper,) = multiprocessing.active_children()
        helper.kill()
        helper.join(PATIENCE)
    assert seen.told == ["1 of 1 helpers were killed (signal 9): out of memory?"]


def test_all_share_the_cores(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        with helpers(1, plan()[:1], tmp_path, None, StageObserver()):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_what_another_process_ends_in_this_very_moment_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a stage and its lock."""
    taken = Lock.take

    def late(file: Path) -> Lock:
        monkeypatch.setattr(Lock, "take", taken)
        StageRunner(tmp_path).carry_out(plan()[:1])
        return taken(file)

    monkeypatch.setattr(Lock, "take", late)
    seen = Seen()
    StageRunner(tmp_path, watcher=seen).carry_out(plan()[:1])
    assert (seen.done, seen.there) == ([], ["reviews"])


SLOW = """
import sys, time
from pathlib import Path
import toy_plan
from unfooled.papers import carry_out
from unfooled.papers.workers import helpers
from unfooled.papers.runner import StageObserver

before = carry_out.do

def slow(stage, runner, folder):
    if stage.name == "words":
        time.sleep(600)
    before(stage, runner, folder)

carry_out.do = slow  # in the helper as well, which runs this file up to here
if __name__ == "__main__":
    reviews, _, words, _ = toy_plan.plan()
    with helpers(1, (reviews, words), Path(sys.argv[1]), None, StageObserver()):
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("end", ["SIGINT", "SIGKILL"])
def test_helpers_leave_with_the_first(tmp_path: Path, end: str) -> None:
    """However it ends; and they write down how long they were at it."""
    pytest.importorskip("torch")
    script, work = tmp_path / "slow.py", tmp_path / "work"
    script.write_text(SLOW, encoding="utf-8")
    paths = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    first = subprocess.Popen(
        [sys.executable, str(script), str(work)],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.DEVNULL,
    )
    try:
        folder = words_of(work)
        with pytest.raises(LockedError):
            Lock.take(folder / FILE).release()
        time.sleep(0.2)  # a time that shows in the note
        first.send_signal(getattr(signal, end))
        assert first.wait(PATIENCE) != 0

        def free() -> bool:
            with suppress(LockedError):
                Lock.take(folder / FILE).release()
                return True
            return False

        eventually(free)
    finally:
        first.kill()
        first.wait(PATIENCE)
    note = read_note(folder)
    assert note["status"] == "running"
    assert note["seconds"] > 0


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--scale", "smoke"], 1),
        ([], 2),
        (["--workers", "3"], 3),
        (["--scale", "smoke", "--workers", "2"], 2),
    ],
)
def test_how_many_the_command_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], asked: int
) -> None:
    given: list[int] = []

    def stop(*_: object, workers: int, **__: object) -> None:
        given.append(workers)
        raise KeyboardInterrupt

    monkeypatch.setattr("unfooled.papers.reproduce.check", lambda *_, **__: None)
    monkeypatch.setattr("unfooled.papers.reproduce.reproduce", stop)
    done = CliRunner().invoke(app, ["reproduce", "bae", "--work", str(tmp_path), *options])
    assert done.exit_code == 130
    assert given == [asked]


def test_no_more_than_there_is_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    @contextmanager
    def counted(number: int, *_: object) -> Iterator[None]:
        asked.append(number)
        yield

    monkeypatch.setattr("unfooled.papers.reproduce.helpers", counted)
    made = Plan(stages=plan()[:3], settings=("s",), differs="d")
    paper = Paper(name="toy", title="Toy", citation="c", plan=lambda scale: made, claims=())

    def run(workers: int) -> None:
        reproduce(paper, scale="smoke", work=tmp_path / "work", out=tmp_path / "out", workers=workers)

    run(1000)
    run(1000)
    assert asked == [2, 0]  # three stages to do; then none
    with pytest.raises(UserError, match="workers=0 makes no sense"):
        run(0)


def test_zero_workers_are_refused() -> None:
    done = CliRunner().invoke(app, ["reproduce", "bae", "--workers", "0"])
    assert done.exit_code == 2
