"""Numbers that are counted say what the same numbers say that are held."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unfooled.metrics.summary import COUNTS, PERCENTILES, Mean
from unfooled.metrics.tally import Tally

DRAW = np.random.default_rng(0)
SAMPLES = {
    "one": [3.0],
    "two": [3.0, 8.0],
    "queries": (1 + DRAW.geometric(0.02, 50_001)).tolist(),
    "shares": (DRAW.integers(1, 6, 4_000) / DRAW.integers(5, 60, 4_000)).tolist(),
    "all different": DRAW.normal(size=40_000).tolist(),
    "equal": [0.25] * 20_000,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_counted_numbers_say_what_held_ones_say(name: str) -> None:
    numbers = SAMPLES[name]
    tally = Tally(numbers)
    assert len(tally) == len(numbers)
    for at in PERCENTILES:
        assert tally.quantile(at / 100) == np.percentile(numbers, at)
    held, counted = Mean.of(numbers, COUNTS), Mean.of(tally, COUNTS)
    assert (counted.n, counted.median) == (held.n, held.median)
    for side in ("value", "low", "high"):
        assert getattr(counted, side) == pytest.approx(getattr(held, side), rel=1e-12, abs=1e-15)
    if name == "queries":  # sums of whole numbers are exact
        assert counted.value == held.value


def test_numbers_that_repeat_take_no_memory() -> None:
    tally = Tally(SAMPLES["queries"] * 4)
    values, times = tally.counted
    assert values.tolist() == sorted(set(SAMPLES["queries"]))
    assert times.sum() == len(tally) == 4 * len(SAMPLES["queries"])


def test_no_number_at_all() -> None:
    assert not Tally()
    assert math.isnan(Tally().quantile(0.5))
    assert math.isnan(Mean.of(Tally()).value)
