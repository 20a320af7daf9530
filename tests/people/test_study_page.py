"""The page of a study in a real browser: three people, thirty items, a killed server, hostile texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser import CONTRAST, PATIENCE, open_browser, watched_page
from study_runs import two_runs
from unfooled.people.study.content import Item
from unfooled.people.study.file import StudyFile, spaced_code
from unfooled.people.study.protocols import load_protocol
from unfooled.people.study.sampling import draw
from unfooled.people.web.study_app import study_app
from web_server import free_port, serving, start
from web_server import request as ask

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return two_runs(tmp_path_factory.mktemp("runs"), 14)


def make(runs: list[Path], path: Path, name: str = "bae", **given: Any) -> dict[int, str]:
    """A study of thirty items, unless told otherwise; returns the codes."""
    options = {"n": 18, "annotators": 3, "originals": 9, "checks": 3, "primer": 2} | given
    with StudyFile.create(path, draw(runs, load_protocol(name), **options)) as study:
        return study.codes


def signed_in(
    browser: Browser | BrowserContext, url: str, code: str, *, expected: str = "/begin", **options: Any
) -> tuple[Page, list[str]]:
    """On the page before the first item; and what troubled it."""
    page, trouble = watched_page(browser, url, **options)
    page.fill("#code", spaced_code(code))
    page.press("#code", "Enter")
    page.wait_for_url(f"{url}{expected}")
    return page, trouble


def wanted(annotator: int, item: Item) -> dict[str, int]:
    """What this test's people think: anything, but always the same of the same item."""
    return dict(item.expected) or {"label": (item.number + annotator) % 2, "naturalness": item.number % 5 + 1}


def ready(page: Page, number: int) -> None:
    page.wait_for_url(f"**/items/{number}")
    page.wait_for_selector("body[data-ready]")


def at_the_first_item(context: BrowserContext, url: str, code: str) -> Page:
    page, _ = signed_in(context, url, code)
    page.click("button.main")
    ready(page, 1)
    return page


def told(page: Page, text: str) -> None:
    """Waits until the page says so. No script of a test's own may run in it: the page forbids that."""
    page.locator("#saved", has_text=text).wait_for()


@pytest.mark.slow
def test_three_people_thirty_items_and_a_killed_server(
    browser: Browser, runs: list[Path], tmp_path: Path
) -> None:
    path = tmp_path / "study.db"
    codes = make(runs, path)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = start("study", "serve", path, port=port)
    study = StudyFile.open(path, reading=True)
    places = {annotator: [study.items[p.item] for p in order] for annotator, order in study.orders.items()}
    assert all(len(items) == 30 for items in places.values())
    try:
        # By mouse, on a wide screen.
        page, trouble = signed_in(browser, url, codes[1])
        assert page.locator(".primer li").count() == 2
        page.click("text=I am ready")
        for number, item in enumerate(places[1], 1):
            ready(page, number)
            for question, value in wanted(1, item).items():
                page.click(f'label:has(input[name="q.{question}"][value="{value}"])')
            page.click("text=Next")
        page.wait_for_url(f"{url}/done")
        assert "All 30 items are answered" in page.inner_text("main")
        assert page.evaluate("window.harmed") is None
        assert trouble == []
        page.close()

        # By keyboard only; the server is killed between two answers of one item.
        page, trouble = signed_in(browser, url, codes[2])
        while page.evaluate("document.activeElement.textContent") != "I am ready":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        for number, item in enumerate(places[2], 1):
            ready(page, number)
            values = wanted(2, item)
            page.keyboard.press(str(values["label"] + 1))
            if number == 15:
                told(page, "Saved.")
                server.kill()  # SIGKILL
                server.communicate(timeout=60)
            page.keyboard.press(str(values["naturalness"]))
            if number == 15:
                told(page, "No connection.")
                page.keyboard.press("Enter")
                server = start("study", "serve", path, port=port)
                continue
            page.keyboard.press("Enter")
        page.wait_for_url(f"{url}/done")
        assert all("ERR_CONNECTION" in line for line in trouble)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Look at an answer again"
        page.close()

        # On a phone, by touch; the person signs in again, later the connection and the tab are lost.
        phone: Any = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
        context = browser.new_context(**phone)
        context.set_default_timeout(PATIENCE)
        page, _ = signed_in(context, url, codes[3])
        page.tap("text=I am ready")
        for number, item in enumerate(places[3], 1):
            ready(page, number)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            context.set_offline(number == 20)
            for question, value in wanted(3, item).items():
                page.tap(f'label:has(input[name="q.{question}"][value="{value}"])')
            if number == 10:  # signed in anew, by a link that carries the code
                told(page, "Saved.")
                page.close()
                context.clear_cookies()
                page = context.new_page()
                page.goto(f"{url}/#code={codes[3]}")
            elif number == 20:  # the tab dies with answers that never left it
                told(page, "No connection.")
                page.close()
                context.set_offline(False)
                page = context.new_page()
                page.goto(url)
                page.wait_for_selector("body[data-ready]")
                if page.url.endswith("/items/20"):  # else the dying tab still got its answers through
                    told(page, "Saved.")
                    page.tap("text=Next")
            else:
                page.tap("text=Next")
        page.wait_for_url(f"{url}/done")
        context.close()
    finally:
        server.kill()
        server.communicate(timeout=60)
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT annotator, item, question, value, changes FROM answers").fetchall()
    database.close()
    expected = {
        (annotator, item.number, question): value
        for annotator, items in places.items()
        for item in items
        for question, value in wanted(annotator, item).items()
    }
    assert len(rows) == len(expected) == 180  # nothing lost, nothing doubled
    assert {(a, item, question): value for a, item, question, value, _ in rows} == expected
    assert {changes for *_, changes in rows} == {0}
    study.close()


def test_hostile_texts_are_shown_and_harmless(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db", n=28, annotators=1, originals=2, checks=2, primer=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        page, trouble = signed_in(browser, url, codes[1])
        page.click("text=I am ready")
        shown = ""
        for number in range(1, 33):
            page.goto(f"{url}/items/{number}")
            shown += page.inner_text(".texts")
            assert page.locator(".texts img, .texts script, .texts a").count() == 0
            # Nobody is told where a text comes from.
            assert not {"adversarial", "original", "first@1", "second@1"} & set(page.content().split('"'))
        assert trouble == []
        assert page.evaluate("window.harmed") is None
        page.close()
    assert "<script>window.harmed=1</script>" in shown
    assert "{{ 7*7 }}" in shown
    assert "\\u202e" in shown
    assert "\u202e" not in shown
    assert "😀𝕏" in shown


def test_going_back_shows_and_changes_answers(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db", "breaking-bert", n=4, annotators=1, originals=1, checks=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        page, _ = signed_in(browser, url, codes[1])
        page.click("text=I am ready")
        ready(page, 1)
        assert page.locator("article").count() == 2
        assert page.get_attribute("article >> nth=1", "aria-label") == "Second version"
        page.keyboard.press("Enter")  # nothing chosen: the browser says what is missing
        assert page.url.endswith("/items/1")
        page.keyboard.press("2")
        page.keyboard.press("5")
        page.keyboard.press("Enter")
        ready(page, 2)
        page.keyboard.press("Backspace")
        ready(page, 1)
        assert page.is_checked('input[name="q.fluency"][value="2"]')
        assert page.inner_text("#finished") == "1"
        page.check('input[name="q.fluency"][value="4"]', force=True)
        told(page, "Saved.")
        page.reload()
        assert page.is_checked('input[name="q.fluency"][value="4"]')
        assert page.is_checked('input[name="q.meaning"][value="5"]')
        # Everything to choose has a name, and the state is read out.
        unnamed = "e => e.filter(x => !x.labels.length && !x.getAttribute('aria-label')).length"
        assert page.eval_on_selector_all("input[type=radio]", unnamed) == 0
        assert page.get_attribute("#saved", "aria-live") == "polite"
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser: Browser, runs: list[Path], tmp_path: Path, scheme: Any) -> None:
    codes = make(runs, tmp_path / "s.db", "breaking-bert", n=4, annotators=1, checks=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        page, _ = signed_in(browser, url, codes[1], color_scheme=scheme)
        assert page.evaluate(CONTRAST, "button.main") >= 4.5
        page.click("text=I am ready")
        ready(page, 1)
        page.keyboard.press("3")
        told(page, "Saved.")
        for selector in (".reading", ".reading h2", "legend", ".end", "#saved", "#back", ".keys", "kbd"):
            assert page.evaluate(CONTRAST, selector) >= 4.5, selector
        assert page.evaluate(CONTRAST, "input:checked + span") >= 4.5
        page.close()


def test_it_works_without_scripts(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db", "self-attention", n=4, annotators=1, originals=0, checks=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(url)
        page.fill("#code", codes[1])
        page.click("text=Start reading")
        page.click("text=I am ready")
        for _ in range(4):
            page.check('input[value="1"]', force=True)
            page.click("text=Next")
        for _ in range(2):
            assert page.locator("article h2").all_inner_texts() == ["TEXT A", "TEXT B"]
            page.check('input[value="0"]', force=True)
            page.click("text=Next")
        assert "All 6 items are answered" in page.inner_text("main")
        context.close()
    with StudyFile.open(tmp_path / "s.db") as study:
        given = {answer.item: answer.value for answer in study.answers() if answer.question == "readability"}
    assert set(given.values()) == {0}  # always the first run's text, whichever side it stood on


def test_strangers_are_kept_out(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db")
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        home = {"Origin": url}
        # Wrong codes.
        for code in ("", "x", codes[1][:-1], "a" * 16, "' OR 1=1 --"):
            status, text, headers = ask(url, "POST", "/sign-in", home, f"code={code}")
            assert (status, "not known" in text, "set-cookie" in headers) == (403, True, False)
        status, _, headers = ask(url, "POST", "/sign-in", home, f"code={codes[1]}")
        assert status == 303
        cookie = headers["set-cookie"].split(";")[0]
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=lax" in headers["set-cookie"]
        # No cookie, or a made-up one: nothing to see, nothing to save.
        for given in ({}, {"Cookie": cookie[:-3] + "xyz"}):
            assert ask(url, "GET", "/items/1", given)[0] == 303
            assert ask(url, "POST", "/items/1", home | given, "q.label=1")[0] == 303
        me = {"Cookie": cookie}
        _, text, headers = ask(url, "GET", "/items/1", me)
        proof = text.partition('name="proof" value="')[2].partition('"')[0]
        assert len(proof) == 64
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        good = f"proof={proof}&q.label=1"
        # From another site, from nowhere, without the proof, with another's proof.
        for foreign in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": url.replace("127.0.0.1", "localhost")},
            {"Origin": url, "Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {},
        ):
            assert ask(url, "POST", "/items/1", me | foreign, good)[0] == 403
        assert ask(url, "POST", "/items/1", me | home, "q.label=1")[0] == 403
        assert ask(url, "POST", "/items/1", me | home, f"proof={'0' * 64}&q.label=1")[0] == 403
        # What is not an answer, not an item, not a page, not this host, too long.
        assert ask(url, "POST", "/items/1", me | home, f"proof={proof}&q.label=7")[0] == 400
        assert ask(url, "POST", "/items/1", me | home, f"proof={proof}&q.label=x")[0] == 400
        assert ask(url, "POST", "/items/31", me | home, good)[0] == 404
        assert ask(url, "GET", "/static/..%2fguard.py", me)[0] == 404
        assert ask(url, "GET", "/", {"Host": "evil.example"})[0] == 421
        assert ask(url, "GET", "/", {"Host": "["})[0] == 421
        assert ask(url, "POST", "/items/1", me | {"Origin": "http://["}, good)[0] == 403
        assert ask(url, "GET", "/items/" + "9" * 5000, me)[0] == 414
        assert ask(url, "POST", "/sign-in", home, "code=" + "x" * 300_000)[0] == 413
        with StudyFile.open(tmp_path / "s.db", reading=True) as study:
            assert list(study.answers()) == []
        assert ask(url, "POST", "/items/1", me | home | {"Accept": "application/json"}, good)[0] == 200
        # A real browser that is signed in, on a page of another site that posts here.
        page, _ = signed_in(browser, url, codes[2])
        page.goto(
            f"data:text/html,<form method=post action='{url}/items/1'><input name=q.label value=1></form>"
        )
        page.evaluate("document.forms[0].submit()")
        page.wait_for_url(f"{url}/items/1")
        assert "another site" in page.content()
        page.close()
        with StudyFile.open(tmp_path / "s.db", reading=True) as study:
            assert [(answer.annotator, answer.value) for answer in study.answers()] == [(1, 1)]


def test_an_answer_waits_for_its_annotator(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db", primer=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        context = browser.new_context()
        first = at_the_first_item(context, url, codes[1])
        context.clear_cookies()
        signed_in(context, url, codes[2])
        # The first tab still shows the item of somebody who is not signed in any more.
        first.keyboard.press("1")
        first.wait_for_url(f"{url}/begin")
        assert list(opened.answers()) == []
        context.clear_cookies()
        again, _ = signed_in(context, url, codes[1], expected="/items/1")
        told(again, "Saved.")
        assert [(answer.annotator, answer.value) for answer in opened.answers()] == [(1, 0)]
        context.close()


def test_tabs_do_not_forget_for_each_other(browser: Browser, runs: list[Path], tmp_path: Path) -> None:
    codes = make(runs, tmp_path / "s.db", primer=0)
    with StudyFile.open(tmp_path / "s.db") as opened, serving(study_app(opened)) as url:
        context = browser.new_context()
        tab = at_the_first_item(context, url, codes[1])
        other = context.new_page()
        other.goto(f"{url}/items/2")
        ready(other, 2)
        # The server is away, both tabs are answered and closed; what they kept is sent later.
        context.route("**/items/*", lambda route: route.abort())
        for page in (tab, other):
            page.keyboard.press("2")
            told(page, "No connection")
        tab.close()
        other.close()
        context.unroute_all()
        back = context.new_page()
        back.goto(f"{url}/items/3")
        told(back, "Saved.")
        items = [place.item for place in opened.orders[1]][:2]
        assert {(given.item, given.value) for given in opened.answers()} == {(item, 1) for item in items}
        context.close()


def test_beyond_loopback_a_token_is_needed(runs: list[Path], tmp_path: Path) -> None:
    make(runs, tmp_path / "s.db")
    token = "a-token-of-24-characters"
    flags = ("--host", "0.0.0.0", "--allow-remote", "--token", token)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = start("study", "serve", tmp_path / "s.db", *flags, port=port)
    try:
        assert ask(url, "GET", "/", {})[0] == 403
        assert ask(url, "GET", "/?token=a-token-of-24-character", {})[0] == 403
        assert ask(url, "POST", "/sign-in", {"Origin": url}, "code=x")[0] == 403
        assert ask(url, "GET", "/?token=%C3%A9", {"Cookie": "unfooled_access_\xe9=\xe9; x"})[0] == 403
        status, _, headers = ask(url, "GET", f"/?token={token}", {})
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"].split(";")[0]
        assert token not in cookie
        assert ask(url, "GET", "/", {"Cookie": cookie.partition("=")[0] + "=\xe9"})[0] == 403
        assert "Your code" in ask(url, "GET", "/", {"Cookie": cookie, "Host": "study.example"})[1]
    finally:
        server.terminate()
        told, _ = server.communicate(timeout=20)
    assert f"/?token={token}" in told
