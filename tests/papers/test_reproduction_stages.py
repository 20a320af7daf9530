"""Stages are done once, by one process or several, and go on after any stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from places import SUPPORT
from toy_plan import REVIEWS, TEST, Seen, held, plan
from unfooled.errors import UserError
from unfooled.papers import carry_out
from unfooled.papers import runner as laboratory
from unfooled.papers.claims import AtLeast, Claim
from unfooled.papers.findings import (
    Findings,
    Quantity,
)
from unfooled.papers.paper import Paper, Plan
from unfooled.papers.reproduce import reproduce
from unfooled.papers.runner import FILE, StageRunner
from unfooled.papers.stages import (
    HardenStage,
    Rows,
    Stage,
    described,
    in_order,
    needs_of,
)


def test_stages_come_after_what_they_need() -> None:
    reviews, nb, words, swapped = plan()
    assert in_order((swapped, words, nb, reviews)) == [reviews, nb, words, swapped]
    assert set(needs_of(swapped)) == {"nb", "words", "reviews"}
    with pytest.raises(ValueError, match="needs nb, which is no stage"):
        in_order((reviews, words, swapped))
    with pytest.raises(ValueError, match="same name"):
        in_order((reviews, reviews))
    loop = HardenStage(name="h", method="fact", model="h", data=TEST)
    with pytest.raises(ValueError, match="h needs h"):
        in_order((reviews, loop))


def test_defaults_do_not_shape_a_fingerprint() -> None:
    assert described(Rows(source="mr")) == {"kind": "rows", "source": "mr"}
    assert described(Rows(source="mr", seed=1)) == {"kind": "rows", "source": "mr", "seed": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Findings]:
    pytest.importorskip("sklearn")
    work = tmp_path_factory.mktemp("work")
    return work, Findings(StageRunner(work).carry_out(plan()))


def test_nothing_is_done_twice(finished: tuple[Path, Findings]) -> None:
    work, findings = finished
    seen = Seen()
    again = Findings(StageRunner(work, watcher=seen).carry_out(plan()))
    assert (seen.done, seen.there) == ([], ["reviews", "nb", "words", "swapped"])
    assert again.results("swapped") == findings.results("swapped")
    assert len(again.results("swapped")) == 8
    assert again.estimate(Quantity("swapped", "before")).value == 1.0


def test_another_name_is_the_same_work_and_other_settings_are_not(finished: tuple[Path, Findings]) -> None:
    work, _ = finished
    seen = Seen()
    renamed = (REVIEWS, replace(plan()[1], name="bayes"))
    StageRunner(work, watcher=seen).carry_out(renamed)
    assert seen.done == []
    seen = Seen()
    StageRunner(work, watcher=seen).carry_out(plan(alpha=2.0))
    assert seen.done == ["nb", "swapped"]  # what stands on the model is new as well


def test_a_stopped_stage_goes_on(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    seen = Seen(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        StageRunner(tmp_path, watcher=seen).carry_out(plan())
    (note,) = tmp_path.glob(f"attack/swapped-*/{FILE}")
    assert json.loads(note.read_text(encoding="utf-8"))["status"] == "running"
    seen = Seen()
    done = StageRunner(tmp_path, watcher=seen).carry_out(plan())
    assert seen.done == ["swapped"]
    assert Findings(done).results("swapped") == finished[1].results("swapped")


def test_a_stage_that_another_process_is_at_is_waited_for(
    tmp_path: Path, finished: tuple[Path, Findings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laboratory, "_PAUSE", 0.0)
    lock = held(tmp_path, plan()[1])
    folder = lock.path.parent

    class Waiting(Seen):
        def waits(self, stage: Stage) -> None:
            assert stage.name == "nb"
            shutil.copytree(finished[0] / "train" / folder.name, folder, dirs_exist_ok=True)
            lock.release()

    def never(*_: object) -> None:
        raise AssertionError("the other process has done it")

    monkeypatch.setattr(carry_out, "do", never)
    done = StageRunner(tmp_path, watcher=Waiting()).carry_out(plan()[:2])
    assert done["nb"].folder == folder
    assert not list(tmp_path.rglob("*.lock"))


def test_a_killed_process_loses_nothing(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import toy_plan as t\n"
        "from unfooled.papers.runner import StageRunner\n"
        "class Killed(t.Stopping):\n"
        "    def finished(self, result):\n"
        "        self.count += 1\n"
        "        if self.count == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        "t.Stopping = Killed\n"
        "StageRunner(Path(sys.argv[1]), watcher=t.Seen()).carry_out(t.plan())\n"
    )
    paths = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    seen = Seen()
    found = Findings(StageRunner(tmp_path, watcher=seen).carry_out(plan()))
    assert seen.done == ["swapped"]
    assert found.results("swapped") == finished[1].results("swapped")


def test_a_half_written_cache_is_mended(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    StageRunner(tmp_path).carry_out(plan())
    (note,) = tmp_path.glob(f"words/words-*/{FILE}")
    note.write_text('{"format": 1, "status": "fin', encoding="utf-8")
    (attack,) = tmp_path.glob("attack/swapped-*/run/run.sqlite")
    attack.unlink()
    (other,) = tmp_path.glob(f"train/nb-*/{FILE}")
    other.write_text('{"format": 1, "status": "finished"}', encoding="utf-8")
    seen = Seen()
    done = StageRunner(tmp_path, watcher=seen).carry_out(plan())
    assert seen.done == ["nb", "words", "swapped"]
    assert json.loads(note.read_text(encoding="utf-8"))["commit"] == done["words"].commit != ""
    assert json.loads(note.read_text(encoding="utf-8"))["status"] == "finished"
    assert attack.is_file()


def test_a_model_without_its_weights_is_trained_again(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    StageRunner(tmp_path).carry_out(plan())
    (weights,) = tmp_path.glob("train/nb-*/model/model.skops")
    weights.unlink()
    seen = Seen()
    StageRunner(tmp_path, watcher=seen).carry_out(plan())
    assert seen.done == ["nb"]
    assert weights.is_file()


def test_what_is_finished_can_be_looked_up(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    work, _ = finished
    assert set(StageRunner(work).look_up(plan())) == {"reviews", "nb", "words", "swapped"}
    assert set(StageRunner(work).look_up(plan(limit=9))) == {"reviews", "nb", "words"}
    assert StageRunner(tmp_path).look_up(plan()) == {}
    with pytest.raises(UserError, match="holds nothing of bae yet"):
        reproduce("bae", scale="smoke", work=tmp_path, out=tmp_path / "out", so_far=True)


def test_a_page_so_far_keeps_what_was_measured_before(
    tmp_path: Path, finished: tuple[Path, Findings]
) -> None:
    """The stage of the claim is gone; its figures are not, however often the page is written."""
    here, gone = (
        Claim(name, "s", "p", "h", AtLeast(Quantity(f"swapped{name}", "before"), 0.5))
        for name in ("", "-old")
    )
    both = (*plan(), replace(plan(limit=9)[-1], name="swapped-old"))
    made = Plan(stages=both, settings=("s",), differs="d")
    paper = Paper(name="toy", title="Toy", citation="c", plan=lambda scale: made, claims=(here, gone))
    page = {"scale": "smoke", "commit": "abc", "claims": []}
    earlier = {"name": "-old", "how": "h", "measured": "99 %, n = 9", "short": "99 %"}
    earlier |= {"judgement": "does not hold"}
    for _ in range(2):
        (tmp_path / "toy.json").write_text(json.dumps(page | {"claims": [earlier]}), encoding="utf-8")
        found = reproduce(paper, scale="smoke", work=finished[0], out=tmp_path, so_far=True)
        assert [judgement.status for _, judgement in found.judged] == ["holds", "does not hold"]
        told = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
        earlier = told["claims"][1]
        assert (earlier["measured"], earlier["earlier"]) == ("99 %, n = 9", "abc")
        assert "Measured earlier (commit abc)" in (tmp_path / "toy.md").read_text(encoding="utf-8")
    other = page | {"claims": [earlier | {"how": "in another way"}]}
    (tmp_path / "toy.json").write_text(json.dumps(other), encoding="utf-8")
    found = reproduce(paper, scale="smoke", work=finished[0], out=tmp_path, so_far=True)
    assert found.judged[1][1].status == "not measured"
    assert f"measured at commit {found.commit}" in (tmp_path / "toy.md").read_text(encoding="utf-8")


def test_a_second_look_under_another_plan_is_tested_more_strictly(
    tmp_path: Path, finished: tuple[Path, Findings]
) -> None:
    """Nine of nine rows against 67 %: p = 0.036 is enough for a first look, and not for a second one."""
    claim = Claim("rises", "s", "p", "h", AtLeast(Quantity("swapped", "before"), 0.67))

    def look(limit: int, out: Path) -> tuple[dict[str, Any], str]:
        made = Plan(stages=plan(limit=limit), settings=("s",), differs="d")
        paper = Paper(name="toy", title="Toy", citation="c", plan=lambda scale: made, claims=(claim,))
        reproduce(paper, scale="smoke", work=finished[0], out=out)
        told = json.loads((out / "toy.json").read_text(encoding="utf-8"))
        return told | told["claims"][0], (out / "toy.md").read_text(encoding="utf-8")

    first, text = look(9, tmp_path / "first")
    assert (first["looks"], first["judgement"], first["holm"]) == (1, "holds", "holds")
    assert first["p"] == pytest.approx(0.0355, abs=1e-3)
    assert "were looked at" not in text
    look(8, tmp_path / "second")  # a smaller sample, and a look at it
    second, text = look(9, tmp_path / "second")
    assert (second["looks"], second["judgement"], second["holm"]) == (2, "holds", "not decided")
    assert "2 plans of different sizes were looked at" in text
    assert "made at 2.5 %" in text
    again, _ = look(9, tmp_path / "second")
    assert again["looks"] == 2  # the same plan is the same look
    assert first["plan"] == second["plan"]
