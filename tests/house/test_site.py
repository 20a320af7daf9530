"""The site is built without a warning, is complete, and asks nobody for anything."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import unfooled
from browser import open_browser
from doc_pages import DOCS, ROOT
from hooks import commands, elsewhere, site_links

PATIENCE = 600


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Ids(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        if tag in ("script", "img", "iframe") or (tag == "link" and found.get("rel") != "canonical"):
            self.loaded.append(found.get("src") or found.get("href") or "")


def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    pages += [Path(shown) for shown in elsewhere().values() if shown.endswith(".md")]
    assert len(pages) >= 40
    assert [page for page in pages if not (site / page.with_suffix(".html")).is_file()] == []


def test_the_reference_has_every_command_and_every_public_name(site: Path) -> None:
    from typer.main import get_command

    from unfooled.cli.app import app

    told = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    names = [name for name, _ in commands(get_command(app))]
    assert len(names) >= 20
    assert [name for name in names if f'id="{name.replace(" ", "-")}"' not in told] == []
    assert "--seed" in told
    found = Ids(site / "reference" / "api.html").ids
    public = {f"unfooled.{name}" for name in unfooled.__all__} - {"unfooled.registry"}
    assert public | {"unfooled.plugins.Registry"} <= found


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert [
            address for address in Ids(page).loaded if address.startswith(("http:", "https:", "//"))
        ] == [], page


def test_a_browser_finds_all_it_needs(site: Path) -> None:
    asked: list[str] = []
    with open_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "how-to/attack.html", "papers/bae.html"):
            page.goto((site / name).as_uri(), wait_until="load")
            assert page.locator("h1").count() == 1
            pictures = page.locator("article img").evaluate_all("all => all.map((one) => one.naturalWidth)")
            assert 0 not in pictures
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_links_of_the_repository_become_links_of_the_site() -> None:
    told = "[a](../../bench/RESULTS.md) [b](similarity.md#x) [c](../../CONTRIBUTING.md) [d](https://example.org/x.md)"
    expected = "[a](benchmarks.md) [b](similarity.md#x) [c](../contributing.md) [d](https://example.org/x.md)"
    assert site_links(told, "explanation/design.md") == expected
    assert site_links("[all](README.md)", "papers/bae.md") == "[all](claims.md)"
    assert site_links("![f](docs/images/floor-plan.svg)", "contributing.md") == "![f](images/floor-plan.svg)"
