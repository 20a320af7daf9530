"""Texts on a page are drawn, not chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from toy_plan import plan
from unfooled.papers.document import to_markdown
from unfooled.papers.examples import drawn_texts, examples, marked
from unfooled.papers.findings import Findings
from unfooled.papers.runner import StageRunner


def test_changes_are_marked_and_what_is_far_from_them_left_out() -> None:
    assert marked("a good film", "a dull film") == "a [good → dull] film"
    assert marked("a good film", "a very good film") == "a [– → very] good film"
    assert marked("a very good film", "a good film") == "a [very → –] good film"
    long = " ".join(f"w{number}" for number in range(40))
    shown = marked(f"{long} good {long}", f"{long} dull {long}")
    assert shown.startswith("… w32 w33")
    assert shown.endswith("w6 w7 …")
    assert "w39 [good → dull] w0" in shown


def test_the_same_texts_are_drawn_again(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    done = StageRunner(tmp_path).carry_out(plan(limit=30))
    first, second = (drawn_texts(["swapped"], Findings(done)) for _ in range(2))
    assert first == second
    assert len({result.key for _, result in first}) == 10
    assert [result.key for _, result in first] != sorted(result.key for _, result in first)
    page = to_markdown(examples(["absent", "swapped"], Findings(done)), tmp_path)
    assert page.count("| swapped |") == 10
    assert "seed 24" in page
    assert f"WORK/attack/{done['swapped'].folder.name}/run" in page
    assert str(tmp_path) not in page
    assert examples(["absent"], Findings(done)) == []
