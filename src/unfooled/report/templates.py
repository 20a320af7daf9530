"""Templates and files of pages: every string passes `visible`, so that no text can trick a reader."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from unfooled.report.diffs import visible

if TYPE_CHECKING:
    from jinja2 import Environment

OWN = ("unfooled.report", "page")  # a package, and the folder of its pages


def page_file(name: str, package: str = OWN[0], folder: str = OWN[1]) -> str:
    return (files(package) / folder / name).read_text(encoding="utf-8")


@cache
def page_environment(*folders: tuple[str, str]) -> Environment:
    """Of the pages in `folders`, and of those here that they build on."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(*place) for place in (*folders, OWN)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
