"""The page about a run, in a real browser and against the other outputs."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser import open_browser
from reviews import sentences, write_csv
from stored_runs import made, stored
from unfooled.errors import RunFileError
from unfooled.report.charts import ChartLine, bar_chart, line_chart, matrix
from unfooled.report.folder import write_report
from unfooled.report.html import write_html
from unfooled.report.interpretation import half_width, judge, needed_for
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.text import Text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = [
    "<script>window.harmed=1</script> a great film",
    "\"'><img src=x onerror=window.harmed=1> great",
    "</script><script>window.harmed=1</script> great",
    "{{ 7*7 }} {% raw %} great",
    "\u202egreat desrever\u202c and z\u200bero width",
    "4-byte 😀𝕏 great, \x00 nul and \x1b[31m colour",
    "javascript:window.harmed=1 http://127.0.0.1:9/great.png",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    data = write_csv(folder / "d.csv", sentences(60))
    return attack("fake", data, "deepwordbug", out=folder / "run").path


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """The page when its examples are there, and everything it complained about or asked for."""
    page = browser.new_page(**options)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    return page, trouble


def test_the_page_agrees_with_the_other_outputs(browser: Browser, run: Path, tmp_path: Path) -> None:
    folder = write_report(run, tmp_path / "report")
    summary = json.loads((folder / "summary.json").read_text())
    page, trouble = opened(browser, folder / "report.html")
    assert trouble == []
    value = f"{summary['accuracy_under_attack']['value']:.1%}"
    assert value in page.inner_text(".numbers")
    assert value in page.inner_text("#summary")
    assert value in (folder / "summary.md").read_text()
    page.select_option("#f-outcome", "")
    assert page.inner_text("#count") == f"{summary['total']} of {summary['total']} examples"
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for outcome, count in summary["counts"].items():
        page.select_option("#f-outcome", label=outcome)
        assert page.inner_text("#count").startswith(f"{count} of ")
        assert sum(row["outcome"] == outcome for row in rows) == count
    page.close()


def test_hostile_texts_are_shown_and_harmless(browser: Browser, tmp_path: Path) -> None:
    results = [made(i, "success", text, note=text) for i, text in enumerate(HOSTILE)]
    results.append(made(90, "error", HOSTILE[0], note=HOSTILE[1]))
    labels = ("<b>no</b>", "\u202e\"yes'><script>window.harmed=1</script>")
    folder = tmp_path / "<img src=x onerror=window.harmed=1>"
    page_path = write_html([stored(folder, results, labels)], tmp_path / "report.html")
    page, trouble = opened(browser, page_path)
    assert trouble == []
    assert page.evaluate("window.harmed") is None
    page.select_option("#f-outcome", "")
    shown = page.inner_text("#list")
    assert "<script>window.harmed=1</script>" in shown
    assert "\\u202e" in shown
    assert "\\u200b" in shown
    assert "\\u0000" in shown
    assert "😀𝕏" in shown
    assert "{{ 7*7 }}" in shown
    assert "\u202e" not in page.content()
    assert page.locator("img").count() == 0
    assert page.locator("#list a").count() == 0
    assert page.evaluate("window.harmed") is None
    page.close()


def test_filters_search_and_sort(browser: Browser, tmp_path: Path) -> None:
    results = [made(i, "success", f"great film number{i}") for i in range(120)]
    results += [made(200, "failure", "a plain text"), made(201, "error", "lost", note="the victim failed")]
    page, _ = opened(browser, write_html([stored(tmp_path / "r", results)], tmp_path / "p.html"))
    assert page.inner_text("#count") == "120 of 122 examples"
    assert page.locator("#list li").count() == 50
    page.click("#next-page")
    page.click("#next-page")
    assert page.inner_text("#page") == "page 3 of 3"
    assert page.locator("#list li").count() == 20
    assert page.is_disabled("#next-page")
    page.fill("#f-search", "NUMBER7 film")
    assert page.inner_text("#count") == "11 of 122 examples"  # number7 and number70 to number79
    page.select_option("#f-sort", "similarity")
    assert "number79" in page.inner_text("#list li:first-child")
    page.fill("#f-similarity", "0.575")
    assert page.inner_text("#count") == "5 of 122 examples"
    page.fill("#f-search", "")
    page.fill("#f-similarity", "")
    page.select_option("#f-outcome", label="error")
    assert "the victim failed" in page.inner_text("#list")
    page.fill("#f-search", "no such thing")
    assert page.inner_text("#count") == "0 of 122 examples"
    page.close()


def test_by_keyboard_and_on_a_phone(browser: Browser, run: Path, tmp_path: Path) -> None:
    path = write_html([run], tmp_path / "p.html")
    page, _ = opened(browser, path, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the examples"
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id").startswith("f-")
    # Everything to fill in has a name, every picture a description.
    unnamed = "e => e.filter(x => !x.labels || !x.labels.length).length"
    assert page.eval_on_selector_all("input, select", unnamed) == 0
    pictures = page.eval_on_selector_all("svg", "e => e.map(x => x.getAttribute('aria-label') || '')")
    assert len(pictures) >= 4
    assert all(len(picture) > 20 for picture in pictures)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser: Browser, run: Path, tmp_path: Path, scheme: Any) -> None:
    page, _ = opened(browser, write_html([run], tmp_path / "p.html"), color_scheme=scheme)
    ratio = """
        (selector) => {
          const element = document.querySelector(selector);
          const light = (text) => {
            const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map((v) => v / 255)
              .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          let ground = element;
          while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)" && ground.parentElement)
            ground = ground.parentElement;
          const a = light(getComputedStyle(element).color);
          const b = light(getComputedStyle(ground).backgroundColor);
          return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }"""
    for selector in (
        "h1",
        ".verdict strong",
        ".interval",
        "#list del",
        "#list ins",
        ".facts",
        "button",
        ".kicker",
    ):
        assert page.evaluate(ratio, selector) >= 4.5, selector
    page.close()


def test_ten_thousand_examples_stay_fluent(browser: Browser, tmp_path: Path) -> None:
    words = "a long and winding story about people who say great things to one another, film and all"
    run = stored(
        tmp_path / "r", [made(i, "success", f"great{i} {words} {i * 7919 % 9973}") for i in range(10_000)]
    )
    started = time.process_time()  # the work, not the wait: other programs may hold the cores
    path = write_html([run], tmp_path / "p.html")
    assert time.process_time() - started < 20
    assert path.stat().st_size < 15e6
    # The best of up to eight: a busy machine must not fail a page that is fast.
    paints, searches = [math.inf], [math.inf]
    for _ in range(8):
        if min(paints) < 1000 and min(searches) < 100:
            break
        page, trouble = opened(browser, path)
        assert trouble == []
        assert page.locator("#list li").count() == 50
        paints.append(page.evaluate("performance.getEntriesByType('paint')[0].startTime"))
        searches.append(page.evaluate(SEARCH))
        page.close()
    assert min(paints) < 1000
    assert min(searches) < 100


SEARCH = """() => {
    const box = document.getElementById("f-search");
    const times = ["great99", "winding story", "zzz", "1234"].map((words) => {
      const start = performance.now();
      box.value = words;
      box.dispatchEvent(new Event("input"));
      document.body.offsetHeight;
      return performance.now() - start;
    });
    return Math.max(...times);
}"""


def test_runs_side_by_side(browser: Browser, tmp_path: Path) -> None:
    base = stored(tmp_path / "base", [made(i, "success", f"great {i}") for i in range(20)])
    harder = stored(
        tmp_path / "harder", [made(i, "failure" if i < 12 else "success", f"great {i}") for i in range(20)]
    )
    page, trouble = opened(browser, write_html([base, harder], tmp_path / "p.html"))
    assert trouble == []
    summary = page.inner_text("#summary")
    assert "accuracy under attack +60.0 points" in summary
    assert "the two differ (exact McNemar test, p = 0.000488)" in summary
    page.select_option("#f-run", label="harder")
    assert page.inner_text("#count") == "8 of 40 examples"
    page.close()


def test_the_same_runs_give_the_same_page(run: Path, tmp_path: Path) -> None:
    first, second = write_html([run], tmp_path / "1.html"), write_html([run], tmp_path / "2.html")
    assert first.read_bytes() == second.read_bytes()


def test_runs_with_other_classes_are_refused(tmp_path: Path) -> None:
    runs = [
        stored(tmp_path / "a", [made(0, "success", "great")]),
        stored(tmp_path / "b", [made(0, "success", "great")], ("x", "y")),
    ]
    with pytest.raises(RunFileError, match="different classes"):
        write_html(runs, tmp_path / "p.html")


def test_a_run_keeps_its_colour_in_every_chart(tmp_path: Path) -> None:
    plain = [replace(made(i, "success", f"great {i}"), similarity=None) for i in range(5)]
    names = {"first": None, "unmeasured": plain, "third": None}
    runs = [
        stored(tmp_path / name, given or [made(i, "success", f"great {i}") for i in range(5)])
        for name, given in names.items()
    ]
    page = write_html(runs, tmp_path / "p.html").read_text()
    figures = [part for part in page.split("<figure>")[1:] if 'class="legend"' in part]
    similar = next(part for part in figures if "only similar texts count" in part)
    assert ">unmeasured<" not in similar
    for figure in figures:
        assert '<span class="chip s2">third</span>' in figure
    assert 'class="line s2"' in similar
    assert 'class="line s1"' not in similar
    assert page.count("attacked examples leave about") == 1  # one hint of each kind


def test_inserted_and_deleted_words_are_listed(tmp_path: Path) -> None:
    text = Text("a great film")
    new = text.insert(1, "hardly").delete(2)
    result = replace(made(0, "success", "a great film"), perturbed=new.string, edits=tuple(new.edits()))
    page = write_html([stored(tmp_path / "r", [result])], tmp_path / "p.html").read_text()
    assert "(inserted)</span></td><td><ins>hardly</ins>" in page
    assert '<del>great</del></td><td><span class="small">(deleted)</span>' in page


def test_a_run_is_named_once_and_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(tmp_path / "mine", [made(0, "success", "great")])
    with pytest.raises(RunFileError, match="named twice"):
        write_html([run, tmp_path / "x" / ".." / "mine"], tmp_path / "p.html")
    monkeypatch.chdir(run)
    assert '<th scope="col">mine</th>' in write_html([Path()], tmp_path / "p.html").read_text()


def test_why_nothing_was_attacked(tmp_path: Path) -> None:
    failed = stored(tmp_path / "e", [made(0, "error", "great")])
    assert "Every example ended in an error." in write_html([failed], tmp_path / "p.html").read_text()


def test_an_empty_run_still_makes_a_page(tmp_path: Path) -> None:
    page = write_html([stored(tmp_path / "r", [])], tmp_path / "p.html").read_text()
    assert "Nothing was attacked." in page
    assert "The run holds no example." in page


@pytest.mark.parametrize(
    ("successes", "failures", "tone"),
    [
        (95, 5, "bad"),
        (5, 95, "good"),
        (35, 65, "middling"),
        (20, 80, "middling"),
        (2, 2, "middling"),
        (0, 0, "none"),
    ],
)
def test_the_interval_chooses_the_words(tmp_path: Path, successes: int, failures: int, tone: str) -> None:
    from unfooled.metrics.summary import summarise

    results = [
        made(i, "success" if i < successes else "failure", "great") for i in range(successes + failures)
    ]
    with closing(RunFile.read(stored(tmp_path / "r", results))) as file:
        verdict = judge(summarise(file))
    assert verdict.tone == tone
    if successes == 20:
        assert verdict.headline == "Breaks now and then under this attack."
    if successes + failures == 4:
        assert verdict.headline == "Too few examples to say how fragile it is."


def test_sample_size_hints() -> None:
    assert half_width(601) == pytest.approx(0.04, abs=1e-4)
    assert needed_for(0.04) == 601


def test_charts_escape_and_describe() -> None:
    line = ChartLine("<x>", [1, 10, 100], [0.9, 0.5, 0.1], [0.8, 0.4, 0.0], [1.0, 0.6, 0.2])
    svg = line_chart([line], title='A "title"', x_name="<queries>", log_x=True)
    assert "<x>" not in svg
    assert "&lt;queries&gt;" in svg
    assert 'aria-label="A &quot;title&quot;. Line chart' in svg
    # The middle of a logarithmic axis from 1 to 100 is 10.
    xs = [float(part.split('"')[0]) for part in svg.split('cx="')[1:]]
    assert xs[1] == pytest.approx((xs[0] + xs[2]) / 2, abs=0.1)
    assert bar_chart([], [], title="t", x_name="x") == ""
    bars = bar_chart(["1", "2"], [3, 1], title="t", x_name="x")
    assert bars.count("<rect") == 2
    assert [f">{level}<" in bars for level in (0, 2, 4)] == [True] * 3  # no rule stands beside its number
    assert matrix(["a", "b"], ["a", "b"], [[1, 0], [2, 3]], title="t").count('class="cell"') == 4
