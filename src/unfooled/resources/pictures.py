"""What a reader sees: texts drawn by a real browser.

    item    the text, a string
    answer  its picture: grey values of a column of text, white around it, an array of height x WIDTH

Oracle names are `picture:FONT`, a font that the browser knows: `sans-serif`, `serif`, `monospace` or a name.
Chromium, where it is installed, draws a long page of many texts at once; a coloured rule between them says
where one ends. Nothing on the page is a program, and nothing is fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DEFAULT_FONT = "sans-serif"
WIDTH, HEIGHT = 640, 12_000  # pixels of a page; browsers draw no more than 16,384
PATIENCE = 300  # seconds for a page, on a machine that is busy with other work
_LONGEST = 20_000  # characters of a text that are drawn: more would not fit on a page
_RULE = (255, 0, 255)
_FONT = re.compile(r"[\w -]+")
_PAGE = """<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
html, body {{ margin: 0; background: white; }}
hr {{ all: unset; display: block; height: 2px; background: rgb{rule}; }}
p {{ margin: 0; padding: 8px; width: {width}px; box-sizing: border-box; overflow: hidden; color: black;
     font: 18px/1.5 {font}; white-space: pre-wrap; overflow-wrap: break-word; unicode-bidi: isolate; }}
</style>
{texts}<hr>
"""

Picture = NDArray[np.uint8]


class BrowserPictures:
    batch_size = 256

    def __init__(self, browser: str, font: str = DEFAULT_FONT) -> None:
        self._browser = browser
        self._font = font

    def __call__(self, items: Sequence[str], /) -> list[Picture]:
        found: list[Picture] = []
        while len(found) < len(items):
            found += self._drawn(items[len(found) :])
        return found

    def _drawn(self, texts: Sequence[str]) -> list[Picture]:
        """Pictures of the texts that fit on one page, at least of the first."""
        with libraries_of("plots", "PIL", needed_for="pictures of texts"):
            from PIL import Image
        with TemporaryDirectory(prefix="unfooled-page-") as folder:
            page, shot = Path(folder, "page.html"), Path(folder, "page.png")
            page.write_text(self._page(texts), encoding="utf-8")
            self._shoot(page, shot)
            with Image.open(shot) as image:
                colours = np.asarray(image.convert("RGB"))
        ruled = np.flatnonzero((colours[:, 0] == _RULE).all(axis=1))
        starts = [int(row) + 1 for row in ruled if row + 1 not in ruled]
        grey = colours.mean(axis=2).round().astype(np.uint8)
        if len(starts) < 2:  # one text that is longer than a page
            starts.append(len(grey) + 2)
        return [grey[begin : end - 2] for begin, end in pairwise(starts)]

    def _page(self, texts: Sequence[str]) -> str:
        shown = (escape(text[:_LONGEST].encode("utf-8", "replace").decode()) for text in texts)
        return _PAGE.format(
            rule=_RULE,
            width=WIDTH,
            font=self._font if self._font in ("serif", "sans-serif", "monospace") else f"'{self._font}'",
            texts="".join(f"<hr><p dir=ltr>{text}</p>\n" for text in shown),
        )

    def _shoot(self, page: Path, shot: Path) -> None:
        command = [
            self._browser,
            "--headless",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--no-first-run",
            f"--user-data-dir={page.parent / 'profile'}",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={shot}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # it does not start otherwise, as in a container
        try:
            done = subprocess.run(
                [*command, page.as_uri()], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResourceError(
                f"the browser {self._browser} cannot draw a page: {error}", "try it by hand"
            ) from error
        if not shot.is_file():
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = told[-1] if told else f"exit {done.returncode}"
            raise ResourceError(
                f"the browser {self._browser} drew no page: {reason}",
                f"try it by hand: {self._browser} --headless --screenshot=page.png about:blank",
            )


def open_pictures(variant: str = "") -> BrowserPictures:
    font = variant or DEFAULT_FONT
    if not _FONT.fullmatch(font):
        raise ResourceError(f"{font!r} is no name of a font", "such as picture:sans-serif")
    return BrowserPictures(find_browser(), font)


def find_browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise ResourceError(
            "no browser that draws pages without a screen is installed",
            f"install Chromium (Debian: apt-get install chromium); looked for: {', '.join(BROWSERS)}",
        )
    return found
