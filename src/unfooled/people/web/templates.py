"""The pages that are served, and the files they are made of."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import unfooled
from unfooled.report.templates import OWN, page_environment, page_file

# Served under /static/; the style of the HTML report comes first, so that all pages look alike.
PAGES = ("unfooled.people.web", "pages")
STATIC = {
    "style.css": ("text/css", (("page.css", *OWN), ("web.css", *PAGES))),
    "study.js": ("text/javascript", (("study.js", *PAGES),)),
    "playground.js": ("text/javascript", (("elements.js", *OWN), ("playground.js", *PAGES))),
}


@cache
def static_file(name: str) -> tuple[str, str]:
    """Type and content; a name that is not listed is a KeyError."""
    kind, parts = STATIC[name]
    return kind, "\n".join(page_file(*part) for part in parts)


@cache
def static_address(name: str) -> str:
    """Changes with the content, so that a browser may keep the file for ever."""
    return f"/static/{name}?v={hashlib.sha256(static_file(name)[1].encode()).hexdigest()[:12]}"


def render(page: str, **values: Any) -> str:
    template = page_environment(PAGES).get_template(page)
    return template.render(version=unfooled.__version__, static=static_address, **values)
