"""The page about parity is what its table and its figures give, and names only what exists."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from unfooled.core.recipe import all_recipes

ROOT = Path(__file__).resolve().parents[2]
# What TextAttack 0.3.11 and OpenAttack 2.1.1 have, counted in their packages.
RECIPES_OF_TEXTATTACK = 24
ATTACKERS_OF_OPENATTACK = 16  # 14, one switched off, one that only its README names


@pytest.fixture
def parity(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("parity_page")


def test_the_page_is_what_table_and_figures_give(parity: Any) -> None:
    assert (ROOT / "docs" / "parity.md").read_text(encoding="utf-8") == parity.page()


def test_every_recipe_of_both_has_one_row(parity: Any) -> None:
    theirs = [row.name for row in parity.TEXTATTACK]
    others = [row.name for row in parity.OPENATTACK]
    assert len(set(theirs)) == len(theirs) == RECIPES_OF_TEXTATTACK
    assert len(set(others)) == len(others) == ATTACKERS_OF_OPENATTACK


def test_rows_name_recipes_and_tests_that_exist(parity: Any) -> None:
    known = {recipe.full_name for recipe in all_recipes()}
    for row in (*parity.TEXTATTACK, *parity.OPENATTACK):
        assert (row.how in ("absent", "lost")) == (not row.ours), row.name
        assert not row.ours or row.ours in known, f"{row.name}: {row.ours}"
        assert not row.tests or (ROOT / "tests" / row.tests).is_file(), row.tests
        assert row.how != "cases" or (row.tests and row.why), f"{row.name} is not pinned"
        assert row.ours or row.why, f"{row.name} does not say why it is not here"


def test_figures_belong_to_the_rows(parity: Any) -> None:
    measured = {row.name: row.ours for row in parity.TEXTATTACK if row.measured}
    for name, figures in parity.read_results().items():
        assert measured.get(name) == figures["ours"], f"{name} was measured with another recipe"


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [((0.5, 0.4, 0.6), (0.7, 0.6, 0.8), True), ((0.5, 0.4, 0.6), (0.7, 0.61, 0.8), False)],
)
def test_intervals_that_touch_overlap(
    parity: Any, first: tuple[float, ...], second: tuple[float, ...], meet: bool
) -> None:
    assert parity.overlap(first, second) is meet
