"""Fit the judge on what readers said, and say how good it is on texts it never saw.

Three regressions. *said_altered* is fitted on panels of readers ("written by a person or altered by a
computer"), on shares, and then stretched so that it gives the chance of a majority. *fluent* is fitted on
readers who judged fluency; a panel's suspicion counts a little beside them, with an offset of its own.
*label_kept* is fitted on readers who judged the label, and on pairs that people edited until the label was
another: these show what an edit of the label looks like, not how often attacks make one, so they weigh as
much as the rest together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unfooled.errors import DataError
from unfooled.metrics.validity.features import FEATURES, Instruments, Pair
from unfooled.metrics.validity.judgements import ReaderJudgement
from unfooled.metrics.validity.model import FULL, REDUCED, TARGETS, Judge, Row, Target, Variant
from unfooled.metrics.validity.regression import (
    Regression,
    Values,
    area_under_curve,
    fit_weights,
    probability,
    standardisation,
)
from unfooled.rates import wilson

CANDIDATES: Mapping[Target, tuple[str, ...]] = {
    "said_altered": (
        *("altered", "edited", "form", "two-of-a-kind"),
        *("lm-text", "lm-following", "lm-level"),
    ),
    "fluent": ("form-per-edit", "agreement", "two-of-a-kind", "spelling", "lm-lost", "lm-following"),
    "label_kept": ("word-cosine", "polarity", "opposites", "protected", "potion"),
}
# What the judgements hardly show is believed before: readers of misspelt texts found none of them fluent.
PRIORS = {"spelling": 3.0}
STRENGTH: Mapping[Target, float] = {"said_altered": 5.0, "fluent": 0.5, "label_kept": 2.0}
PANEL_WEIGHT = 0.03  # of one panel's suspicion, beside a reader who judged fluency
UNALTERED_WEIGHT = 0.3  # of a text that nobody altered, beside one that an attack altered
FOLDS, REPEATS, RESAMPLES, BINS = 10, 5, 200, 5
KEEP = 0.8  # of the valid texts stay above the threshold
_BATCH = 64

Measured = Sequence[tuple[ReaderJudgement, Row]]
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
    auc: float
    auc_low: float
    auc_high: float
    calibration_error: float
    calibration_error_by_chance: float  # what a perfect judge would show on so few texts
    bins: tuple[Bin, ...]


def fit_judge(
    measured: Measured, *, seed: int = 0, progress: Progress = lambda what: None, **record: Any
) -> Judge:
    """Fit every variant that the measures allow; `record` is kept beside the figures."""
    _check(measured)
    variants: dict[str, Variant] = {}
    figures: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    for name in (FULL, REDUCED):
        if name == FULL and not any("lm-text" in row for _, row in measured):
            continue
        progress(f"{name}: fitting")
        names = {target: _names(target, name) for target in TARGETS}
        parts = {target: _fit(measured, target, names[target]) for target in TARGETS}
        used = {
            target: tuple(n for n, w in zip(part.features, part.weights, strict=True) if abs(w) > 1e-6)
            for target, part in parts.items()
        }
        dropped[name] = {t: [n for n in names[t] if n not in used[t]] for t in TARGETS}
        # A measure without weight need not be measured when texts are judged.
        parts = {target: _fit(measured, target, used[target]) for target in TARGETS}
        progress(f"{name}: how sure the numbers are")
        variants[name] = Variant(name, _with_covariance(measured, parts, seed))
        progress(f"{name}: cross-validation")
        figures[name] = cross_validate(measured, names, seed=seed)
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
            "strength": dict(STRENGTH),
            "priors": dict(PRIORS),
            "without_weight": dropped,
            "figures": figures,
        },
    )


def _check(measured: Measured) -> None:
    asked = {
        "fluent": [judgement.fluent for judgement, _ in measured if judgement.fluent is not None],
        "label kept": [judgement.label_kept for judgement, _ in measured if judgement.label_kept is not None],
        "said altered": [
            judgement.said_altered for judgement, _ in measured if judgement.said_altered is not None
        ],
    }
    for name, values in asked.items():
        if not any(value > 0.5 for value in values) or not any(value <= 0.5 for value in values):
            raise DataError(
                f"the judgements hold {len(values)} on {name!r}, not both of yes and no",
                "add judgements: those of the shared format beside your own",
            )


def _names(target: Target, variant: str) -> tuple[str, ...]:
    names = CANDIDATES[target]
    return names if variant == FULL else tuple(name for name in names if not FEATURES[name].needs)


def cross_validate(
    measured: Measured, names: Mapping[Target, Sequence[str]], *, seed: int = 0
) -> dict[str, Any]:
    """Every figure from predictions for texts whose original was in no fit; repeated with other folds."""
    groups = [judgement.group for judgement, _ in measured]
    chances: dict[Target, list[Values]] = {target: [] for target in TARGETS}
    for repeat in range(REPEATS):
        fold = _folds(groups, seed + repeat)
        once = {target: np.full(len(measured), math.nan) for target in TARGETS}
        for k in range(FOLDS):
            inside = [pair for pair, own in zip(measured, fold, strict=True) if own != k]
            for target in TARGETS:
                part = _fit(inside, target, names[target])
                rows = [
                    i
                    for i in np.flatnonzero(fold == k).tolist()
                    if all(name in measured[i][1] for name in part.features)
                ]
                if rows:
                    table = _table([measured[i][1] for i in rows], part.features)
                    once[target][rows] = probability(part.score(table))
        for target in TARGETS:
            chances[target].append(once[target])
    return _figures(measured, {target: np.mean(found, axis=0) for target, found in chances.items()})


def _figures(measured: Measured, chances: Mapping[Target, Values]) -> dict[str, Any]:
    judgements = [judgement for judgement, _ in measured]
    panel = np.array([judgement.said_altered is not None for judgement in judgements])
    altered = np.array([judgement.altered for judgement in judgements])
    read = np.array([judgement.valid is not None for judgement in judgements])
    changed = np.array([judgement.fluent is None and judgement.label_kept == 0.0 for judgement in judgements])
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
        found[name] = asdict(figure(name, truth[known], chance[known]))
    found["label-changing edits"] = _called_invalid(valid[read & valid_truth], valid[changed])
    return found


def _called_invalid(valid: Values, changed: Values) -> dict[str, Any]:
    """The share of label-changing edits below the highest threshold that keeps enough of the valid texts."""
    if not len(valid) or not len(changed):
        return {}
    keep = math.ceil(KEEP * len(valid))
    threshold = float(np.sort(valid)[::-1][keep - 1])
    below = int((changed < threshold).sum())
    low, high = wilson(below, len(changed))
    return {
        "threshold": round(threshold, 4),
        "valid_kept": keep,
        "valid": len(valid),
        "called_invalid": round(below / len(changed), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "n": len(changed),
    }


def figure(name: str, truth: Any, chance: Values, *, seed: int = 0) -> Figure:
    """AUC with its 95 % interval over resampled texts; calibration in bins of equal size."""
    flags = np.asarray(truth, dtype=bool)
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(len(flags), size=len(flags)) for _ in range(1000)]
    areas = [area_under_curve(flags[rows], chance[rows]) for rows in drawn]
    low, high = np.nanpercentile(areas, [2.5, 97.5]) if len(flags) else (math.nan, math.nan)
    bins = reliability(flags, chance)
    perfect = [_error(reliability(rng.random(len(chance)) < chance, chance)) for _ in range(200)]
    return Figure(
        name,
        len(flags),
        int(flags.sum()),
        round(area_under_curve(flags, chance), 4),
        round(float(low), 4),
        round(float(high), 4),
        round(_error(bins), 4),
        round(float(np.mean(perfect)), 4),
        bins,
    )


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


def _folds(groups: Sequence[str], seed: int) -> Any:
    distinct = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {distinct[place]: number % FOLDS for number, place in enumerate(order.tolist())}
    return np.array([fold[group] for group in groups])


def _with_covariance(
    measured: Measured, parts: Mapping[Target, Regression], seed: int
) -> dict[Target, Regression]:
    """Refitted on resampled originals: the numbers on the scale of the first fit, and how they vary."""
    by_group: dict[str, list[tuple[ReaderJudgement, Row]]] = {}
    for judgement, row in measured:
        by_group.setdefault(judgement.group, []).append((judgement, row))
    groups = sorted(by_group)
    found: dict[Target, Regression] = {}
    for target, part in parts.items():
        rng = np.random.default_rng(seed)
        numbers = []
        for _ in range(RESAMPLES):
            drawn = [
                pair for i in rng.integers(len(groups), size=len(groups)) for pair in by_group[groups[i]]
            ]
            again = _fit(drawn, target, part.features, like=part)
            numbers.append(np.append(again.weights, again.bias))
        found[target] = Regression(
            part.features,
            part.centre,
            part.scale,
            part.weights,
            part.bias,
            np.cov(np.array(numbers), rowvar=False).reshape(len(part.features) + 1, -1),
        )
    return found


def _fit(
    measured: Measured, target: Target, names: Sequence[str], *, like: Regression | None = None
) -> Regression:
    """With the standardisation of `like`, where it is given."""
    rows = [(judgement, row) for judgement, row in measured if all(name in row for name in names)]
    wanted, weights, panel = _targets([judgement for judgement, _ in rows], target)
    used = np.flatnonzero(weights > 0)
    table = _table([rows[i][1] for i in used.tolist()], names)
    wanted, weights, panel = wanted[used], weights[used], panel[used]
    centre, scale = (like.centre, like.scale) if like else _centred(table, names)
    # A regression gives the chance of the good outcome, except that of being called altered.
    good = -1.0 if target == "said_altered" else 1.0
    signs = [int(-FEATURES[name].sign * good) for name in names]
    priors = [-FEATURES[name].sign * good * PRIORS.get(name, 0.0) for name in names]
    sides = np.column_stack([(table - centre) / scale, panel])
    found = fit_weights(
        sides, wanted, weights, signs=[*signs, 0], priors=[*priors, 0.0], strength=STRENGTH[target]
    )
    slopes, bias = found[:-2], float(found[-1])
    if target == "said_altered":
        stretch, offset = _majority(sides[:, :-1] @ slopes + bias, wanted, weights)
        slopes, bias = slopes * stretch, bias * stretch + offset
    empty = np.zeros((len(names) + 1, len(names) + 1))
    return Regression(tuple(names), centre, scale, slopes, bias, empty)


def _centred(table: Values, names: Sequence[str]) -> tuple[Values, Values]:
    """A measure with a prior of its own keeps its own unit."""
    centre, scale = standardisation(table)
    own = np.array([name in PRIORS for name in names])
    return np.where(own, 0.0, centre), np.where(own, 1.0, scale)


def _majority(scores: Values, shares: Values, weights: Values) -> tuple[float, float]:
    """How a score of shares becomes one of majorities."""
    found = fit_weights(
        scores[:, None], (shares > 0.5).astype(np.float64), weights, signs=[1], priors=[2.0], strength=1.0
    )
    return float(found[0]), float(found[1])


def _targets(judgements: Sequence[ReaderJudgement], target: Target) -> tuple[Values, Values, Values]:
    """What is to be predicted, how much each judgement counts, and which are a panel's suspicion."""
    wanted, weights, panel = (np.zeros(len(judgements)) for _ in range(3))
    for i, judgement in enumerate(judgements):
        value = getattr(judgement, target)
        if target == "said_altered" and value is not None:
            wanted[i], weights[i] = value, 1.0 if judgement.altered else UNALTERED_WEIGHT
        elif (
            target == "fluent" and value is None and judgement.said_altered is not None and judgement.altered
        ):
            wanted[i], weights[i], panel[i] = 1.0 - judgement.said_altered, PANEL_WEIGHT, 1.0
        elif value is not None:
            wanted[i], weights[i] = value, 1.0
    if target == "label_kept":
        edited = np.array([j.fluent is None and j.label_kept == 0.0 for j in judgements])
        total = float(weights[~edited].sum())
        weights[edited] = min(1.0, total / max(1, int(edited.sum())))
    return wanted, weights, panel


def _table(rows: Sequence[Row], names: Sequence[str]) -> Values:
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(
        len(rows), len(names)
    )


def measure_judgements(
    judgements: Sequence[ReaderJudgement],
    open_for: Callable[[Sequence[str]], Instruments],
    *,
    language_model: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[tuple[ReaderJudgement, Row]]:
    """The measures of each pair that its verdicts are used with; `open_for` opens what features need.

    Pairs of which only the label is known are measured for the label alone: long reviews would keep a
    language model busy for an hour, and say nothing of fluency.
    """
    chosen = FULL if language_model else REDUCED
    of_label = _names("label_kept", chosen)
    everything = tuple(dict.fromkeys(name for target in TARGETS for name in _names(target, chosen)))
    measured: list[tuple[ReaderJudgement, Row]] = []
    for names, wanted in (
        (everything, [j for j in judgements if j.fluent is not None or j.said_altered is not None]),
        (of_label, [j for j in judgements if j.fluent is None and j.said_altered is None]),
    ):
        if not wanted:
            continue
        instruments = open_for(names)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            rows = instruments.measure([Pair(j.before, j.after) for j in batch])
            kept = [{name: value for name, value in row.items() if name in everything} for row in rows]
            measured += zip(batch, kept, strict=True)
            progress(len(measured), len(judgements))
    return measured
