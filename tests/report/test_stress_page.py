"""The worst case as a command, a page, the Hub's evaluation results and a leaderboard."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from browser import PATIENCE, open_browser
from command_line import unfooled
from unfooled.checks.suites import all_suites
from unfooled.checks.worst_case import AttackShare, ClassShare, Stress
from unfooled.errors import DataError, UserError
from unfooled.metrics.summary import Rate
from unfooled.report.eval_results import entries, write_eval_results
from unfooled.report.leaderboard import read_entries, write_leaderboard
from unfooled.report.stress import print_stress, remarks, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REVIEWS = """text,label
a superb film,positive
an awful film,negative
a great story,positive
a superb great wonderful perfect excellent film,positive
a dreadful and boring film,negative
"""
SPELLING = [
    part
    for attack in ("textfooler@textattack", "list@paper", "bae-r@textattack", "bae-r-and-i@cosine")
    for part in ("--without", attack)
]


def made(victim: str = "toy", *, stands: int = 2, n: int = 10, valid: Rate | None = None) -> Stress:
    share = AttackShare(
        attack="alpha@1", folder="1-alpha@1", tried=n, broke=n - stands, first=n - stands, alone=None,
        valid=None, errors=1, queries=1234, seconds=61.0,
    )  # fmt: skip
    return Stress(
        suite="toys@1",
        victim=victim,
        fingerprint="0123456789abcdef",
        data="mr",
        n=n + 1,
        clean=Rate.of(n, n),
        worst=Rate.of(stands, n),
        valid=valid,
        attacks=(share,),
        left_out=(("jsma@paper", "jsma@paper needs gradients"),),
        classes=(ClassShare("positive", Rate.of(n, n), Rate.of(stands, n)),),
        states={"stands": stands, "broken": n - stands, "wrong": 0, "undecided": 1, "error": 0},
        undecided=(7,),
        errors=(),
        untried=0,
        notes=(),
        version="0.1.0",
        date="2026-01-02",
        out="runs/x",
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


def test_the_whole_way_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    command = ["stress", "--suite", "standard@1", "--model", "fake", "--data", "reviews.csv"]
    command += [*SPELLING, "--out", "worst"]
    told = unfooled(*command, "--eval-results", "worst.yaml", "--eval-dataset", "me/reviews", cwd=tmp_path)
    assert "standard@1+changed on fake" in told.stdout
    assert "accuracy in the worst case" in told.stdout
    assert "deepwordbug@textattack" in told.stdout
    as_json = json.loads(unfooled(*command, "--json", cwd=tmp_path).stdout)
    assert as_json["worst"]["n"] == 5
    assert as_json["states"]["broken"] == sum(attack["first"] for attack in as_json["attacks"])
    assert (tmp_path / "worst" / "stress.html").is_file()
    # A run of one attack is a run like any other.
    assert "deepwordbug" in unfooled("summary", "worst/1-deepwordbug@textattack", cwd=tmp_path).stdout
    share = as_json["worst"]["value"]
    assert share < 0.99
    unfooled("gate", "worst", "--min-accuracy", "0.99", code=1, cwd=tmp_path)
    judged = json.loads(unfooled("gate", "worst", "--min-aua", "0.0", "--json", cwd=tmp_path).stdout)
    assert judged["gate"] == "pass"
    assert judged["rules"][0]["value"] == share
    refused = unfooled("gate", "worst", "--max-success", "0.5", code=2, cwd=tmp_path)
    assert "is for a run of one attack" in refused.stderr
    unjudged = unfooled("gate", "worst", "--min-valid-aua", "0.5", code=2, cwd=tmp_path)
    assert "no text of these runs was judged" in unjudged.stderr
    unfooled("leaderboard", "worst", "worst.yaml", "-o", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<td data-by="fake">') == 2


def test_suites_are_listed_and_what_is_missing_is_said(tmp_path: Path) -> None:
    listed = unfooled("stress", "--list", cwd=tmp_path).stdout
    assert "standard@1: for a model that gives probabilities" in listed
    assert "  1. deepwordbug@textattack" in listed
    names = [suite["suite"] for suite in json.loads(unfooled("stress", "--list", "--json").stdout)]
    assert names == [suite.full_name for suite in all_suites()]
    assert {"decisions@3", "ladder@1", "standard@3", "whitebox@3"} <= set(names)
    assert "--model is missing" in unfooled("stress", code=2, cwd=tmp_path).stderr
    nothing = unfooled("leaderboard", str(tmp_path), code=2, cwd=tmp_path)
    assert "is no folder of `unfooled stress`" in nothing.stderr


def test_what_must_be_said_is_said() -> None:
    left_out, undecided = remarks(made())
    assert left_out == "left out: jsma@paper: jsma@paper needs gradients"
    assert undecided.startswith("undecided: 1 rows stand only because an attack ended in an error")
    assert "If all of them fell, 18.2% would stand, if none 27.3%" in undecided
    console = Console(record=True, width=200, file=io.StringIO())
    print_stress(console, made(valid=Rate.of(5, 10)))
    shown = console.export_text()
    assert "accuracy in the worst case 20.0 (5.7–51.0) %, by valid texts 50.0 (23.7–76.3)" in shown
    assert "1,234" in shown


def test_the_page_is_self_contained_and_shows_texts_as_texts(browser: Browser, tmp_path: Path) -> None:
    path = write_page(made("<script>alert(1)</script>"), tmp_path / "stress.html")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert "<script>alert(1)</script>" in page.inner_text("h1")
    assert [cell.inner_text() for cell in page.query_selector_all(".number .value")] == [
        "20.0 (5.7–51.0)",
        "–",
        "100.0 (72.2–100.0)",
    ]
    assert "left out: jsma@paper" in page.inner_text("header")
    page.close()


def test_evaluation_results_are_what_the_hub_reads(tmp_path: Path) -> None:
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = write_eval_results(made("a: 'b'; c", valid=Rate.of(5, 10)), tmp_path / "x.yaml", dataset="me/mr")
    stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [entry["value"] for entry in stored] == [20.0, 50.0, 100.0]
    for entry in stored:
        assert set(entry) == {"dataset", "value", "date", "evaluation_framework", "notes"}
        assert set(entry["dataset"]) == {"id", "task_id"}
        assert entry["dataset"]["id"] == "me/mr"
        assert entry["date"] == "2026-01-02"
    assert [entry["dataset"]["task_id"] for entry in stored] == [
        "toys_1_worst",
        "toys_1_valid",
        "toys_1_clean",
    ]
    with pytest.raises(UserError, match="is no id of a data set"):
        entries(made(), dataset="my file.csv")
    (entry,) = read_entries([path])
    assert (entry.model, entry.n, entry.queries) == ("a: 'b', c", 10, 1234)
    assert entry.worst.value == pytest.approx(0.2)
    assert entry.valid is not None
    assert entry.valid.low == pytest.approx(0.2366, abs=1e-4)


NOTES = "model=m; suite=s@1; measure=worst; low={}; high={}; n={}; queries=1; unfooled=0.1.0"
ENTRY = "- {{evaluation_framework: unfooled, dataset: {{id: x}}, value: {}, notes: '" + NOTES + "'}}"
LAUGHS = "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'ha'}]\n" for n in range(9))
LAUGHS += "- {evaluation_framework: unfooled, dataset: {id: *a8}, value: 1, notes: *a8, date: *a8}\n"


@pytest.mark.parametrize(
    "content",
    [
        "[",
        "a: 1",
        "- 5",
        "- {evaluation_framework: unfooled}",
        "\x00",
        ENTRY.format(".nan", 1, 2, 5),
        ENTRY.format(50, 1, 2000, 5),
        ENTRY.format(50, 40, 60, "many"),
        ENTRY.format(50, 40, 60, 0),
        LAUGHS,
        "[" * 5000,
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = tmp_path / "x.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError):
        read_entries([path])


def test_the_leaderboard_ranks_and_sorts(browser: Browser, tmp_path: Path) -> None:
    files = [
        write_eval_results(made("middle", stands=5), tmp_path / "m.yaml"),
        write_eval_results(made("best", stands=9, valid=Rate.of(9, 10)), tmp_path / "b.yaml"),
        write_eval_results(made("worst", stands=0, valid=Rate.of(4, 10)), tmp_path / "w.yaml"),
    ]
    path = write_leaderboard(files, tmp_path / "page.html")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")

    def models() -> list[str]:
        return [cell.inner_text() for cell in page.query_selector_all("tbody td:first-child")]

    assert models() == ["best", "middle", "worst"]
    page.get_by_role("button", name="by valid texts").click()
    assert models() == ["best", "worst", "middle"]  # what was not judged stays below
    page.get_by_role("button", name="by valid texts").click()
    assert models() == ["worst", "best", "middle"]
    page.get_by_role("button", name="worst case").click()
    page.get_by_role("button", name="worst case").click()
    assert models() == ["worst", "middle", "best"]
    page.close()


def test_a_model_that_remembers_comes_last_and_is_called_so(tmp_path: Path) -> None:
    remembering = replace(made("flattered", stands=9), remembers="it remembers: of 4 texts …")
    files = [
        write_eval_results(remembering, tmp_path / "f.yaml", dataset="me/mr"),
        write_eval_results(made("honest", stands=2), tmp_path / "h.yaml", dataset="me/mr"),
    ]
    entries = read_entries(files)
    assert [entry.model for entry in entries] == ["honest", "flattered"]
    assert [entry.cells()[0][0] for entry in entries] == ["honest", "flattered (remembers)"]
    assert any("it remembers" in line for line in remarks(remembering))
