"""The gate for continuous integration."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from stored_runs import made, stored
from unfooled.checks.gate import Rule
from unfooled.cli.app import app
from unfooled.core.result import Result
from unfooled.data.dataset import Dataset
from unfooled.errors import RunFileError, UserError
from unfooled.runs.attack import Observer, attack
from unfooled.runs.file import RunFile
from unfooled.victims.fake import FakeVictim


def run_of(tmp_path: Path, successes: int, failures: int, errors: int = 0) -> Path:
    kinds = ["success"] * successes + ["failure"] * failures + ["error"] * errors
    return stored(tmp_path / "r", [made(i, kind, "great film") for i, kind in enumerate(kinds)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("successes", "failures", "options", "code", "word"),
    [
        (10, 90, ["--min-aua", "0.6"], 0, "pass"),
        (90, 10, ["--min-aua", "0.6"], 1, "fail"),
        (4, 6, ["--min-aua", "0.6"], 4, "undecided"),
        (4, 6, ["--min-aua", "0.6", "--undecided-passes"], 0, "undecided"),
        (10, 90, ["--max-success", "0.3", "--min-accuracy", "0.9"], 0, "pass"),
        (50, 50, ["--max-success", "0.3"], 1, "fail"),
        (50, 50, ["--max-success", "0.5"], 4, "undecided"),
    ],
)
def test_the_interval_decides(
    tmp_path: Path, successes: int, failures: int, options: list[str], code: int, word: str
) -> None:
    run = run_of(tmp_path, successes, failures)
    answer = CliRunner().invoke(app, ["gate", str(run), *options, "--json"])
    assert answer.exit_code == code
    assert json.loads(answer.stdout)["gate"] == word


def test_a_run_that_was_stopped_is_not_judged(tmp_path: Path) -> None:
    class Stop(Observer):
        def finished(self, result: Result) -> None:
            raise KeyboardInterrupt

    rows = [("great film", "positive"), ("a great cast", "positive"), ("awful film", "negative")]

    def attacked(limit: int, observer: Observer | None = None) -> None:
        victim = FakeVictim()
        data = Dataset.from_pairs(rows, labels=victim.labels)
        attack(victim, data, "deepwordbug", out=tmp_path / "r", limit=limit, observer=observer)

    with pytest.raises(KeyboardInterrupt):
        attacked(3, Stop())
    answer = CliRunner().invoke(app, ["gate", str(tmp_path / "r"), "--min-aua", "0.1"])
    assert isinstance(answer.exception, UserError)
    assert "2 examples of this run are missing" in str(answer.exception)
    shown = CliRunner().invoke(app, ["summary", str(tmp_path / "r")]).stdout
    assert "2 more are missing: repeat the command" in shown
    attacked(2)  # fewer than at first, and all of them are there
    assert CliRunner().invoke(app, ["gate", str(tmp_path / "r"), "--min-aua", "0.1"]).exit_code in (0, 1, 4)
    attacked(3)
    assert (
        json.loads(CliRunner().invoke(app, ["summary", str(tmp_path / "r"), "--json"]).stdout)["missing"] == 0
    )


def test_errors_are_no_robustness(tmp_path: Path) -> None:
    run = run_of(tmp_path, 0, 90, errors=10)
    answer = CliRunner().invoke(app, ["gate", str(run), "--min-aua", "0.6"])
    assert answer.exit_code == 1
    assert "fail       share of examples that ended in an error ≤ 5.0%: 10.0%" in answer.stdout
    assert (
        CliRunner().invoke(app, ["gate", str(run), "--min-aua", "0.6", "--max-errors", "0.1"]).exit_code == 0
    )


def test_files_for_machines_and_people(tmp_path: Path) -> None:
    run = run_of(tmp_path, 8, 12)
    xml, note = tmp_path / "out" / "gate.xml", tmp_path / "gate.md"
    options = ["--min-aua", "0.6", "--max-success", "0.05", "--junit", str(xml), "--markdown", str(note)]
    assert CliRunner().invoke(app, ["gate", str(run), *options]).exit_code == 1
    suite = ElementTree.parse(xml).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert suite.findall("testcase/failure")[0].get("message", "").startswith("success rate of the attack")
    # What passed is told with its number as well.
    (passed,) = suite.findall("testcase/system-out")
    assert passed.text == "share of examples that ended in an error ≤ 5.0%: 0.0% (counted, n = 20)"
    assert (
        "| accuracy under attack ≥ 60.0% | 60.0% (22.7% – 89.7%, n = 20) | ❔ undecided |" in note.read_text()
    )


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    name = "<script>|\u202e[x](http://x)\ufffe\x0b"
    run = stored(tmp_path / "r", [made(0, "success", "great film")], attack=name)
    xml, note = tmp_path / "gate.xml", tmp_path / "gate.md"
    CliRunner().invoke(
        app, ["gate", str(run), "--min-aua", "0.6", "--junit", str(xml), "--markdown", str(note)]
    )
    assert "<script>|\\u202e[x](http://x)\\xfffe" in (ElementTree.parse(xml).getroot().get("name") or "")
    told = note.read_text()
    assert "&lt;script&gt;\\|\\\\u202e\\[x\\](http://x)" in told
    assert "<script>" not in told


def test_a_gate_needs_a_rule_and_a_share(tmp_path: Path) -> None:
    run = run_of(tmp_path, 1, 1)
    answer = CliRunner().invoke(app, ["gate", str(run)])
    assert isinstance(answer.exception, UserError)
    assert "no rule" in str(answer.exception)
    with pytest.raises(UserError, match="no share"):
        Rule("aua", "min", 60.0)


def attacked(folder: Path, rows: int, **options: object) -> Path:
    """A run over `rows` of 60 sentences, all of which the fake victim loses."""
    pairs = [
        (f"{'great' if i % 2 else 'awful'} film number {i}", "positive" if i % 2 else "negative")
        for i in range(60)
    ]
    data = Dataset.from_pairs(pairs, labels=FakeVictim().labels)
    attack(FakeVictim(), data, "deepwordbug", out=folder, limit=rows, **options)  # type: ignore[arg-type]
    return folder


def judged(run: Path) -> dict[str, object]:
    answer = CliRunner().invoke(app, ["gate", str(run), "--min-accuracy", "0.5", "--json"])
    return dict(json.loads(answer.stdout))


def test_a_run_that_may_grow_is_judged_by_an_interval_for_every_size(tmp_path: Path) -> None:
    run = attacked(tmp_path / "r", 20)
    first = judged(run)
    assert (first["interval"], first["looks"]) == ("anytime", [20])
    assert judged(attacked(run, 30))["looks"] == [20, 30]
    again = judged(attacked(run, 60))  # all rows by now, but looked at before
    assert (again["interval"], again["looks"]) == ("anytime", [20, 30, 60])
    told = CliRunner().invoke(app, ["gate", str(run), "--min-accuracy", "0.5"]).stdout
    assert "anytime-valid 95 % interval" in told
    assert "looks at this run: 20, 30, 60 rows" in told


def test_a_size_that_was_fixed_before_is_judged_by_one_look(tmp_path: Path) -> None:
    assert judged(attacked(tmp_path / "all", 60))["interval"] == "exact"
    fixed = attacked(tmp_path / "fixed", 20, final=True)
    assert judged(fixed)["interval"] == "exact"
    assert judged(attacked(fixed, 20, final=True))["interval"] == "exact"
    with pytest.raises(RunFileError, match="fixed at 20 rows"):
        attacked(fixed, 30)
    low = [dict(rule)["low"] for rule in judged(fixed)["rules"]]  # type: ignore[attr-defined]
    grown = [dict(rule)["low"] for rule in judged(attacked(tmp_path / "r", 20))["rules"]]  # type: ignore[attr-defined]
    assert low[0] > grown[0]  # which is what fixing the size is good for


def test_a_look_leaves_the_results_and_their_digest_alone(tmp_path: Path) -> None:
    run = attacked(tmp_path / "r", 20)
    with closing(RunFile.read(run)) as file:
        before = file.content_digest()
    judged(run)
    with closing(RunFile.read(run)) as file:
        assert file.content_digest() == before
