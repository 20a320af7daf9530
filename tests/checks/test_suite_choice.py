"""How a suite is chosen from what every attack found and asked, by arithmetic."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from doc_pages import ROOT


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path: Path = ROOT / "bench" / "suite.py"
    spec = importlib.util.spec_from_file_location("bench_suite", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_suite"] = module  # a dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def runs(bench: ModuleType, **attacks: tuple[set[int], int]) -> dict[str, Any]:
    """One model with rows 0 to 9; each attack breaks some and asks as much of every row."""
    found = {
        name: bench.Found(frozenset(broken), dict.fromkeys(range(10), queries))
        for name, (broken, queries) in attacks.items()
    }
    return {"model": found}


def test_what_others_find_as_well_is_not_needed(bench: ModuleType) -> None:
    measured = runs(bench, wide=({0, 1, 2, 3, 4, 5}, 10), part=({0, 1}, 30), other=({8}, 20))
    assert bench.reached(measured, ["wide", "part", "other"]) == 7
    order = bench.choose(measured)
    assert order == ["wide", "other"]
    # wide asks 10 of ten rows, other 20 of the four that are left.
    assert bench.cost(measured, order) == 10 * 10 + 4 * 20
    assert bench.full_cost(measured) == 10 * (10 + 30 + 20)


def test_a_cheap_attack_joins_where_it_saves_more_than_it_costs(bench: ModuleType) -> None:
    measured = runs(bench, strong=(set(range(10)), 100), cheap=({0, 1, 2, 3, 4}, 2))
    assert bench.choose(measured) == ["cheap", "strong"]
    assert bench.cost(measured, ["cheap", "strong"]) == 10 * 2 + 5 * 100
    dear = runs(bench, strong=(set(range(10)), 100), cheap=({0}, 20))
    assert bench.choose(dear) == ["strong"]


def test_a_share_of_what_is_found_is_enough(bench: ModuleType) -> None:
    measured = runs(bench, most=(set(range(9)), 10), rest=({9}, 1000))
    assert bench.choose(measured, 0.9) == ["most"]
    assert set(bench.choose(measured, 0.99)) == {"most", "rest"}
    told = bench.summary(measured, ["most"])
    assert told["found"] == 0.9
    assert told["attacks"]["rest"]["alone"] == 1


def test_a_suite_is_counted_on_the_rows_on_which_it_was_not_chosen(bench: ModuleType) -> None:
    # `even` breaks only rows that stand first, third …, so a choice on these knows nothing of the others.
    measured = runs(bench, even=({0, 2, 4, 6, 8}, 10), odd=({1, 3, 5}, 30))
    first, second = bench.halves(measured)
    assert sorted(first["model"]["even"].queries) == [0, 2, 4, 6, 8]
    assert first["model"]["odd"].broken == frozenset()
    assert second["model"]["odd"].broken == {1, 3, 5}
    on_second, on_first = bench.verified(measured, 0.99, [])
    assert on_second["chosen"]["suite"] == ["even"]
    assert (on_second["chosen"]["broken"], on_second["chosen"]["broken by all"]) == (0, 3)
    assert on_second["chosen"]["queries a row"] == [10, 10, 10]
    assert on_first["chosen"]["suite"] == ["odd"]
    assert on_first["chosen"]["share of queries"] == 30 / (10 + 30)


def test_a_row_costs_what_was_asked_until_it_fell(bench: ModuleType) -> None:
    measured = runs(bench, wide=({0, 1, 2, 3, 4, 5}, 10), other=({8}, 20))
    assert bench.row_costs(measured, ["wide", "other"]) == [10] * 6 + [30] * 4
    told = bench.counted(measured, ["wide", "unknown"])
    assert told["not measured"] == ["unknown"]
    assert told["found"][0] == 6 / 7
    assert told["found"][1] < 6 / 7 < told["found"][2]


def test_rows_on_which_a_suite_was_chosen_can_be_left_out(bench: ModuleType) -> None:
    measured = runs(bench, wide=({0, 1, 2, 3, 4, 5}, 10), other=({8}, 20))
    told = bench.counted(bench.without(measured, {0, 1, 8, 9}), ["wide"])
    assert (told["rows"], told["broken"], told["broken by all"]) == (6, 4, 4)
