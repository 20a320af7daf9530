"""Grammar: how many mistakes does a checker find in a text?

    item    the text, a string
    answer  the number of mistakes, an int

Oracle names are `grammar:VARIANT`. `harper` is a checker with rules for English that comes as a package; what
it finds includes spelling and spacing. `link-grammar` parses, where its program is installed; a sentence that
cannot be parsed is one mistake. Compare two texts rather than read one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from unfooled.errors import MissingExtraError
from unfooled.extras import libraries_of
from unfooled.plugins import unknown_name
from unfooled.resources.link_grammar import LinkGrammarChecker, link_grammar_version, open_link_grammar

HARPER = "harper"
LINK_GRAMMAR = "link-grammar"
_PACKAGE = "harper-py"


class HarperChecker:
    """A checker in this process; each text is checked by itself."""

    batch_size = 256

    def __init__(self, linter: Any) -> None:
        self._linter = linter

    def __call__(self, items: Sequence[str], /) -> list[int]:
        return [len(self._linter.lint(text)) for text in items]


def open_grammar(variant: str = "") -> HarperChecker | LinkGrammarChecker:
    if variant == LINK_GRAMMAR:
        return open_link_grammar()
    if variant not in ("", HARPER):
        raise unknown_name("grammar checker", variant, [HARPER, LINK_GRAMMAR])
    return HarperChecker(_linter())


def fingerprint(variant: str) -> str:
    """The checker and its version, for the header of a run."""
    if variant == LINK_GRAMMAR:
        return f"{LINK_GRAMMAR} {link_grammar_version()}"
    try:
        return f"{variant or HARPER} {version(_PACKAGE)}"
    except PackageNotFoundError:
        raise MissingExtraError("the grammar checker", "language") from None


@lru_cache(maxsize=1)
def _linter() -> Any:
    """Its dictionary takes a second to build."""
    with libraries_of("language", "harper", needed_for="the grammar checker"):
        import harper
    return harper.Linter()
