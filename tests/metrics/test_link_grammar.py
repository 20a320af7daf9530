"""Link Grammar's verdict as a grammar measure: against a stand-in for its program, and for real."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest

from stored_runs import made, stored
from unfooled.errors import ResourceError
from unfooled.metrics.measures import measure_run
from unfooled.resources import link_grammar
from unfooled.resources.grammar import fingerprint, open_grammar
from unfooled.runs.file import RunFile

PARSER = """#!{python}
import sys
if "--version" in sys.argv:
    print("Version: link-grammar-9.8.7")
    sys.exit()
print("null set to 0")
for line in sys.stdin:
    assert not line.startswith("!"), line
    if "awful" in line:
        print("No complete linkages found.")
    elif "violated" in line:
        print("No complete linkages found.")
        print("Found 3 linkages (0 had no P.P. violations)")
    elif "silent" not in line:
        print("Found 770 linkages (53 of 100 random linkages had no P.P. violations)")
        print("\\tLinkage 1, cost vector = (UNUSED=0 DIS= 0.10 LEN=46)")
print("Bye.")
"""


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "link-parser"
    path.parent.mkdir()
    path.write_text(PARSER.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent))
    link_grammar._version.cache_clear()
    return path


def test_sentences_that_do_not_parse_are_mistakes(parser: Path) -> None:
    checker = open_grammar("link-grammar")
    asked = [
        "A fine film. It is awful.",
        "fine",
        "awful . awful again",
        "violated . awful",
        "",
        "A fine film.",
    ]
    assert checker(asked) == [1, 0, 2, 2, 0, 0]
    assert fingerprint("link-grammar") == "link-grammar 9.8.7"


def test_no_text_is_an_order_to_the_program() -> None:
    assert link_grammar.sentences("!file /etc/passwd") == ["file /etc/passwd"]
    assert link_grammar.sentences("a\n!help\x00 b") == ["a !help b"]
    assert link_grammar.sentences("% ! * \u202e .") == []
    long = "word " * 101
    assert link_grammar.sentences(f"Short one. {long}. {'x' * 2000}. Last.") == ["Short one.", "Last."]


def test_a_program_that_fails_is_not_believed(parser: Path) -> None:
    with pytest.raises(ResourceError, match="gave 1 verdicts on 2 sentences"):
        open_grammar("link-grammar")(["fine", "silent"])
    parser.chmod(0o644)
    with pytest.raises(ResourceError, match="apt-get install link-grammar"):
        open_grammar("link-grammar")


def test_what_a_run_found_is_measured(parser: Path, tmp_path: Path) -> None:
    run = stored(tmp_path / "r", [made(0, "success", "great film"), made(1, "failure", "great film")])
    assert measure_run(run, ["grammar:link-grammar"]) == ["grammar:link-grammar"]
    with closing(RunFile.read(run)) as file:
        assert file.measured("grammar:link-grammar") == {0: 1.0}


@pytest.mark.skipif(shutil.which("link-parser") is None, reason="link-parser is not installed")
def test_the_real_program() -> None:
    checker = open_grammar("link-grammar")
    right, wrong = "The cat sat on the mat.", "Cat the on mat sat the."
    assert checker([right, wrong, f"{right} {wrong}", "\u202e😀 <b>"])[:3] == [0, 1, 1]
    assert fingerprint("link-grammar").startswith("link-grammar 5.")
