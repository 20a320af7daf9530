"""Claims are judged as computed by hand, stages are done once, pages have the papers' tables beside ours."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app, main
from unfooled.core.result import Result
from unfooled.core.writing import REFERENCE
from unfooled.defenses.methods import METHODS, TRAINING
from unfooled.defenses.settings import settle as settle_method
from unfooled.errors import ResourceError, UnknownNameError, UserError
from unfooled.evaluation.lock import Lock
from unfooled.evaluation.run import Observer
from unfooled.reproduction import doing, laboratory
from unfooled.reproduction.claims import All, AtLeast, Claim, EachAtMost, More, Near, Rule, Unmeasured
from unfooled.reproduction.document import Block, Bullets, Grid, Heading, Paragraph, to_html, to_markdown
from unfooled.reproduction.findings import (
    Difference,
    Estimate,
    Findings,
    Quantity,
    mean_interval,
    shown,
    value_of,
)
from unfooled.reproduction.laboratory import FILE, Done, Laboratory, Watcher
from unfooled.reproduction.paper import SCALES, Paper, Plan
from unfooled.reproduction.papers import NAMES, find_paper
from unfooled.reproduction.reproduce import BEGIN, END, check, reproduce, write_summary
from unfooled.reproduction.stages import (
    Attack,
    Fixture,
    Harden,
    Model,
    Rows,
    Stage,
    Train,
    Words,
    described,
    in_order,
    needs_of,
    settings,
)
from unfooled.text import Edit
from unfooled.training.families import find_family, settle

# -- rules, by hand --------------------------------------------------------------------------------------


class Known(Findings):
    """Findings whose numbers are given."""

    def __init__(self, **values: dict[int, float] | list[float]) -> None:
        super().__init__({})
        self.known = {
            name: dict(enumerate(one)) if isinstance(one, list) else one for name, one in values.items()
        }

    def has(self, *quantities: Quantity) -> bool:
        return all(one.stage in self.known for one in quantities)

    def values(self, quantity: Quantity) -> dict[int, float]:
        return self.known[quantity.stage]


A, B = Quantity("a"), Quantity("b")


def yes(ones: int, zeros: int) -> list[float]:
    return [1.0] * ones + [0.0] * zeros


def status(rule: Rule, **values: dict[int, float] | list[float]) -> str:
    return rule.judge(Known(**values)).status


def test_more_is_decided_by_the_paired_interval_and_mcnemar() -> None:
    judged = More(A, B, names=("new", "old")).judge(Known(a=yes(9, 1), b=yes(1, 9)))
    # Eight rows only the first gets right, none only the second: p = 2 / 2^8.
    assert judged.status == "holds"
    assert "p = 0.0078" in judged.measured
    assert "difference 80.0 %" in judged.measured
    assert judged.short == "new 90.0 % against old 10.0 %"
    assert status(More(B, A), a=yes(9, 1), b=yes(1, 9)) == "does not hold"
    assert status(More(A, B), a=yes(6, 4), b=yes(5, 5)) == "not decided"


def test_five_rows_do_not_decide_whatever_the_interval_says() -> None:
    # 4 to 0 gives p = 0.125, though the interval of so large a difference excludes 0.
    assert status(More(A, B), a=yes(4, 0), b=yes(0, 4)) == "not decided"
    # Nor where no exact test is made: against a multiple, with ties allowed, against a bound.
    assert status(More(A, B, times=2.0), a=yes(5, 0), b=yes(0, 5)) == "not decided"
    assert status(More(A, B, by=-0.03), a=yes(5, 0), b=yes(0, 5)) == "not decided"
    assert status(AtLeast(A, 0.1), a=yes(5, 0)) == "not decided"


def test_more_than_a_share_of_the_other() -> None:
    same = yes(800, 200)
    assert status(More(A, B, times=0.97), a=same, b=same) == "holds"  # 0.80 against 0.776
    assert status(More(A, B), a=same, b=same) == "not decided"
    assert status(More(A, B, by=-0.01), a=same, b=same) == "holds"  # ties of a point allowed
    assert status(More(A, B, times=0.98), a=yes(700, 300), b=yes(800, 200)) == "does not hold"


def test_rows_that_only_one_side_has_are_left_out() -> None:
    first = dict.fromkeys(range(10), 1.0) | dict.fromkeys(range(10, 1000), 0.0)
    second = dict.fromkeys(range(10), 0.0)
    judged = More(A, B, paired=True).judge(Known(a=first, b=second))
    assert judged.status == "holds"
    assert "n = 10" in judged.measured


def test_at_least_and_at_most() -> None:
    # Wilson: 40 of 50 is 0.670 to 0.888, 25 of 50 is 0.366 to 0.634.
    assert status(AtLeast(A, 0.66), a=yes(40, 10)) == "holds"
    assert status(AtLeast(A, 0.68), a=yes(40, 10)) == "not decided"
    assert status(AtLeast(A, 0.89), a=yes(40, 10)) == "does not hold"
    assert status(AtLeast(A, 0.89, most=True), a=yes(40, 10)) == "holds"
    assert status(AtLeast(A, 0.66, most=True), a=yes(40, 10)) == "does not hold"
    assert status(AtLeast(A, 0.5), a=[]) == "not decided"


def test_a_handful_of_rows_does_not_decide_about_a_mean() -> None:
    """A bootstrap of two equal differences is a point, which is no certainty."""
    fewer = More(Quantity("a", "words"), Quantity("b", "words"))
    assert status(fewer, a=[3.0, 3.0], b=[1.0, 1.0]) == "not decided"
    assert status(AtLeast(Quantity("a", "words"), 1.5), a=[2.0] * 5) == "not decided"
    assert (
        status(Near(Quantity("a", "words"), Quantity("b", "words"), 1.0), a=[2.0], b=[2.0]) == "not decided"
    )
    assert status(fewer, a=[3.0] * 6, b=[1.0] * 6) == "holds"
    assert "(too few rows for an interval)" in fewer.judge(Known(a=[3.0], b=[1.0])).measured


def test_the_interval_of_a_mean_is_as_wide_as_students() -> None:
    sample = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    low, high = mean_interval(sample)
    half = 2.365 * 2.449 / math.sqrt(8)  # t of 7 degrees of freedom, standard deviation of the sample
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert mean_interval([1.0, 3.0]) == (-math.inf, math.inf)


def test_two_bounds_of_one_figure_are_said_once() -> None:
    judged = All((AtLeast(A, 0.1, name="lost"), AtLeast(A, 0.9, most=True, name="lost"))).judge(
        Known(a=yes(25, 25))
    )
    assert (judged.status, judged.short, len(judged.parts)) == ("holds", "lost 50.0 %", 2)


def test_near_is_an_equivalence() -> None:
    same = yes(100, 100)
    assert status(Near(A, B, 0.05), a=same, b=same) == "holds"
    assert status(Near(A, B, 0.05), a=yes(3, 3), b=yes(3, 3)) == "not decided"
    assert status(Near(A, B, 0.05), a=yes(100, 0), b=yes(10, 90)) == "does not hold"


def test_all_needs_every_part() -> None:
    good, bad, open_ = AtLeast(A, 0.1), AtLeast(A, 0.9), AtLeast(A, 0.5)
    values = {"a": yes(25, 25)}
    assert status(All((good, good)), **values) == "holds"
    assert status(All((good, open_)), **values) == "not decided"
    assert status(All((good, open_, bad)), **values) == "does not hold"


def test_each_at_most_counts_single_numbers() -> None:
    assert status(EachAtMost(A, 1.0), a=[0.2, 1.0]) == "holds"
    assert status(EachAtMost(A, 1.0), a=[0.2, 1.01]) == "does not hold"
    assert status(EachAtMost(A, 1.0), a=[]) == "not decided"


def test_what_no_stage_measured_is_said() -> None:
    claim = Claim("x", "It is so.", "–", "how", AtLeast(Quantity("elsewhere"), 0.5), needs="a moon")
    assert claim.judge(Known()).status == "not measured"
    assert claim.judge(Known()).measured == "needs a moon"
    assert Claim("y", "It is so.", "–", "how", Unmeasured()).judge(Known()).status == "not measured"


def test_independent_samples_add_their_distances() -> None:
    first, second = Estimate(0.5, 0.4, 0.6, 90, "%"), Estimate(0.3, 0.2, 0.4, 80, "%")
    found = Difference.apart(first, second).estimate
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - math.sqrt(0.02))
    assert found.high == pytest.approx(0.2 + math.sqrt(0.02))
    assert found.n == 80


def test_numbers_are_shown_with_their_interval() -> None:
    assert shown(Estimate(0.58, 0.4821, 0.6719, 100, "%")) == "58.0 % (48.2–67.2)"
    assert shown(Estimate(-0.01, -0.08, 0.098, 20, "%")) == "-1.0 % (-8.0 to 9.8)"
    assert shown(Estimate(1.5, 1.25, 1.75, 20)) == "1.50 (1.25–1.75)"
    assert shown(Estimate(math.nan, math.nan, math.nan, 0, "%")) == "–"


def result(outcome: Any = "success", **changes: Any) -> Result:
    edits = (Edit("replace", 1, "good", "dull", 2), Edit("replace", 3, "fun", "sad", 11))
    one = Result(
        key=1,
        outcome=outcome,
        label=0,
        fields=(("text", "a good and fun one"),),
        field=0,
        perturbed="a dull and sad one",
        probs=(0.9, 0.1),
        perturbed_probs=(0.2, 0.8),
        edits=edits,
        words=5,
        queries=7,
        facts=(("draws", 8.0), ("draws_won", 2.0)),
    )
    return replace(one, **changes)


def test_values_of_a_result() -> None:
    won = result()
    expected = {
        "before": 1.0, "after": 0.0, "lost": 1.0, "success": 1.0, "queries": 7.0, "words": 2.0, "share": 0.4,
        "few:2": 1.0, "few:1": 0.0, "upto:0.4": 0.0, "upto:0.3": 1.0, "sample": 0.0, "draws": 0.25,
    }  # fmt: skip
    assert {what: value_of(won, what) for what in expected} == expected
    lost = result("failure", perturbed="a good and fun one", edits=(), perturbed_probs=(0.6, 0.4))
    assert value_of(lost, "success") == 0.0
    assert value_of(lost, "words") is None
    assert value_of(lost, "sample") is None
    skipped = result("skipped", probs=(0.1, 0.9))
    assert value_of(skipped, "before") == 0.0
    assert value_of(skipped, "lost") == 0.0
    assert value_of(skipped, "queries") is None
    with pytest.raises(ValueError, match="no 'colour'"):
        value_of(won, "colour")


def test_bleu_of_a_translation() -> None:
    pytest.importorskip("sacrebleu")
    reference = "ein Hund schläft auf dem Sofa"
    one = result(
        fields=(("text", "a dog sleeps on the sofa"), (REFERENCE, reference)),
        output=reference,
        perturbed_output="eine Katze",
    )
    assert value_of(one, "bleu") == pytest.approx(100)
    after = value_of(one, "bleu-after")
    assert after is not None
    assert after < 20
    assert value_of(one, "bleu-lost") == pytest.approx(100 - after)
    assert Quantity("x", "bleu-lost").unit == ""


class Ran(Findings):
    """Findings of runs whose results are given."""

    def __init__(self, **results: list[Result]) -> None:
        model, rows = Model(spec="m"), Rows(source="d")
        stages = {name: Attack(name=name, model=model, data=rows, attack="x") for name in results}
        super().__init__({name: Done(stage, Path(), "", 0.0) for name, stage in stages.items()})
        self._results = results


def test_an_error_in_another_run_is_neither_robust_nor_needed() -> None:
    stood = {"outcome": "failure", "perturbed_probs": (0.9, 0.1)}
    first = [result(key=1, **stood), result(key=2, **stood), result(key=3)]
    again = [result(key=1, **stood), result("error", key=2)]  # the third fell before and is not tried again
    found = Ran(first=first, again=again)
    assert found.values(Quantity("first", also=("again",))) == {1: 1.0, 3: 0.0}
    found = Ran(both=[result(key=1), result(key=2)], one=[result("failure", key=1), result("error", key=2)])
    assert found.values(Quantity("both", "success", without=("one",))) == {1: 1.0}


# -- stages ----------------------------------------------------------------------------------------------

REVIEWS = Fixture(name="reviews", what="reviews")
TRAIN, TEST = Rows(source="{reviews}", split="train"), Rows(source="{reviews}")


def plan(alpha: float = 1.0, limit: int = 8) -> tuple[Stage, ...]:
    return (
        REVIEWS,
        Train(name="nb", family="naive-bayes", data=TRAIN, options=settings(alpha=alpha)),
        Words(name="words", data=TRAIN),
        Attack(
            name="swapped",
            model=Model(stage="nb"),
            data=TEST,
            attack="strongest-words@3",
            changes=settings(**{"search.words": "{words}"}),
            limit=limit,
        ),
    )


class Seen(Watcher):
    """Notes what was done and what was there; may stop in the middle of an attack."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.done: list[str] = []
        self.there: list[str] = []
        self.stop_after = stop_after

    def begins(self, stage: Stage, number: int, total: int, *, finished: bool) -> None:
        (self.there if finished else self.done).append(stage.name)

    @contextmanager
    def attacking(self, title: str) -> Iterator[Observer]:
        yield Stopping(self.stop_after)


class Stopping(Observer):
    def __init__(self, after: int | None) -> None:
        self.after = after
        self.count = 0

    def finished(self, result: Result) -> None:
        self.count += 1
        if self.after is not None and self.count > self.after:
            raise KeyboardInterrupt


def test_stages_come_after_what_they_need() -> None:
    reviews, nb, words, swapped = plan()
    assert in_order((swapped, words, nb, reviews)) == [reviews, nb, words, swapped]
    assert set(needs_of(swapped)) == {"nb", "words", "reviews"}
    with pytest.raises(ValueError, match="needs nb, which is no stage"):
        in_order((reviews, words, swapped))
    with pytest.raises(ValueError, match="same name"):
        in_order((reviews, reviews))
    loop = Harden(name="h", method="fact", model="h", data=TEST)
    with pytest.raises(ValueError, match="h needs h"):
        in_order((reviews, loop))


def test_defaults_do_not_shape_a_fingerprint() -> None:
    assert described(Rows(source="mr")) == {"kind": "rows", "source": "mr"}
    assert described(Rows(source="mr", seed=1)) == {"kind": "rows", "source": "mr", "seed": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Findings]:
    pytest.importorskip("sklearn")
    work = tmp_path_factory.mktemp("work")
    return work, Findings(Laboratory(work).carry_out(plan()))


def test_nothing_is_done_twice(finished: tuple[Path, Findings]) -> None:
    work, findings = finished
    seen = Seen()
    again = Findings(Laboratory(work, watcher=seen).carry_out(plan()))
    assert (seen.done, seen.there) == ([], ["reviews", "nb", "words", "swapped"])
    assert again.results("swapped") == findings.results("swapped")
    assert len(again.results("swapped")) == 8
    assert again.estimate(Quantity("swapped", "before")).value == 1.0


def test_another_name_is_the_same_work_and_other_settings_are_not(finished: tuple[Path, Findings]) -> None:
    work, _ = finished
    seen = Seen()
    renamed = (REVIEWS, replace(plan()[1], name="bayes"))
    Laboratory(work, watcher=seen).carry_out(renamed)
    assert seen.done == []
    seen = Seen()
    Laboratory(work, watcher=seen).carry_out(plan(alpha=2.0))
    assert seen.done == ["nb", "swapped"]  # what stands on the model is new as well


def test_a_stopped_stage_goes_on(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    seen = Seen(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        Laboratory(tmp_path, watcher=seen).carry_out(plan())
    (note,) = tmp_path.glob(f"attack/swapped-*/{FILE}")
    assert json.loads(note.read_text(encoding="utf-8"))["status"] == "running"
    seen = Seen()
    done = Laboratory(tmp_path, watcher=seen).carry_out(plan())
    assert seen.done == ["swapped"]
    assert Findings(done).results("swapped") == finished[1].results("swapped")


def test_a_stage_that_another_process_is_at_is_waited_for(
    tmp_path: Path, finished: tuple[Path, Findings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laboratory, "_PAUSE", 0.0)
    first = Laboratory(tmp_path)
    first.carry_out(plan()[:1])
    stage = plan()[1]
    folder = first.folder(stage, first.fingerprint(stage))
    folder.mkdir(parents=True)
    lock = Lock.take(folder / FILE)

    class Waiting(Seen):
        def waits(self, stage: Stage, why: str) -> None:
            assert (stage.name, f"process {os.getpid()}" in why) == ("nb", True)
            shutil.copytree(finished[0] / "train" / folder.name, folder, dirs_exist_ok=True)
            lock.release()

    def never(*_: object) -> None:
        raise AssertionError("the other process has done it")

    monkeypatch.setattr(doing, "do", never)
    done = Laboratory(tmp_path, watcher=Waiting()).carry_out(plan()[:2])
    assert done["nb"].folder == folder
    assert not list(tmp_path.rglob("*.lock"))


def test_a_killed_process_loses_nothing(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import test_reproduction as t\n"
        "class Killed(t.Stopping):\n"
        "    def finished(self, result):\n"
        "        self.count += 1\n"
        "        if self.count == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        "t.Stopping = Killed\n"
        "t.Laboratory(Path(sys.argv[1]), watcher=t.Seen()).carry_out(t.plan())\n"
    )
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parent / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    seen = Seen()
    found = Findings(Laboratory(tmp_path, watcher=seen).carry_out(plan()))
    assert seen.done == ["swapped"]
    assert found.results("swapped") == finished[1].results("swapped")


def test_a_half_written_cache_is_mended(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    Laboratory(tmp_path).carry_out(plan())
    (note,) = tmp_path.glob(f"words/words-*/{FILE}")
    note.write_text('{"format": 1, "status": "fin', encoding="utf-8")
    (attack,) = tmp_path.glob("attack/swapped-*/run/run.sqlite")
    attack.unlink()
    (other,) = tmp_path.glob(f"train/nb-*/{FILE}")
    other.write_text('{"format": 1, "status": "finished"}', encoding="utf-8")
    seen = Seen()
    done = Laboratory(tmp_path, watcher=seen).carry_out(plan())
    assert seen.done == ["nb", "words", "swapped"]
    assert json.loads(note.read_text(encoding="utf-8"))["commit"] == done["words"].commit != ""
    assert json.loads(note.read_text(encoding="utf-8"))["status"] == "finished"
    assert attack.is_file()


def test_what_is_finished_can_be_looked_up(tmp_path: Path, finished: tuple[Path, Findings]) -> None:
    work, _ = finished
    assert set(Laboratory(work).look_up(plan())) == {"reviews", "nb", "words", "swapped"}
    assert set(Laboratory(work).look_up(plan(limit=9))) == {"reviews", "nb", "words"}
    assert Laboratory(tmp_path).look_up(plan()) == {}
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
        assert [one.status for _, one in found.judged] == ["holds", "does not hold"]
        told = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
        earlier = told["claims"][1]
        assert (earlier["measured"], earlier["earlier"]) == ("99 %, n = 9", "abc")
        assert "Measured earlier (commit abc)" in (tmp_path / "toy.md").read_text(encoding="utf-8")
    other = page | {"claims": [earlier | {"how": "in another way"}]}
    (tmp_path / "toy.json").write_text(json.dumps(other), encoding="utf-8")
    found = reproduce(paper, scale="smoke", work=finished[0], out=tmp_path, so_far=True)
    assert found.judged[1][1].status == "not measured"
    assert f"measured at commit {found.commit}" in (tmp_path / "toy.md").read_text(encoding="utf-8")


# -- papers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_plans_fit_together(name: str, scale: Any) -> None:
    """Every setting of every plan is known to what it is a setting of; nothing is run or downloaded."""
    paper = find_paper(name)
    made = paper.plan(scale)
    stages = {stage.name: stage for stage in in_order(made.stages)}
    assert made.settings
    assert made.differs
    lab = Laboratory(Path("nowhere"))
    for stage in stages.values():
        if isinstance(stage, Train):
            settle(find_family(stage.family), dict(stage.options))
        elif isinstance(stage, Harden):
            known = {**TRAINING, **METHODS[stage.method].defaults}
            settle_method(known, dict(stage.options), stage.method)
        elif isinstance(stage, Attack):
            plain = [(key, value) for key, value in stage.changes if not str(value).startswith("{")]
            lab.recipe(replace(stage, changes=tuple(plain), everywhere=()))
    assert len({claim.name for claim in paper.claims}) == len(paper.claims)
    if scale != "smoke":
        missing = {
            one
            for claim in paper.claims
            if not claim.needs
            for quantity in claim.rule.quantities()
            for one in quantity.stages()
        } - set(stages)
        assert not missing


def test_the_full_protocol_of_firebert_runs_on_a_stand_in(tmp_path: Path) -> None:
    """BERT-base becomes a tiny body of the same kind, MNLI a few made-up pairs; all other settings stay."""
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    made = {stage.name: stage for stage in find_paper("firebert").plan("paper").stages}
    rows = Rows(source="{pairs}", split="train", text=("premise", "hypothesis"), limit=24)
    light: dict[str, Any] = {"similarity": "none", "pos": False, "table": "{table}"}

    def small(stage: Any) -> Any:
        options = dict(stage.options)
        options |= {"epochs": 1}
        if isinstance(stage, Train):
            options |= {"body": "{masked-lm}", "max_length": 32}
        elif stage.method == "fact":
            options |= light
        return replace(stage, data=rows, options=tuple(options.items()))

    five: Any = made["five-attack"]
    fuse: Any = made["fuse-attack"]
    attacks = [
        replace(
            one,
            data=replace(rows, split="test"),
            attack=f"smoke:{one.attack}",
            everywhere=settings(table="{table}"),
            limit=2,
            model=replace(one.model, options=tuple((dict(one.model.options) | changes).items())),
        )
        for one, changes in ((five, {}), (fuse, light))
    ]
    fixtures = [Fixture(name=name, what=name) for name in ("pairs", "table", "masked-lm")]
    trained = [small(made[name]) for name in ("base", "retuned", "fact")]
    done = Laboratory(tmp_path).carry_out([*fixtures, *trained, *attacks])
    found = Findings(done)
    assert len(found.results("five-attack")) == len(found.results("fuse-attack")) == 2
    assert found.errors("five-attack") == 0
    record = json.loads((done["fact"].folder / "model" / "training.json").read_text(encoding="utf-8"))
    assert record["options"]["start"] == "body"
    assert (record["options"]["words"], record["options"]["batch"]) == (9, 7)


def test_smoke_texts_are_the_same_every_time(tmp_path: Path) -> None:
    first = Laboratory(tmp_path / "a").carry_out([REVIEWS])["reviews"].folder
    second = Laboratory(tmp_path / "b").carry_out([REVIEWS])["reviews"].folder
    files = sorted(path.relative_to(first) for path in first.rglob("*.gz"))
    assert len(files) == 2
    assert all((first / one).read_bytes() == (second / one).read_bytes() for one in files)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All papers at the smoke scale, by the command."""
    for library in ("torch", "sklearn", "accelerate", "matplotlib"):
        pytest.importorskip(library)
    root = tmp_path_factory.mktemp("smoke")
    (root / "README.md").write_text(f"# x\n\n{BEGIN}\nold\n{END}\n\nend\n", encoding="utf-8")
    arguments = ["reproduce", "all", "--scale", "smoke", "--work", str(root / "work"), "--json"]
    arguments += ["--out", str(root / "out"), "--readme", str(root / "README.md")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert [one["paper"] for one in json.loads(done.stdout)] == list(NAMES)
    return root


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_parts(pages: Path, name: str) -> None:
    paper = find_paper(name)
    text = (pages / "out" / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("## Claims", "## Settings", "## Why numbers differ", "## What was run"):
        assert heading in text
    assert text.count("| claim | paper | measured | judgement |") == 1
    for claim in paper.claims:
        assert claim.sentence.replace("|", "\\|") in text
    for table in paper.tables:
        block = text[text.index(f"## {table.title}") :]
        rows = [line for line in block.splitlines() if line.startswith("|")][: 2 + len(table.rows)]
        assert all(len(line.replace("\\|", "").split("|")) == len(table.columns) + 3 for line in rows)
        for (row, cells), line in zip(table.rows, rows[2:], strict=True):
            assert line.startswith(f"| {row} |")
            assert all(cell.paper in line for cell in cells)
    told = json.loads((pages / "out" / f"{name}.json").read_text(encoding="utf-8"))
    known = {"holds", "does not hold", "not decided", "not measured"}
    assert {one["judgement"] for one in told["claims"]} <= known
    assert sum(one["judgement"] != "not measured" for one in told["claims"]) >= len(paper.claims) / 2
    parsed = Tags()
    parsed.feed((pages / "out" / f"{name}.html").read_text(encoding="utf-8"))
    assert parsed.open == []
    assert all(link.startswith("data:image/svg+xml;base64,") for link in parsed.links)
    assert len(parsed.links) >= 1


def test_the_summary_is_between_the_marks(pages: Path) -> None:
    text = (pages / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# x\n")
    assert text.endswith("\n\nend\n")
    assert "\nold\n" not in text
    lines = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(lines) == sum(len(find_paper(name).claims) for name in NAMES)
    assert "| [firebert](out/firebert.md): FACT keeps" in text  # seen from the file that links
    assert (pages / "out" / "summary.md").is_file()


def test_the_same_command_again_only_writes(pages: Path) -> None:
    before = (pages / "out" / "lstm-jsma.md").read_bytes()
    seen = Seen()
    reproduce("lstm-jsma", scale="smoke", work=pages / "work", out=pages / "out", watcher=seen)
    assert seen.done == []
    assert (pages / "out" / "lstm-jsma.md").read_bytes() == before


def test_markup_in_texts_stays_text(tmp_path: Path) -> None:
    blocks: list[Block] = [
        Heading("a <b>", 1),
        Paragraph("`code` and **bold** <script>alert(1)</script>"),
        Bullets(["one & two"]),
        Grid(("x", "y"), [("1 | 2", "holds")]),
    ]
    html = to_html(blocks, "t")
    assert "<script>" not in html
    assert "<code>code</code> and <strong>bold</strong>" in html
    assert '<td class="holds">holds</td>' in html
    assert "| 1 \\| 2 | holds |" in to_markdown(blocks, tmp_path)


# -- mistakes --------------------------------------------------------------------------------------------


def test_unknown_names_are_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="firebirt"):
        reproduce("firebirt", out=tmp_path)
    with pytest.raises(UserError, match="no scale 'tiny'"):
        reproduce("bae", scale="tiny", out=tmp_path)


def test_data_that_is_not_there_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNFOOLED_DATA", raising=False)
    with pytest.raises(UserError, match="no folder of data sets") as error:
        reproduce("lstm-jsma", work=tmp_path / "work", out=tmp_path)
    assert "UNFOOLED_DATA" in error.value.remedy
    with pytest.raises(UserError, match="there is no folder"):
        reproduce("lstm-jsma", data=tmp_path / "absent", work=tmp_path / "work", out=tmp_path)
    with pytest.raises(UserError, match="no data set imdb"):
        reproduce("lstm-jsma", data=tmp_path, work=tmp_path / "work", out=tmp_path)
    assert not (tmp_path / "work").exists()


def test_resources_that_are_not_there_are_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    for name in ("mr", "trec", "imdb"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for paper, needed in (("bae", "masked-lm"), ("lstm-jsma", "glove-6b-50d")):
        with pytest.raises(ResourceError, match=needed) as error:
            reproduce(paper, data=tmp_path / "data", work=tmp_path / "work", out=tmp_path / "out")
        assert "unfooled resources get" in error.value.remedy
    assert not (tmp_path / "work").exists()


def test_a_page_of_another_scale_is_never_written_over(tmp_path: Path) -> None:
    page = tmp_path / "bae.json"
    page.write_text(json.dumps({"scale": "small", "claims": []}), encoding="utf-8")
    for so_far in (True, False):
        with pytest.raises(UserError, match="page of the scale small, and this is smoke") as error:
            reproduce("bae", scale="smoke", work=tmp_path / "work", out=tmp_path, so_far=so_far)
        assert "--out" in error.value.remedy
    assert not (tmp_path / "work").exists()


def test_where_pages_go_is_checked_before_the_work(tmp_path: Path) -> None:
    papers = [find_paper(name) for name in NAMES]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be made") as error:
        check(papers, scale="smoke", work=tmp_path / "work", out=tmp_path / "file")
    assert "--out" in error.value.remedy
    for readme, why in ((tmp_path / "file", "no place for the summary"), (tmp_path / "x", "cannot be read")):
        with pytest.raises(UserError, match=why):
            check(papers, scale="smoke", work=tmp_path / "work", out=tmp_path / "out", readme=readme)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{NAMES[-1]}.json").write_text('{"scale": "small"}', encoding="utf-8")
    with pytest.raises(UserError, match=f"{NAMES[-1]}.json is a page of the scale small"):
        check(papers, scale="smoke", work=tmp_path / "work", out=tmp_path / "out")


def test_a_work_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be made"):
        Laboratory(tmp_path / "work").carry_out([REVIEWS])


def test_a_readme_without_marks_is_left_alone(tmp_path: Path) -> None:
    claim = {"claim": "c", "paper": "p", "short": "s", "judgement": "holds"}
    (tmp_path / "bae.json").write_text(
        json.dumps({"scale": "small", "claims": [claim]}),
        encoding="utf-8",
    )
    readme = tmp_path / "README.md"
    readme.write_text("# x\n", encoding="utf-8")
    with pytest.raises(UserError, match="no place for the summary"):
        write_summary(tmp_path, readme)
    assert readme.read_text(encoding="utf-8") == "# x\n"
    assert "1 of 1 claims are decided" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    (tmp_path / "bae.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="is broken"):
        write_summary(tmp_path)
    with pytest.raises(UserError, match="holds no page"):
        write_summary(tmp_path / "empty")


def test_the_command_says_what_to_mend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["unfooled", "reproduce", "firebrt"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "firebert" in capsys.readouterr().err
