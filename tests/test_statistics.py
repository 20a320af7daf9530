from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unfooled.evaluation.statistics import bootstrap_mean, wilson


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
