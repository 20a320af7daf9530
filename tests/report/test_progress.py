"""What a run of an attack that goes on after its success says about smaller budgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stored_runs import made, stored
from unfooled.core.curve import CurvePoint, curve_facts
from unfooled.core.result import Result
from unfooled.metrics.columns import ResultColumns
from unfooled.metrics.progress import progress
from unfooled.report.html import write_html

TEXT = "a great film of ten words and a little more"


def followed(key: int, queries: int, *points: CurvePoint) -> Result:
    """A success of an attack that kept its curve, or a failure where there is none."""
    result = made(key, "success" if points else "failure", TEXT)
    facts = tuple(sorted(curve_facts(points).items()))
    return replace(result, queries=queries, facts=facts, similarity=points[-1].similarity if points else None)


RESULTS = [
    followed(0, 1000, CurvePoint(4, 0.5, 4), CurvePoint(90, 0.7, 2), CurvePoint(800, 0.9, 1)),
    followed(1, 600, CurvePoint(200, 0.6, 3)),
    followed(2, 1000),
    replace(made(3, "skipped", TEXT), queries=1),
]


def test_progress_is_what_a_smaller_budget_would_have_found() -> None:
    found = {step.queries: step for step in progress(ResultColumns.read(RESULTS))}
    assert {100, 500, 1000} <= set(found)
    assert 5000 not in found
    assert min(found) >= 4  # nothing was broken before
    assert (found[100].broken, found[100].attacked) == (1, 3)
    assert found[100].similarity.value == pytest.approx(0.7)
    assert found[500].broken == 2
    assert found[500].similarity.value == pytest.approx(0.65)
    assert found[500].changed.value == pytest.approx(2.5)
    assert found[500].share.value == pytest.approx(0.25)
    assert found[1000].similarity.value == pytest.approx(0.75)


def test_an_attack_that_goes_on_needed_what_its_first_success_took() -> None:
    columns = ResultColumns.read(RESULTS)
    assert columns.needed.tolist() == [4.0, 200.0, 1000.0, 1.0]
    assert columns.queries.tolist() == [1000.0, 600.0, 1000.0, 1.0]


def test_the_page_draws_the_curve_with_a_table(tmp_path: Path) -> None:
    page = write_html([stored(tmp_path / "run", RESULTS)], tmp_path / "page.html").read_text()
    assert "Similarity of the best text after so many queries" in page
    assert "Share of words changed after so many queries" in page
    for cells in (("100", "1 of 3", "0.700"), ("500", "2 of 3", "0.650"), ("1,000", "2 of 3", "0.750")):
        at = page.index(f"<td>{cells[0]}</td>", page.index("Similarity of the best text"))
        assert all(f"<td>{cell}</td>" in page[at : at + 400] for cell in cells), cells


def test_other_runs_have_no_such_curve(tmp_path: Path) -> None:
    page = write_html(
        [stored(tmp_path / "run", [made(0, "success", TEXT)])], tmp_path / "page.html"
    ).read_text()
    assert "after so many queries" not in page
