"""Templates and files of the pages. Every string passes `visible`, so that no text can trick a reader."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import unfooled
from unfooled.report.diffs import visible

if TYPE_CHECKING:
    from jinja2 import Environment

# Served under /static/; the style of the HTML report comes first, so that all pages look alike.
PAGES = "unfooled.people.web"
STATIC = {
    "style.css": ("text/css", (("unfooled.report", "page/page.css"), (PAGES, "pages/web.css"))),
    "study.js": ("text/javascript", (("unfooled.people.web", "pages/study.js"),)),
    "playground.js": ("text/javascript", (("unfooled.people.web", "pages/playground.js"),)),
}


@cache
def static_file(name: str) -> tuple[str, str]:
    """Type and content; a name that is not listed is a KeyError."""
    kind, parts = STATIC[name]
    return kind, "\n".join(
        files(package).joinpath(path).read_text(encoding="utf-8") for package, path in parts
    )


@cache
def static_address(name: str) -> str:
    """Changes with the content, so that a browser may keep the file for ever."""
    return f"/static/{name}?v={hashlib.sha256(static_file(name)[1].encode()).hexdigest()[:12]}"


def render(page: str, **values: Any) -> str:
    return _environment().get_template(page).render(version=unfooled.__version__, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("unfooled.people.web") / "pages"

    def load(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    made = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.globals["static"] = static_address
    return made
