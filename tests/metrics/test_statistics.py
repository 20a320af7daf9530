from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unfooled.rates import (
    correlation_interval,
    f1_interval,
    mcnemar,
    mean_interval,
    paired_difference,
    student,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # The four examples of Newcombe (1998), method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_wilson_known_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation_and_holds_the_rate(case: tuple[int, int]) -> None:
    successes, n = case
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    for end in (low, high):
        assert (end - successes / n) ** 2 == pytest.approx(
            1.959964**2 * end * (1 - end) / n, rel=1e-4, abs=1e-9
        )


def test_wilson_of_nothing_and_of_nonsense() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    for wrong in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError):
            wilson(*wrong)
    narrow, wide = wilson(5, 10, 0.5), wilson(5, 10, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_interval_of_a_mean_is_students_where_nothing_is_skewed() -> None:
    sample = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    half = 2.364624 * 2.449490 / math.sqrt(8)  # t of 7 degrees of freedom, standard deviation of the sample
    assert mean_interval(sample) == pytest.approx((4.5 - half, 4.5 + half), abs=1e-5)


def test_a_long_tail_pushes_the_interval_to_its_side_and_bounds_hold_it() -> None:
    sample = [1.0] * 15 + [2.0, 3.0, 5.0, 9.0, 40.0]
    mean = sum(sample) / len(sample)
    low, high = mean_interval(sample)
    assert high - mean > 2 * (mean - low)
    mirrored = mean_interval([-value for value in sample])
    assert mirrored == pytest.approx((-high, -low))
    assert mean_interval([0.0] * 19 + [50.0], within=(0.0, 5.0)) == (0.0, 5.0)


def test_the_mean_of_nothing_one_and_equal_values() -> None:
    assert all(math.isnan(end) for end in mean_interval([]))
    assert mean_interval([2.5]) == (2.5, 2.5)
    assert mean_interval([4, 4, 4]) == (4.0, 4.0)


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.7062), (2, 4.30265), (7, 2.36462), (30, 2.04227), (60, 2.00030), (200, 1.97190)]
)
def test_student_known_values(freedom: int, t: float) -> None:
    assert student(freedom) == pytest.approx(t, abs=1e-4)


def test_macro_f1_never_passes_for_certain() -> None:
    """A table without a hit, or without an error, says no more than its rows do."""
    none, all_ = np.array([[0, 20], [20, 0]]), np.array([[20, 0], [0, 20]])
    assert f1_interval(none)[0] == 0.0
    assert 0.05 < f1_interval(none)[1] < 0.15
    assert f1_interval(all_) == pytest.approx((1 - f1_interval(none)[1], 1.0))
    assert f1_interval(np.zeros((2, 2), dtype=np.int64)) == (0.0, 1.0)


def test_the_interval_of_a_rank_correlation() -> None:
    low, high = correlation_interval(0.6, 50)
    assert (low, high) == pytest.approx((0.36496, 0.76315), abs=1e-5)
    assert correlation_interval(0.9, 3) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (1, 5, 2 * (1 + 6) / 64),
        (10, 0, 2 / 1024),
        (3, 3, 1.0),
        (600, 500, 0.00281954499),  # by scipy's exact binomial test, as the next
        (4800, 5100, 0.00265348451),
    ],
)
def test_mcnemar_by_hand(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p, rel=1e-8)
    assert mcnemar(second, first) == pytest.approx(p, rel=1e-8)


def test_mcnemar_of_nonsense() -> None:
    with pytest.raises(ValueError):
        mcnemar(-1, 2)


def test_paired_difference_known_values() -> None:
    # Fagerland, Lydersen and Laake (2013): airway hyper-responsiveness, 21 children, Tango's interval.
    sample = [1.0] + [-1.0] * 7 + [0.0] * 13
    assert paired_difference(sample) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert paired_difference([-value for value in sample]) == pytest.approx((0.026, 0.517), abs=5e-4)


def test_paired_difference_of_shares_by_hand() -> None:
    # 24 halves for the first, 4 for the second, 172 for none; two pseudo-pairs make the centre 10/202.
    sample = [0.5] * 24 + [-0.5] * 4 + [0.0] * 172
    half = 1.959964 * math.sqrt((7 + 1) / 202 - (10 / 202) ** 2) / math.sqrt(202)
    assert paired_difference(sample) == pytest.approx((10 / 202 - half, 10 / 202 + half), abs=1e-6)


def test_a_few_equal_pairs_are_no_certainty() -> None:
    low, high = paired_difference([0.0] * 5)
    assert low < -0.25
    assert high > 0.25
    assert paired_difference([]) == (-1.0, 1.0)
    assert paired_difference([1.0] * 4)[1] == 1.0
    low, high = paired_difference([0.0] * 10_000)
    assert high - low < 0.001
