"""Accuracy under attack by valid texts: what remains when a success counts as far as a reader accepts it.

A success counts with its probability of being valid. If the judge is calibrated this is the expected share of
rows that a valid text breaks; to count those above a threshold is not, as its two kinds of mistakes need not
cancel. The interval carries two uncertainties: of the rows, as in any rate, and of the judge, whose numbers
come from few readers: they are drawn from what the judgements allow, the same draw for all rows of a run.

The attack stopped at the first text that the model got wrong. Where that one is not valid it might have found
a valid one later, so the number is an upper bound on the accuracy against a search for valid texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unfooled.errors import RunFileError
from unfooled.metrics.decision_intervals import ERROR
from unfooled.metrics.validity.model import Judge, Row, Variant
from unfooled.metrics.validity.regression import Values
from unfooled.runs.file import JUDGE, REMARK, RunFile

VALID = "valid"  # the measure: P(valid) of a success; beside it, valid/NAME is what it was made of
DRAWS = 2000
_PORTION = 1000  # rows whose draws are held at a time


@dataclass(frozen=True, slots=True)
class Validity:
    """What a judged run says besides: every value with its 95 % interval, nan where there is nothing."""

    accuracy: tuple[float, float, float]  # under attack by valid texts: value, low, high
    share: tuple[float, float, float]  # of the successes that are valid
    n: int  # rows in the accuracy
    judged: int  # successes with a probability
    unjudged: int  # successes without: the run went on since
    variant: str
    judge: str  # digest of its numbers
    doubt: tuple[float, float] | None  # the accuracy as the judge's numbers alone leave it possible

    def to_dict(self) -> dict[str, Any]:
        def three(values: tuple[float, float, float]) -> dict[str, float | None]:
            return {
                name: None if math.isnan(value) else value
                for name, value in zip(("value", "low", "high"), values, strict=True)
            }

        return {
            "accuracy_under_valid_attack": {**three(self.accuracy), "n": self.n},
            "valid_share_of_successes": {**three(self.share), "n": self.judged},
            "unjudged": self.unjudged,
            "variant": self.variant,
            "judge": self.judge,
        }


def validity_of(run: RunFile, right: int, fallen: Sequence[int], n: int) -> Validity | None:
    """Of a run that was judged, else None: `right` rows withstood, those with the keys `fallen` did not."""
    found = _judge_of(run)
    if found is None:
        return None
    judge, variant = found
    rows = list(_measured(run, variant, fallen).values())
    return estimate(variant, rows, right, n, unjudged=len(fallen) - len(rows), digest=judge.digest)


def draws_of(run: RunFile, keys: Sequence[int]) -> dict[int, Values]:
    """P(valid) of the texts found for these keys under each of `DRAWS` sets of the judge's numbers.

    The same sets for every run that this judge has judged. Empty where nobody has.
    """
    found = _judge_of(run)
    if found is None:
        return {}
    rows = _measured(run, found[1], keys)
    if not rows:
        return {}
    draws = found[1].valid_draws(list(rows.values()), DRAWS, seed=0)
    return {key: draws[:, place] for place, key in enumerate(rows)}


def _judge_of(run: RunFile) -> tuple[Judge, Variant] | None:
    remark = run.header.get(REMARK + JUDGE)
    if not remark:
        return None
    try:
        judge = Judge.from_dict(remark["judge"], where=str(run.path))
        return judge, judge.variant(str(remark["variant"]))
    except (KeyError, TypeError) as error:
        raise RunFileError(
            f"{run.path}: what it says of its judge is damaged ({error})",
            "judge it again: unfooled judge RUN",
        ) from error


def _measured(run: RunFile, variant: Variant, keys: Sequence[int]) -> dict[int, Row]:
    """What was measured of each text for which all was."""
    columns = {name: run.measured(f"{VALID}/{name}") for name in variant.features}
    return {
        key: {name: column[key] for name, column in columns.items()} for key in keys if complete(columns, key)
    }


def estimate(
    variant: Variant, rows: Sequence[Row], right: int, n: int, *, unjudged: int = 0, digest: str = ""
) -> Validity:
    """From the measures of the successes. One that was not judged counts as valid."""
    chances = variant.valid(rows)
    # The same numbers of the judge for every portion: they do not depend on the rows.
    portions = (rows[start : start + _PORTION] for start in range(0, len(rows), _PORTION))
    sums = sum(
        (variant.valid_draws(portion, DRAWS, seed=0).sum(axis=1) for portion in portions), np.zeros(DRAWS)
    )
    withstood = np.concatenate([np.ones(right), np.zeros(n - right - len(rows))])
    standing = right + len(rows) - sums
    return Validity(
        mean_with_interval(np.append(withstood, 1.0 - chances), standing, n),
        mean_with_interval(chances, sums, len(rows)),
        n,
        len(rows),
        unjudged,
        variant.name,
        digest,
        doubt_of(standing, n),
    )


def doubt_of(sums: Values, n: int) -> tuple[float, float] | None:
    """The mean of `n` rows by the judge's numbers alone: beyond either end in half of `ERROR` of the draws.

    The other half is for the choice of rows: a decision errs in no more than both together.
    """
    if not n:
        return None
    low, high = np.quantile(sums / n, [ERROR / 2, 1 - ERROR / 2])
    return float(low), float(high)


def mean_with_interval(values: Values, sums: Values, n: int) -> tuple[float, float, float]:
    """The mean of values in [0, 1], and 95 % of what sampling and the judge's numbers leave possible.

    For each draw of the judge, the rows' own uncertainty is that of a share (Jeffreys), with as many rows as
    a share of this variance would need: probabilities vary less than yes and no.
    """
    if not n:
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    spread = float(values.var())
    alike = n * mean * (1.0 - mean) / spread if spread > 1e-12 and 0.0 < mean < 1.0 else float(n)
    size = min(max(float(n), alike), 10.0 * n)
    means = sums / n
    rng = np.random.default_rng(1)
    possible = rng.beta(means * size + 0.5, (1.0 - means) * size + 0.5)
    low, high = np.percentile(possible, [2.5, 97.5])
    return mean, min(float(low), mean), max(float(high), mean)


def columns_of(row: Row, chance: float, key: int) -> list[tuple[str, int, float]]:
    """What is kept of one success: its probability, and the measures it comes from."""
    return [(VALID, key, round(chance, 6)), *((f"{VALID}/{name}", key, value) for name, value in row.items())]


def complete(columns: Mapping[str, Mapping[int, float]], key: int) -> bool:
    return all(key in column for column in columns.values())
