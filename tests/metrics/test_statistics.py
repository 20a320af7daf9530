from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unfooled.rates import (
    bootstrap_mean,
    mcnemar,
    paired_difference,
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


@pytest.mark.parametrize("few", [False, True])
def test_bootstrap_agrees_with_the_normal_interval(few: bool) -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 20, 3000).astype(float) if few else rng.exponential(3.0, 3000)
    low, high = bootstrap_mean(values, seed=1)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), rel=0.02)
    assert (low, high) == bootstrap_mean(values, seed=1)
    assert (low, high) != bootstrap_mean(values, seed=2)


def test_bootstrap_of_nothing_one_and_equal_values() -> None:
    assert all(math.isnan(end) for end in bootstrap_mean([]))
    assert bootstrap_mean([2.5]) == (2.5, 2.5)
    assert bootstrap_mean([4, 4, 4]) == (4.0, 4.0)


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


def test_paired_difference_by_hand() -> None:
    # 12 pairs for the first, 2 for the second, 86 for none; two pseudo-pairs make the centre 10/102.
    sample = [1.0] * 12 + [-1.0] * 2 + [0.0] * 86
    assert paired_difference(sample) == pytest.approx((0.02609, 0.16999), abs=5e-5)
    assert paired_difference([-value for value in sample]) == pytest.approx((-0.16999, -0.02609), abs=5e-5)


def test_a_few_equal_pairs_are_no_certainty() -> None:
    low, high = paired_difference([0.0] * 5)
    assert low < -0.25
    assert high > 0.25
    assert paired_difference([]) == (-1.0, 1.0)
    assert paired_difference([1.0] * 4)[1] == 1.0
    low, high = paired_difference([0.0] * 10_000)
    assert high - low < 0.001


def test_a_bootstrap_of_differences_is_one_of_pairs() -> None:
    rng = np.random.default_rng(3)
    hard = rng.random(800) < 0.5
    first = hard.astype(float)
    second = np.where(rng.random(800) < 0.1, 0.0, first)
    low, high = bootstrap_mean(first - second, seed=1)
    assert low <= float((first - second).mean()) <= high
    apart = bootstrap_mean(first)[1] - bootstrap_mean(first)[0]
    assert high - low < apart  # what both share cancels out
    assert (low, high) == pytest.approx(paired_difference(first - second), abs=0.01)
