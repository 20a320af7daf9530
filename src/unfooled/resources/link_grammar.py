"""Link Grammar's verdict, by the program `link-parser` where it is installed (Debian: `link-grammar`).

A sentence is grammatical when the parser links all of its words. Dictionaries of English words in lower case
fail on some good sentences ("i read it"): compare two texts rather than read one number.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from unfooled.errors import ResourceError

PROGRAM = "link-parser"
MOST_WORDS, MOST_BYTES = 100, 1500  # of a sentence; longer ones take for ever, or stop the program
PATIENCE = 600.0  # seconds for one batch
# No words left out, no guesses at the spelling, no pictures: the answer is one line per sentence.
_OPTIONS = ("en", "-null=0", "-spell=0", "-graphics=0", "-verbosity=1", "-limit=1000")
_END = re.compile(r"(?<=[.!?])\s+(?=\w)")
_COMMAND = re.compile(r"^[^\w'\"(\[]+")  # a line that begins with ! is an order to the program
# Where every linkage breaks a rule of post-processing, both lines are written.
_VERDICT = re.compile(
    r"^(?:No complete linkages found.*(?:\nFound \d+ linkages? \(0 .*)?|Found \d+ linkages? \((\d+) )",
    re.MULTILINE,
)


class LinkGrammarChecker:
    """Counts the sentences of each text that cannot be parsed; one process answers a whole batch."""

    batch_size = 256

    def __init__(self, program: str) -> None:
        self._program = program

    def __call__(self, items: Sequence[str], /) -> list[int]:
        found = [sentences(text) for text in items]
        verdicts = self._verdicts(list(dict.fromkeys(sentence for own in found for sentence in own)))
        return [sum(not verdicts[sentence] for sentence in own) for own in found]

    def _verdicts(self, asked: Sequence[str]) -> dict[str, bool]:
        if not asked:
            return {}
        told = _run([self._program, *_OPTIONS], "".join(f"{sentence}\n" for sentence in asked))
        verdicts = [int(linkages or 0) > 0 for linkages in _VERDICT.findall(told)]
        if len(verdicts) != len(asked):
            raise ResourceError(
                f"{PROGRAM} gave {len(verdicts)} verdicts on {len(asked)} sentences",
                "try it by hand, or measure --with grammar:harper",
            )
        return dict(zip(asked, verdicts, strict=True))


def sentences(text: str) -> list[str]:
    """What the parser is asked about a text; sentences that are too long for it are left out."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    lines = (_COMMAND.sub("", " ".join(part.split())) for part in _END.split(printable))
    return [
        line
        for line in lines
        if line and len(line.split()) <= MOST_WORDS and len(line.encode()) <= MOST_BYTES
    ]


def open_link_grammar() -> LinkGrammarChecker:
    return LinkGrammarChecker(_program())


def link_grammar_version() -> str:
    found = re.search(r"link-grammar-(\S+)", _version(_program()))
    return found[1] if found else "of unknown version"


def _program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        raise ResourceError(
            f"Link Grammar's program {PROGRAM} is not on the path",
            "install it (Debian: apt-get install link-grammar), or use grammar:harper",
        )
    return found


@lru_cache(maxsize=1)
def _version(program: str) -> str:
    return _run([program, "--version"], "")


def _run(command: Sequence[str], given: str) -> str:
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, encoding="utf-8", errors="replace", timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ResourceError(f"{PROGRAM} cannot be used ({error})", "use grammar:harper instead") from error
    return done.stdout
