"""How often each interval of the package holds the truth, and how often the gate passes what it should not.

    python bench/coverage.py [--trials N] [--rows N]

Rates and paired decisions are counted exactly: every sample there can be, weighted by its chance. Means, F1,
correlations, scores of translations, calibrated thresholds and what a judge says are simulated with fixed
seeds. The gate is followed row by row, with a look after each; where a judge has a say, every ten rows.
`rate_intervals.py` compares other intervals of a rate.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfooled.checks.gate import bounded
from unfooled.metrics.bleu import METRICS, Metric, score_intervals, scores_of, statistics
from unfooled.metrics.calibration import threshold_interval
from unfooled.metrics.decision_intervals import ERROR, anytime_interval, beta_below, log_evidence
from unfooled.metrics.summary import Rate
from unfooled.metrics.validity.accuracy import DRAWS, doubt_of, mean_with_interval
from unfooled.metrics.validity.regression import probability
from unfooled.metrics.validity.validation import KEEP, called_invalid, figure
from unfooled.rates import (
    correlation_interval,
    f1_interval,
    mean_interval,
    paired_difference,
    wilson,
)

SIZES = (20, 50, 200)
RATES = tuple(round(0.02 + 0.02 * step, 2) for step in range(49))
DISCORDANT = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # share of pairs that only one side has right
BOUNDS = (0.1, 0.3, 0.5, 0.6, 0.8, 0.9)

Sample = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Sample]
Interval = Callable[[int, int], tuple[float, float]]
Passes = Callable[[float, int, int], bool]  # a bound, hits and misses


class Coverage(NamedTuple):
    """Of one kind of number and one distribution, at one size."""

    kind: str
    distribution: str
    n: int
    value: float  # over several distributions their mean
    worst: float
    share: float  # of the distributions, how many are covered in 93 to 97 of 100 cases


def many(kind: str, distribution: str, n: int, found: list[float]) -> Coverage:
    """Of several distributions at once."""
    inside = sum(0.93 <= value <= 0.97 for value in found)
    return Coverage(kind, distribution, n, sum(found) / len(found), min(found), inside / len(found))


# -- rates and pairs, exactly ------------------------------------------------------------------------------


def _log_choose(n: int, *parts: int) -> float:
    return math.lgamma(n + 1) - sum(math.lgamma(part + 1) for part in (*parts, n - sum(parts)))


def rates(n: int, interval: Interval = wilson) -> Coverage:
    ends = [interval(hits, n) for hits in range(n + 1)]
    found = []
    for rate in RATES:
        chances = (
            math.exp(_log_choose(n, hits) + hits * math.log(rate) + (n - hits) * math.log(1 - rate))
            for hits in range(n + 1)
        )
        found.append(
            sum(chance for chance, (low, high) in zip(chances, ends, strict=True) if low <= rate <= high)
        )
    return many("rate", "p = .02 to .98", n, found)


def pairs(n: int) -> Coverage:
    """Where at least four differing pairs are expected: of fewer nothing is certain, and all is covered."""
    cases = [(up, down) for up, down in product(DISCORDANT, repeat=2) if n * (up + down) >= 4]
    found = [0.0] * len(cases)
    for up in range(n + 1):
        for down in range(n + 1 - up):
            ways = _log_choose(n, up, down)
            chances = [
                math.exp(ways + up * math.log(p) + down * math.log(q) + (n - up - down) * math.log(1 - p - q))
                for p, q in cases
            ]
            if max(chances) < 1e-9:
                continue
            low, high = paired_difference([1.0] * up + [-1.0] * down + [0.0] * (n - up - down))
            for place, (p, q) in enumerate(cases):
                found[place] += chances[place] if low <= p - q <= high else 0.0
    return many("paired difference of decisions", "1 to 40 % differ either way", n, found)


# -- means, by simulation ----------------------------------------------------------------------------------


def _lognormal(spread: float) -> Draw:
    return lambda rng, n: rng.lognormal(0.0, spread, n)


def _with_zeros(zeros: float, mean: float) -> Draw:
    return lambda rng, n: (rng.random(n) >= zeros) * rng.geometric(1 / mean, n).astype(np.float64)


MEANS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "lognormal, spread 0.5 (queries)": (_lognormal(0.5), math.exp(0.125)),
    "lognormal, spread 1": (_lognormal(1.0), math.exp(0.5)),
    "counts from 1 (words changed)": (lambda rng, n: 1.0 + rng.poisson(2.0, n), 3.0),
    "counts, half of them 0": (_with_zeros(0.5, 3.0), 1.5),
    "counts, 70 % of them 0": (_with_zeros(0.7, 3.0), 0.9),
    "similarities near 1": (lambda rng, n: rng.beta(9.0, 1.0, n), 0.9),
    "paired differences, skewed": (
        lambda rng, n: rng.lognormal(0.0, 0.7, n) - rng.exponential(1.0, n),
        math.exp(0.245) - 1.0,
    ),
    "constant": (lambda rng, n: np.full(n, 3.0), 3.0),
}


def mean(name: str, n: int, trials: int) -> Coverage:
    draw, truth = MEANS[name]
    rng = np.random.default_rng([1, n])
    held = 0
    for _ in range(trials):
        low, high = mean_interval(draw(rng, n))
        held += low <= truth <= high
    value = held / trials
    return many("mean", name, n, [value])


# -- macro F1 and correlations -----------------------------------------------------------------------------

# classes, accuracy, how much rarer each class is than the one before
TABLES = (
    (2, 0.5, 1.0), (2, 0.8, 1.0), (2, 0.95, 1.0), (2, 0.85, 0.4),
    (3, 0.7, 1.0), (3, 0.85, 0.6), (4, 0.1, 1.0),
)  # fmt: skip


def f1(case: tuple[int, float, float], n: int, trials: int) -> Coverage:
    classes, accuracy, rarer = case
    sizes = rarer ** np.arange(classes)
    rows = np.full((classes, classes), (1 - accuracy) / (classes - 1))
    np.fill_diagonal(rows, accuracy)
    shares = rows * (sizes / sizes.sum())[:, None]
    hits = np.diagonal(shares)
    truth = float(np.mean(2 * hits / (shares.sum(axis=0) + shares.sum(axis=1))))
    rng = np.random.default_rng([2, n])
    drawn = rng.multinomial(n, shares.ravel(), size=trials).reshape(-1, classes, classes)
    ends = [f1_interval(table) for table in drawn]
    value = sum(low <= truth <= high for low, high in ends) / trials
    balance = "balanced" if rarer == 1.0 else f"each {rarer:g} of the one before"
    return many("macro F1", f"{classes} classes, {accuracy:.0%} right, {balance}", n, [value])


def correlation(strength: float, n: int, trials: int) -> Coverage:
    rng = np.random.default_rng([3, n])
    truth = 6 / math.pi * math.asin(strength / 2)  # Spearman's, of two normal variables
    held = 0
    for _ in range(trials):
        first, second = rng.normal(size=(2, n))
        second = strength * first + math.sqrt(1 - strength**2) * second
        ranks = [values.argsort().argsort() for values in (first, second)]
        low, high = correlation_interval(float(np.corrcoef(ranks)[0, 1]), n)
        held += low <= truth <= high
    return many("rank correlation", f"normal, {strength:g}", n, [held / trials])


# -- scores of translations, and thresholds that mean the same ---------------------------------------------

_VOCABULARY, _SENTENCES = 2000, 2000


@lru_cache
def sentences() -> tuple[list[str], list[str], list[str]]:
    """References, translations of mixed quality, and what became of these under an attack."""
    rng = np.random.default_rng(4)
    often = 1.0 / np.arange(1, _VOCABULARY + 1)
    words = ["".join(rng.choice(list("etaoinshrdlu"), size=rng.integers(2, 9))) for _ in range(_VOCABULARY)]

    def some(count: int) -> list[str]:
        return [words[i] for i in rng.choice(_VOCABULARY, size=count, p=often / often.sum())]

    def worse(sentence: list[str], share: float) -> list[str]:
        """So many words are other ones, and a few are lost."""
        kept = [word for word in sentence if rng.random() >= share / 4] or sentence[:1]
        return [
            other if rng.random() < share else word for word, other in zip(kept, some(len(kept)), strict=True)
        ]

    references = [some(max(4, int(rng.lognormal(2.4, 0.45)))) for _ in range(_SENTENCES)]
    before = [worse(sentence, float(rng.beta(1.2, 2.5))) for sentence in references]
    after = [
        worse(sentence, float(rng.beta(1, 4))) if rng.random() < 0.7 else sentence for sentence in before
    ]
    told = [[" ".join(sentence) for sentence in side] for side in (references, before, after)]
    return told[0], told[1], told[2]


def translation(metric: Metric, n: int, trials: int) -> Iterator[Coverage]:
    """Sentences drawn from many, whose score is the truth."""
    references, before, after = sentences()
    earlier, later = (statistics(side, references, metric) for side in (before, after))
    first, second = scores_of(np.stack([earlier.sum(axis=0), later.sum(axis=0)]), metric)
    truths = first, second, second - first
    rng = np.random.default_rng([5, n])
    held = np.zeros(3)
    for _ in range(trials):
        drawn = rng.integers(len(earlier), size=n)
        _, ends = score_intervals(earlier[drawn], later[drawn], metric)
        held += [low <= truth <= high for truth, (low, high) in zip(truths, ends, strict=True)]
    for what, share in zip(("before", "after", "change"), held / trials, strict=True):
        yield many(metric, what, n, [float(share)])


def threshold(agreement: float, passing: float, n: int, trials: int) -> Coverage:
    """Two encoders whose similarities are correlated; the truth is the same share of both."""
    rng = np.random.default_rng([6, n])
    cut = NormalDist().inv_cdf(1 - passing)
    held = told = 0
    for _ in range(trials):
        ours, theirs = rng.normal(size=(2, n))
        theirs = agreement * ours + math.sqrt(1 - agreement**2) * theirs
        if 0 < (ours >= cut).sum() < n:  # else there is no calibration
            low, high = threshold_interval(cut, ours, theirs, "cosine")
            # On another scale than a cosine's, whose ends stand for what was not seen.
            low, high = (-math.inf if low == -1.0 else low, math.inf if high == 1.0 else high)
            told += 1
            held += low <= cut <= high
    return many("calibrated threshold", f"correlation {agreement:g}, {passing:.0%} pass", n, [held / told])


# -- what a judge says -------------------------------------------------------------------------------------

_WITHSTOOD, _WRONG = 0.1, 0.25  # shares of rows; the others fell
_MIDDLE, _SPREAD = -1.0, 1.5  # log-odds that a text found is valid
_JUDGES = 400  # draws of a judge, where thousands would take too long


@lru_cache
def _true_accuracy() -> float:
    many_texts = _MIDDLE + _SPREAD * np.random.default_rng(7).normal(size=1_000_000)
    return _WITHSTOOD + (1 - _WITHSTOOD - _WRONG) * float(1 - probability(many_texts).mean())


def by_valid_texts(doubt: float, n: int, trials: int) -> Coverage:
    """A judge whose log-odds are all off by as much as it knows that they may be (`doubt`, one deviation)."""
    rng = np.random.default_rng([7, n])
    truth = _true_accuracy()
    held = 0
    for _ in range(trials):
        withstood, wrong, fallen = rng.multinomial(n, (_WITHSTOOD, _WRONG, 1 - _WITHSTOOD - _WRONG))
        said = _MIDDLE + _SPREAD * rng.normal(size=fallen) + doubt * rng.normal()
        others = probability(said[None, :] + doubt * rng.normal(size=(DRAWS, 1)))
        stand = np.concatenate([np.ones(withstood), np.zeros(wrong), 1 - probability(said)])
        _, low, high = mean_with_interval(stand, withstood + fallen - others.sum(axis=1), n)
        held += low <= truth <= high
    return many("accuracy by valid texts", f"judge off by {doubt:g}", n, [held / trials])


def valid_share(doubt: float, n: int, trials: int) -> Coverage:
    """Of `n` successes, how many are valid; the judge as in `by_valid_texts`."""
    rng = np.random.default_rng([10, n])
    truth = (1 - _WRONG - _true_accuracy()) / (1 - _WITHSTOOD - _WRONG)
    held = 0
    for _ in range(trials):
        said = _MIDDLE + _SPREAD * rng.normal(size=n) + doubt * rng.normal()
        others = probability(said[None, :] + doubt * rng.normal(size=(DRAWS, 1)))
        _, low, high = mean_with_interval(probability(said), others.sum(axis=1), n)
        held += low <= truth <= high
    return many("valid, of the successes", f"judge off by {doubt:g}", n, [held / trials])


def share_called_invalid(apart: float, n: int, trials: int) -> Coverage:
    """Of `n` texts of either kind with normal scores: the threshold that keeps the valid ones varies too."""
    rng = np.random.default_rng([11, n])
    truth = NormalDist().cdf(NormalDist(apart).inv_cdf(1 - KEEP))
    held = 0
    for trial in range(trials):
        kept, changed = (probability(rng.normal(size=n) + more) for more in (apart, 0.0))
        found = called_invalid(kept, changed, np.arange(n), seed=trial)
        held += found["low"] <= truth + 1e-4 and truth <= found["high"] + 1e-4  # four digits
    return many("called invalid", f"{truth:.0%}", n, [held / trials])


def area(truth: float, n: int, trials: int) -> Coverage:
    """The area under the curve of a judge: normal scores, half of the texts of either kind."""
    rng = np.random.default_rng([8, n])
    apart = math.sqrt(2) * NormalDist().inv_cdf(truth)
    held = 0
    for trial in range(trials):
        kinds = rng.permutation(n) < n // 2
        found = figure("", kinds, probability(rng.normal(size=n) + apart * kinds), np.arange(n), seed=trial)
        held += found.auc_low <= truth <= found.auc_high
    return many("area under the curve", f"{truth:g}", n, [held / trials])


def table(trials: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Coverage]:
    for n in sizes:
        yield rates(n)
        yield pairs(n)
        yield from (mean(name, n, trials) for name in MEANS)
        yield from (f1(case, n, trials) for case in TABLES)
        yield from (correlation(strength, n, trials) for strength in (0.0, 0.5, 0.8))
        for metric in METRICS:
            yield from translation(metric, n, trials // 4)  # slower
        yield from (threshold(*case, n, trials) for case in ((0.5, 0.5), (0.9, 0.5), (0.9, 0.1)))
        yield from (by_valid_texts(doubt, n, trials // 4) for doubt in (0.0, 0.3, 0.6))
        yield from (valid_share(doubt, n, trials // 4) for doubt in (0.0, 0.3, 0.6))
        yield from (area(truth, n, trials // 10) for truth in (0.7, 0.9))
        yield from (share_called_invalid(apart, n, trials // 20) for apart in (1.0, 2.5))


# -- the gate ----------------------------------------------------------------------------------------------


def naive_passes(bound: float, hits: int, misses: int) -> bool:
    return wilson(hits, hits + misses)[0] >= bound


def exact_passes(bound: float, hits: int, misses: int) -> bool:
    """Whether the lower end of `exact_interval` reaches the bound; quicker than to look for the end."""
    return hits > 0 and beta_below(bound, hits, misses + 1) <= ERROR


def anytime_passes(bound: float, hits: int, misses: int) -> bool:
    """Whether the lower end of `anytime_interval` reaches the bound."""
    return hits > bound * (hits + misses) and log_evidence(bound, hits, misses) >= -math.log(ERROR)


def passing(passes: Passes, bound: float, rows: int) -> list[int]:
    """For every number of rows, the fewest hits with which the lower end reaches the bound."""
    found: list[int] = []
    hits = 0
    for n in range(1, rows + 1):
        hits = max(hits, math.floor(bound * n))
        while hits <= n and not passes(bound, hits, n - hits):
            hits += 1
        found.append(hits)
        hits = max(0, hits - 1)
    return found


def passed_by(needed: list[int], rate: float, every: int = 1) -> NDArray[np.float64]:
    """The chance to have passed at one of the looks so far, a look after `every` rows, for each size."""
    going = np.zeros(len(needed) + 1)
    going[0] = 1.0
    passed, found = 0.0, []
    for n, hits in enumerate(needed, 1):
        going[1:] = going[1:] * (1 - rate) + going[:-1] * rate
        going[0] *= 1 - rate
        if n % every == 0:
            passed += float(going[hits:].sum())
            going[hits:] = 0.0
        found.append(passed)
    return np.array(found)


def passes_once(needed: list[int], rate: float) -> NDArray[np.float64]:
    """The chance to pass at a single look at each size."""
    return np.array(
        [
            sum(
                math.exp(_log_choose(n, k) + k * math.log(rate) + (n - k) * math.log(1 - rate))
                for k in range(hits, n + 1)
            )
            for n, hits in enumerate(needed, 1)
        ]
    )


def judged_gate(doubt: float, rows: int, trials: int, every: int = 10) -> float:
    """False passes at the boundary by valid texts, with looks at every size from ten rows on.

    The judge is off by as much as it knows that it may be, as in `by_valid_texts`; the bound is the truth.
    """
    rng = np.random.default_rng([9, rows])
    truth = _true_accuracy()
    interval = lru_cache(None)(anytime_interval)
    passed = 0
    for _ in range(trials):
        kind = rng.random(rows)
        said = _MIDDLE + _SPREAD * rng.normal(size=rows) + doubt * rng.normal()
        fell, withstood = kind >= _WITHSTOOD + _WRONG, kind < _WITHSTOOD
        stands = np.where(fell, 1 - probability(said), withstood)
        others = probability(said[None, :] + doubt * rng.normal(size=(_JUDGES, 1)))
        sums = np.where(fell, 1 - others, withstood).cumsum(axis=1)
        for n in range(every, rows + 1, every):
            ends = mean_with_interval(stands[:n], np.resize(sums[:, n - 1], DRAWS), n)
            rate = Rate(*ends, n, doubt_of(sums[:, n - 1], n))
            if bounded(rate, interval).low > truth:
                passed += 1
                break
    return passed / trials


def _rows_for(chances: NDArray[np.float64], power: float = 0.8) -> str:
    """The size from which on the chance stays above the power."""
    below = np.flatnonzero(chances < power)
    size = 1 if not len(below) else int(below[-1]) + 2
    return f"{size:,}" if size <= len(chances) else f"over {len(chances):,}"


def gate(rows: int) -> None:
    print(
        f"\n| bound | Wilson, a look after each of {rows:,} rows | exact, once, most of all sizes | anytime |"
    )
    print("|---:|---:|---:|---:|")
    for bound in BOUNDS:
        once = passes_once(passing(exact_passes, bound, 200), bound).max()
        naive, held = (
            passed_by(passing(passes, bound, rows), bound)[-1] for passes in (naive_passes, anytime_passes)
        )
        print(f"| {bound:g} | {naive:.1%} | {once:.1%} | {held:.2%} |")
    print("\n| bound | true rate | rows for a pass in 80 % of runs: exact, once | anytime, every 10 rows |")
    print("|---:|---:|---:|---:|")
    for bound, rate in ((0.5, 0.6), (0.5, 0.7), (0.6, 0.7), (0.8, 0.9)):
        once = passes_once(passing(exact_passes, bound, 600), rate)
        again = passed_by(passing(anytime_passes, bound, 1000), rate, every=10)
        print(f"| {bound:g} | {rate:g} | {_rows_for(once)} | {_rows_for(again)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000, help="samples of each distribution and size")
    parser.add_argument("--rows", type=int, default=2000, help="looks at the gate")
    args = parser.parse_args()
    print("| number | distribution | n | covered | worst | in 93–97 % |\n|---|---|---:|---:|---:|---:|")
    for row in table(args.trials):
        name = f"{row.kind} | {row.distribution}"
        print(f"| {name} | {row.n} | {row.value:.1%} | {row.worst:.1%} | {row.share:.0%} |", flush=True)
    gate(args.rows)
    print("\n| judge off by | false passes by valid texts, a look after every 10 of 600 rows |\n|---:|---:|")
    for doubt in (0.0, 0.3, 0.6, 1.0):
        print(f"| {doubt:g} | {judged_gate(doubt, 600, args.trials // 4):.1%} |", flush=True)


if __name__ == "__main__":
    main()
