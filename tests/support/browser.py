"""A real browser for tests of pages; they skip, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


def chromium() -> str:
    """Path of an installed Chromium (Debian: `apt-get install chromium`)."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium is installed")


PATIENCE = 120_000  # milliseconds that a page may take on a machine that is busy with other work


@contextmanager
def open_browser() -> Iterator[Browser]:
    path = chromium()
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def watched_page(browser: Browser | BrowserContext, url: str, **options: Any) -> tuple[Page, list[str]]:
    """The page at `url`, and everything that it complains about or asks elsewhere."""
    page = browser.new_page(**options)
    page.set_default_timeout(PATIENCE)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request", lambda sent: trouble.append(sent.url) if not sent.url.startswith((url, "data:")) else None
    )
    page.goto(url)
    return page, trouble


# Contrast of an element's text with the grounds behind it, by the rule of the web's accessibility guidelines.
CONTRAST = """
(selector) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colours) => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const element = document.querySelector(selector);
  const grounds = [];
  for (let e = element; e; e = e.parentElement) grounds.unshift(getComputedStyle(e).backgroundColor);
  const b = light(["white", ...grounds]);
  const a = light([getComputedStyle(element).color]);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
