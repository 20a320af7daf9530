"""How often the intervals hold the truth: the quick part of `bench/coverage.py`, with its seeds."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfooled.metrics.calibration import threshold_interval
from unfooled.metrics.decision_intervals import anytime_interval, exact_interval
from unfooled.rates import area_interval

TRIALS = 1000
NOISE = 0.015  # two standard errors of a share near 95 % over so many trials


@pytest.fixture(scope="module")
def coverage() -> Any:
    """The bench's own functions: what the documentation shows and what is tested here are one."""
    path = Path(__file__).parents[2] / "bench" / "coverage.py"
    spec = importlib.util.spec_from_file_location("bench_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("n", "least"), [(20, 0.925), (50, 0.92), (200, 0.93)])
def test_rates(coverage: Any, n: int, least: float) -> None:
    """Counted exactly. Of few rows a rate comes in steps, and so does its coverage, right on average."""
    found = coverage.rates(n)
    assert 0.945 < found.value < 0.96
    assert found.worst >= least


def test_paired_decisions(coverage: Any) -> None:
    found = coverage.pairs(20)
    assert 0.94 < found.value < 0.97
    assert found.worst >= 0.93


@pytest.mark.parametrize("n", [20, 50])
@pytest.mark.parametrize(
    "name",
    [
        "normal",
        "exponential",
        "lognormal, spread 0.5 (queries)",
        "counts from 1 (words changed)",
        "counts, half of them 0",
        "similarities near 1",
        "paired differences, skewed",
    ],
)
def test_means(coverage: Any, name: str, n: int) -> None:
    assert 0.93 - NOISE <= coverage.mean(name, n, TRIALS).value <= 0.97 + NOISE


def test_a_very_long_tail_costs_two_points_of_twenty_rows(coverage: Any) -> None:
    """What the documentation admits: twenty numbers do not show a tail that half of the mean comes from."""
    assert 0.905 <= coverage.mean("lognormal, spread 1", 20, TRIALS).value <= 0.97


@pytest.mark.parametrize("n", [20, 50])
@pytest.mark.parametrize("case", [(2, 0.5, 1.0), (2, 0.8, 1.0), (2, 0.95, 1.0), (3, 0.85, 0.6)])
def test_macro_f1(coverage: Any, case: tuple[int, float, float], n: int) -> None:
    assert 0.93 - NOISE <= coverage.f1(case, n, TRIALS).value <= 0.97 + NOISE


def test_rank_correlations(coverage: Any) -> None:
    assert 0.93 - NOISE <= coverage.correlation(0.5, 20, TRIALS).value <= 0.97 + NOISE


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_scores_of_translations(coverage: Any, metric: str) -> None:
    """A percentile bootstrap of 20 sentences held 91 to 92 %."""
    pytest.importorskip("sacrebleu", reason="the extra `translation` is not installed")
    for found in coverage.translation(metric, 20, 300):
        assert 0.93 - 2 * NOISE <= found.value <= 0.97 + 2 * NOISE, found


@pytest.mark.parametrize(
    ("case", "n"), [((0.5, 0.5), 20), ((0.9, 0.5), 50), ((0.5, 0.1), 50), ((0.9, 0.1), 200)]
)
def test_calibrated_thresholds(coverage: Any, case: tuple[float, float], n: int) -> None:
    assert 0.93 - NOISE <= coverage.threshold(*case, n, TRIALS).value <= 0.97 + NOISE


@pytest.mark.parametrize("doubt", [0.0, 0.6])
def test_accuracy_by_valid_texts_with_the_doubt_of_the_judge(coverage: Any, doubt: float) -> None:
    assert 0.93 - NOISE <= coverage.by_valid_texts(doubt, 50, 400).value <= 0.97 + NOISE


def test_the_gate_by_valid_texts_holds_its_error_whatever_the_judge_is_off(coverage: Any) -> None:
    assert coverage.judged_gate(0.6, 200, 20, every=50) == 0.0  # 0 of 800 in the bench


@pytest.mark.parametrize("truth", [0.7, 0.9])
def test_areas_under_a_judges_curve(coverage: Any, truth: float) -> None:
    assert 0.93 - 2 * NOISE <= coverage.area(truth, 20, 200).value <= 0.97 + 2 * NOISE


def test_texts_of_one_original_widen_the_interval_of_an_area() -> None:
    low, high = area_interval(0.9, 30, 30)
    assert area_interval(0.9, 30, 30, variance=0.004)[0] < low < 0.9 < high < 1
    assert area_interval(1.0, 10, 10)[0] < 0.9
    assert all(math.isnan(end) for end in area_interval(math.nan, 0, 10))


def test_few_pairs_beyond_a_threshold_leave_the_scale_open() -> None:
    """Of 20 pairs two pass: how far up the other encoder's threshold may lie nobody has seen."""
    ours = np.linspace(0.05, 1.0, 20)
    low, high = threshold_interval(0.93, ours, ours**2, "cosine")
    assert high == 1.0
    assert low < 0.9**2


@pytest.mark.parametrize("bound", [0.1, 0.5, 0.6, 0.9])
def test_the_gate_passes_wrongly_in_at_most_one_of_forty_runs_however_often_one_looks(
    coverage: Any, bound: float
) -> None:
    """A true rate right at the bound and a look after each of 500 rows, counted exactly."""
    needed = coverage.passing(coverage.anytime_passes, bound, 500)
    assert 0.0 < coverage.passed_by(needed, bound)[-1] <= 0.025


def test_what_is_followed_is_what_the_gate_does(coverage: Any) -> None:
    for hits, n in ((3, 4), (31, 40), (33, 40), (66, 100), (74, 100)):
        for bound in (0.3, 0.5, 0.6):
            given = bound, hits, n - hits
            assert coverage.exact_passes(*given) == (exact_interval(hits, n)[0] >= bound)
            assert coverage.anytime_passes(*given) == (anytime_interval(hits, n)[0] >= bound)


def test_looking_again_and_again_spoils_an_interval_for_one_look(coverage: Any) -> None:
    assert coverage.passed_by(coverage.passing(coverage.naive_passes, 0.6, 500), 0.6)[-1] > 0.14


@pytest.mark.parametrize("bound", [0.1, 0.5, 0.9])
def test_one_look_at_a_size_fixed_before_errs_as_rarely(coverage: Any, bound: float) -> None:
    needed = coverage.passing(coverage.exact_passes, bound, 100)
    assert coverage.passes_once(needed, bound).max() <= 0.025


def test_the_price_of_looking_is_two_thirds_more_rows(coverage: Any) -> None:
    """At 60 % for a bound of 50 %: a gate of one look passes four of five runs at about 200 rows."""
    once = coverage.passes_once(coverage.passing(coverage.exact_passes, 0.5, 250), 0.6)
    again = coverage.passed_by(coverage.passing(coverage.anytime_passes, 0.5, 400), 0.6, every=10)
    assert once[209] > 0.8
    assert again[349] > 0.8
