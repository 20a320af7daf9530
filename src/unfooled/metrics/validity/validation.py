"""How good a judge is on texts it never saw, and the judge that is kept.

Every figure comes from predictions for texts whose original was in no fit and had no say in which measures
count (nested cross-validation). Texts of one original are alike, so intervals resample originals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unfooled.metrics.validity.fitting import (
    PRIORS,
    Learner,
    Measured,
    Mixture,
    fit_mixture,
    folds,
    learners,
    recalibrated,
    without_idle,
)
from unfooled.metrics.validity.judgements import ReaderJudgement
from unfooled.metrics.validity.model import FULL, REDUCED, TARGETS, Judge, Row, Target, Variant
from unfooled.metrics.validity.regression import Regression, Values, area_under_curve, probability
from unfooled.rates import area_interval, wilson

FOLDS, REPEATS, RESAMPLES, BINS = 10, 3, 200, 5
KEEP = 0.8  # of the valid texts stay above the threshold

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts of about the same probability: the mean of it, how often it came true, how many."""

    predicted: float
    observed: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Figure:
    """How well a probability tells unseen texts apart, and whether it can be taken as one."""

    name: str
    n: int
    positive: int
    originals: int
    auc: float
    auc_low: float
    auc_high: float
    calibration_error: float
    calibration_error_by_chance: float  # what a perfect judge would show on so few texts, on average
    calibration_error_by_bad_luck: float  # and in one of twenty samples of this size
    bins: tuple[Bin, ...]


def fit_judge(
    measured: Measured,
    *,
    shipped: Judge | None = None,
    seed: int = 0,
    progress: Progress = lambda what: None,
    **record: Any,
) -> Judge:
    """Fit every variant that the measures allow; `record` is kept beside the figures.

    What the judgements are too few for is taken from `shipped`, recalibrated or as it is.
    """
    variants: dict[str, Variant] = {}
    figures: dict[str, Any] = {}
    made: dict[str, Any] = {}
    for name in (FULL, REDUCED):
        if name == FULL and not any("lm-lost" in row for _, row in measured):
            continue
        own = None if shipped is None or name not in shipped.variants else shipped.variants[name]
        by_target = learners(measured, name, own)
        progress(f"{name}: fitting")
        parts, made[name] = {}, {}
        for target, learner in by_target.items():
            parts[target], made[name][target] = _kept(learner, measured, seed)
        progress(f"{name}: how sure the numbers are")
        variants[name] = Variant(name, _with_covariance(measured, by_target, parts, made[name], seed))
        progress(f"{name}: nested cross-validation")
        figures[name] = cross_validate(measured, by_target, seed=seed)
    counts: dict[str, int] = {}
    for judgement, _ in measured:
        counts[judgement.source] = counts.get(judgement.source, 0) + 1
    return Judge(
        variants,
        {
            **record,
            "judgements": counts,
            "seed": seed,
            "folds": FOLDS,
            "repeats": REPEATS,
            "priors": dict(PRIORS),
            "made": made,
            "figures": figures,
        },
    )


def _kept(learner: Learner, measured: Measured, seed: int) -> tuple[Regression, dict[str, Any]]:
    """The regression that is kept, and how it came about."""
    if learner.method != "fitted":
        return learner.learn(measured, seed), {"method": learner.method}
    mixture = learner.mixture(measured, seed)
    first = fit_mixture(measured, learner.target, mixture)
    lean = without_idle(first, mixture)
    part = fit_mixture(measured, learner.target, lean)
    idle = [name for name in first.features if name not in part.features]
    return part, {"method": "fitted", "mixture": lean, "without_weight": idle}


def cross_validate(
    measured: Measured, by_target: Mapping[Target, Learner], *, seed: int = 0
) -> dict[str, Any]:
    """The figures, from the mean of the predictions over repeated folds."""
    groups = [judgement.group for judgement, _ in measured]
    chances: dict[Target, list[Values]] = {target: [] for target in TARGETS}
    for repeat in range(REPEATS):
        fold = folds(groups, FOLDS, seed + repeat)
        once = {target: np.full(len(measured), math.nan) for target in TARGETS}
        for k in range(FOLDS):
            inside = [pair for pair, own in zip(measured, fold, strict=True) if own != k]
            for target, learner in by_target.items():
                part = learner.learn(inside, seed + repeat)
                rows = [
                    i
                    for i in np.flatnonzero(fold == k).tolist()
                    if all(name in measured[i][1] for name in part.features)
                ]
                if rows:
                    values = [[measured[i][1][name] for name in part.features] for i in rows]
                    once[target][rows] = probability(part.score(np.array(values, dtype=np.float64)))
        for target in TARGETS:
            chances[target].append(once[target])
    return _figures(measured, {target: np.mean(found, axis=0) for target, found in chances.items()})


def _figures(measured: Measured, chances: Mapping[Target, Values]) -> dict[str, Any]:
    judgements = [judgement for judgement, _ in measured]
    groups = np.array([judgement.group for judgement in judgements])
    panel = np.array([judgement.said_altered is not None for judgement in judgements])
    altered = np.array([judgement.altered for judgement in judgements])
    read = np.array([judgement.valid is not None for judgement in judgements])
    changed = np.array([judgement.edited_label for judgement in judgements])
    cut = np.array([bool(judgement.original) for judgement in judgements])
    majority = np.array([(judgement.said_altered or 0.0) > 0.5 for judgement in judgements])
    valid_truth = np.array([(judgement.valid or 0.0) > 0.5 for judgement in judgements])
    kept = chances["label_kept"]
    # Where fluency was not measured the label alone decides: P(valid) is at most P(label kept).
    valid = kept * np.where(np.isnan(chances["fluent"]), 1.0, chances["fluent"])
    found: dict[str, Any] = {}
    for name, rows, truth, chance in (
        ("most readers call an altered text altered", panel & altered, majority, chances["said_altered"]),
        ("most readers call a text altered, originals too", panel, majority, chances["said_altered"]),
        ("valid", read, valid_truth, valid),
    ):
        known = rows & ~np.isnan(chance)
        if known.any():
            found[name] = asdict(figure(name, truth[known], chance[known], groups[known]))
    for name, rows in (
        ("label-changing edits", changed & ~cut),
        ("label-changing edits of one sentence", changed & cut),
    ):
        called = called_invalid(valid[read & valid_truth], valid[rows], groups[rows])
        if called:
            found[name] = called
    return found


def called_invalid(valid: Values, changed: Values, groups: Any, *, seed: int = 0) -> dict[str, Any]:
    """The share of label-changing edits below the highest threshold that keeps enough of the valid texts.

    The interval resamples both: a threshold that so few valid texts set is not sure either.
    """
    if not len(valid) or not len(changed):
        return {}
    rng = np.random.default_rng(seed)
    resampled = [
        float((changed[rows] < _threshold(rng.choice(valid, len(valid)))).mean())
        for rows in _drawn(groups, rng, 1000)
    ]
    threshold = _threshold(valid)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return {
        "threshold": round(threshold, 4),
        "valid_kept": int((valid >= threshold).sum()),
        "valid": len(valid),
        "called_invalid": round(float((changed < threshold).mean()), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "n": len(changed),
    }


def _threshold(valid: Values) -> float:
    return float(np.sort(valid)[::-1][math.ceil(KEEP * len(valid)) - 1])


def figure(name: str, truth: Any, chance: Values, groups: Sequence[str] | Any, *, seed: int = 0) -> Figure:
    """AUC with its 95 % interval; calibration in bins of equal size."""
    flags = np.asarray(truth, dtype=bool)
    rng = np.random.default_rng(seed)
    areas = [area_under_curve(flags[rows], chance[rows]) for rows in _drawn(groups, rng, 1000)]
    low, high = area_interval(
        area_under_curve(flags, chance), int(flags.sum()), int((~flags).sum()), float(np.nanvar(areas))
    )
    bins = reliability(flags, chance)
    perfect = [_error(reliability(rng.random(len(chance)) < chance, chance)) for _ in range(400)]
    return Figure(
        name,
        len(flags),
        int(flags.sum()),
        len(set(np.asarray(groups).tolist())),
        round(area_under_curve(flags, chance), 4),
        round(float(low), 4),
        round(float(high), 4),
        round(_error(bins), 4),
        round(float(np.mean(perfect)), 4),
        round(float(np.percentile(perfect, 95)), 4),
        bins,
    )


def _drawn(groups: Any, rng: np.random.Generator, times: int) -> list[Any]:
    """Rows of originals drawn with replacement, all texts of an original together."""
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    rows = [np.flatnonzero(place == i) for i in range(len(names))]
    return [
        np.concatenate([rows[i] for i in rng.integers(len(names), size=len(names)).tolist()])
        for _ in range(times)
    ]


def _error(bins: Sequence[Bin]) -> float:
    """Mean distance of predicted and observed, over the texts."""
    return sum(b.n * abs(b.predicted - b.observed) for b in bins) / max(1, sum(b.n for b in bins))


def reliability(truth: Any, chance: Values, bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of equal size in the order of the probability."""
    flags = np.asarray(truth, dtype=bool)
    found = []
    for rows in np.array_split(np.argsort(chance, kind="stable"), bins):
        if len(rows):
            true = int(flags[rows].sum())
            low, high = wilson(true, len(rows))
            mean = float(chance[rows].mean())
            found.append(
                Bin(round(mean, 4), round(true / len(rows), 4), round(low, 4), round(high, 4), len(rows))
            )
    return tuple(found)


def _with_covariance(
    measured: Measured,
    by_target: Mapping[Target, Learner],
    parts: Mapping[Target, Regression],
    made: Mapping[Target, Mapping[str, Any]],
    seed: int,
) -> dict[Target, Regression]:
    """Learned again on resampled originals: the numbers on the scale of the first fit, and how they vary.

    A recalibrated regression varies besides as the shipped one did.
    """
    by_group: dict[str, list[tuple[ReaderJudgement, Row]]] = {}
    for judgement, row in measured:
        by_group.setdefault(judgement.group, []).append((judgement, row))
    groups = sorted(by_group)
    found: dict[Target, Regression] = {}
    for target, part in parts.items():
        learner, rng = by_target[target], np.random.default_rng(seed)
        if learner.method == "as shipped":
            found[target] = part
            continue
        numbers = []
        for _ in range(RESAMPLES):
            drawn = [
                pair for i in rng.integers(len(groups), size=len(groups)) for pair in by_group[groups[i]]
            ]
            again = _again(learner, part, drawn, made[target].get("mixture", ()))
            numbers.append(np.append(again.weights, again.bias))
        own = np.cov(np.array(numbers), rowvar=False).reshape(len(part.features) + 1, -1)
        found[target] = replace(part, covariance=part.covariance + own)
    return found


def _again(learner: Learner, part: Regression, drawn: Measured, mixture: Mixture) -> Regression:
    if learner.method == "fitted":
        return fit_mixture(drawn, learner.target, mixture, like=part)
    assert learner.shipped is not None
    return recalibrated(learner.shipped, drawn, learner.target)
