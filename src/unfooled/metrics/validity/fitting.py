"""Fit the judge on what readers said.

Three regressions. *said_altered* is fitted on panels of readers ("written by a person or altered by a
computer"), on shares, and then stretched so that it gives the chance of a majority. *fluent* is fitted on
readers who judged fluency; a panel's suspicion counts a little beside them, with an offset of its own.
*label_kept* is fitted on readers who judged the label, and on pairs that people edited until the label was
another. These show what an edit of the label looks like, not how often attacks make one: they weigh as much
as the rest together. Attacked texts of a panel, whose label nobody was asked about, count a little with the
share of kept labels that readers found: without them every edit to a far word would look like one of the
label.

So few judgements do not settle which measures to take. A short and a longer list are fitted and averaged,
which makes one regression again. How strongly weights are held back is weighed by how likely it makes texts
of other originals, by cross-validation on nothing but the texts that are fitted on; `validation` does the
same inside each of its folds.

Of few judgements no regression is made: the shipped one is recalibrated on them by a slope and an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from unfooled.errors import DataError
from unfooled.metrics.validity.features import FEATURES, Instruments, Pair
from unfooled.metrics.validity.judgements import ReaderJudgement, edited_sentences
from unfooled.metrics.validity.model import FULL, TARGETS, Row, Target, Variant
from unfooled.metrics.validity.regression import Regression, Values, fit_weights, probability, standardisation

_FEW: Mapping[Target, tuple[str, ...]] = {
    "said_altered": ("edited", "form", "rarer", "lm-lost-in-context", "lm-behind", "lm-misfit"),
    "fluent": ("form-per-edit", "agreement", "two-of-a-kind", "misspelt", "lm-lost", "lm-behind"),
    "label_kept": ("meaning-kept", "contradictions", "polarity-moved"),
}
_MORE: Mapping[Target, tuple[str, ...]] = {
    "said_altered": ("altered", "form-per-edit", "two-of-a-kind", "lm-lost-per-word", "lm-per-word"),
    "fluent": (),  # thirty readers choose nothing
    "label_kept": ("protected", "praise-potion", "praise-minilm"),
}
STRENGTHS = (0.5, 2.0, 8.0)  # with which weights are held back: the precision of their prior
# What the judgements hardly show is believed before: readers of misspelt texts found none of them fluent.
PRIORS = {"misspelt": 3.0}
PANEL_WEIGHT = 0.03  # of one panel's suspicion, beside a reader who judged fluency
PANEL_LABEL_WEIGHT = 0.3  # of a panel's text, beside one whose label a reader judged
UNALTERED_WEIGHT = 0.3  # of a text that nobody altered, beside one that an attack altered
INNER_FOLDS = 4
ENOUGH, EACH_SIDE = 30, 5  # texts that a regression is fitted on, and how many of them on either side
FEWEST = 5  # texts that the shipped judge is recalibrated on
_SLOPE_STRENGTH = 4.0  # how much the shipped slope is believed
_BATCH = 64

Measured: TypeAlias = Sequence[tuple[ReaderJudgement, Row]]
Method: TypeAlias = Literal["fitted", "recalibrated", "as shipped"]


class Setting(NamedTuple):
    """What is chosen before a fit: the measures, and how strongly their weights are held back."""

    measures: tuple[str, ...]
    strength: float


Mixture: TypeAlias = tuple[tuple[Setting, float], ...]  # settings, and how much each counts


@dataclass(frozen=True, slots=True)
class Learner:
    """How one target of one variant is learned."""

    target: Target
    lists: tuple[tuple[str, ...], ...]  # of measures
    method: Method
    shipped: Regression | None  # to begin with where judgements are few

    def learn(self, measured: Measured, seed: int) -> Regression:
        if self.method == "fitted":
            return fit_mixture(measured, self.target, self.mixture(measured, seed))
        assert self.shipped is not None
        if self.method == "as shipped":
            return self.shipped
        return recalibrated(self.shipped, measured, self.target)

    def mixture(self, measured: Measured, seed: int) -> Mixture:
        """Each list counts the same, each of its strengths by how likely it makes other originals' texts."""
        fold = folds([judgement.group for judgement, _ in measured], INNER_FOLDS, seed)
        found: list[tuple[Setting, float]] = []
        for names in self.lists:
            settings = [Setting(names, strength) for strength in STRENGTHS]
            losses = np.array(
                [
                    sum(self._loss(measured, setting, fold, k) for k in range(INNER_FOLDS))
                    for setting in settings
                ]
            )
            shares = np.exp(losses.min() - losses)
            shares /= shares.sum() * len(self.lists)
            found += zip(settings, shares.tolist(), strict=True)
        return tuple(found)

    def _loss(self, measured: Measured, setting: Setting, fold: Values, k: int) -> float:
        inside = [pair for pair, own in zip(measured, fold, strict=True) if own != k]
        outside = [pair for pair, own in zip(measured, fold, strict=True) if own == k]
        table, wanted, weights, panel = _prepared(outside, self.target, setting.measures)
        if self.target == "said_altered":
            wanted = (wanted > 0.5).astype(np.float64)
        weights = np.where(panel > 0, 0.0, weights)  # a panel's suspicion is not the chance of being fluent
        chance = np.clip(probability(fit(inside, self.target, setting).score(table)), 1e-6, 1 - 1e-6)
        return -float(weights @ (wanted * np.log(chance) + (1 - wanted) * np.log(1 - chance)))


def learners(measured: Measured, variant: str, shipped: Variant | None) -> dict[Target, Learner]:
    """One for each target, by how many judgements there are on it."""
    found: dict[Target, Learner] = {}
    for target in TARGETS:
        part = None if shipped is None else shipped.parts[target]
        found[target] = Learner(target, _lists(target, variant), _method(measured, target, part), part)
    if all(learner.method == "as shipped" for learner in found.values()):
        raise DataError(
            f"there are fewer than {FEWEST} judgements on each of fluency, label and suspicion",
            "add judgements: see docs/how-to/judge.md for the fields of a line",
        )
    return found


def _method(measured: Measured, target: Target, shipped: Regression | None) -> Method:
    values = [value for judgement, _ in measured if (value := getattr(judgement, target)) is not None]
    yes = sum(value > 0.5 for value in values)
    if len(values) >= ENOUGH and min(yes, len(values) - yes) >= EACH_SIDE:
        return "fitted"
    if shipped is None:
        raise DataError(
            f"the judgements hold {len(values)} on {target!r}, {yes} of them yes: too few for a judge, "
            "and this variant was not shipped",
            f"add judgements: {ENOUGH} texts, {EACH_SIDE} of them on either side",
        )
    readers = [judgement for judgement, _ in measured if _verdict(judgement, target) is not None]
    return "recalibrated" if len(readers) >= FEWEST else "as shipped"


def _verdict(judgement: ReaderJudgement, target: Target) -> float | None:
    """What readers said; a pair that was edited on purpose is no sample of what attacks do."""
    value: float | None = getattr(judgement, target)
    return None if target == "label_kept" and judgement.edited_label else value


def _lists(target: Target, variant: str) -> tuple[tuple[str, ...], ...]:
    lists = (_FEW[target], (*_FEW[target], *_MORE[target])) if _MORE[target] else (_FEW[target],)
    if variant == FULL:
        return lists
    return tuple(tuple(name for name in names if not FEATURES[name].needs) for names in lists)


def folds(groups: Sequence[str], count: int, seed: int) -> Values:
    """The number of each row's fold; rows of one group are in the same."""
    distinct = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {distinct[place]: float(number % count) for number, place in enumerate(order.tolist())}
    return np.array([fold[group] for group in groups])


def fit(
    measured: Measured, target: Target, setting: Setting, *, standard: tuple[Values, Values] | None = None
) -> Regression:
    """`standard` is the centre and scale of each measure; by default their own."""
    names = setting.measures
    table, wanted, weights, panel = _prepared(measured, target, names)
    centre, scale = standard or _centred(table, names)
    # A regression gives the chance of the good outcome, except that of being called altered.
    good = -1.0 if target == "said_altered" else 1.0
    signs = [int(-FEATURES[name].sign * good) for name in names]
    priors = [-FEATURES[name].sign * good * PRIORS.get(name, 0.0) for name in names]
    sides = np.column_stack([(table - centre) / scale, panel])
    found = fit_weights(
        sides, wanted, weights, signs=[*signs, 0], priors=[*priors, 0.0], strength=setting.strength
    )
    slopes, bias = found[:-2], float(found[-1])
    if target == "said_altered":
        stretch, offset = _majority(sides[:, :-1] @ slopes + bias, wanted, weights)
        slopes, bias = slopes * stretch, bias * stretch + offset
    empty = np.zeros((len(names) + 1, len(names) + 1))
    return Regression(names, centre, scale, slopes, bias, empty)


def fit_mixture(
    measured: Measured, target: Target, mixture: Mixture, *, like: Regression | None = None
) -> Regression:
    """One regression: settings that standardise alike are averaged by averaging their weights."""
    names = tuple(dict.fromkeys(name for setting, _ in mixture for name in setting.measures))
    table, *_ = _prepared(measured, target, names)
    centre, scale = (like.centre, like.scale) if like else _centred(table, names)
    weights, bias = np.zeros(len(names)), 0.0
    for setting, share in mixture:
        places = [names.index(name) for name in setting.measures]
        part = fit(measured, target, setting, standard=(centre[places], scale[places]))
        weights[places] += share * part.weights
        bias += share * part.bias
    empty = np.zeros((len(names) + 1, len(names) + 1))
    return Regression(names, centre, scale, weights, bias, empty)


def recalibrated(shipped: Regression, measured: Measured, target: Target) -> Regression:
    """The same order of texts, by two numbers: how steep, and how high on the whole."""
    rows = [
        (judgement, row)
        for judgement, row in measured
        if _verdict(judgement, target) is not None and all(name in row for name in shipped.features)
    ]
    said = np.array([_verdict(judgement, target) for judgement, _ in rows], dtype=np.float64)
    readers = np.array([judgement.readers for judgement, _ in rows], dtype=np.float64)
    wanted = (said > 0.5).astype(np.float64) if target == "said_altered" else said
    # A few readers who agree are no proof that all would.
    wanted = (wanted * readers + 0.5) / (readers + 1.0)
    scores = shipped.score(_table([row for _, row in rows], shipped.features))
    slope, offset = fit_weights(
        scores[:, None], wanted, np.ones(len(rows)), signs=[1], priors=[1.0], strength=_SLOPE_STRENGTH
    )
    return replace(
        shipped,
        weights=shipped.weights * slope,
        bias=float(shipped.bias * slope + offset),
        covariance=shipped.covariance * slope**2,
    )


def without_idle(part: Regression, mixture: Mixture) -> Mixture:
    """The same settings without the measures that got no weight: these need not be measured."""
    used = {name for name, weight in zip(part.features, part.weights, strict=True) if abs(weight) > 1e-3}
    return tuple(
        (Setting(tuple(name for name in setting.measures if name in used), setting.strength), share)
        for setting, share in mixture
    )


def _prepared(
    measured: Measured, target: Target, names: Sequence[str]
) -> tuple[Values, Values, Values, Values]:
    """The measures of the rows that count; what is wanted, how much each counts, which are a panel's."""
    rows = [(judgement, row) for judgement, row in measured if all(name in row for name in names)]
    wanted, weights, panel = _targets([judgement for judgement, _ in rows], target)
    used = np.flatnonzero(weights > 0)
    table = _table([rows[i][1] for i in used.tolist()], names)
    return table, wanted[used], weights[used], panel[used]


def _centred(table: Values, names: Sequence[str]) -> tuple[Values, Values]:
    """A measure with a prior of its own keeps its own unit."""
    centre, scale = standardisation(table)
    own = np.array([name in PRIORS for name in names], dtype=bool)
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
        attacked = judgement.said_altered is not None and judgement.altered
        if value is not None:
            wanted[i], weights[i] = value, 1.0
            if target == "said_altered" and not judgement.altered:
                weights[i] = UNALTERED_WEIGHT
        elif target == "fluent" and attacked:
            wanted[i], weights[i], panel[i] = 1.0 - (judgement.said_altered or 0.0), PANEL_WEIGHT, 1.0
    if target == "label_kept":
        _weigh_labels(judgements, wanted, weights)
    return wanted, weights, panel


def _weigh_labels(judgements: Sequence[ReaderJudgement], wanted: Values, weights: Values) -> None:
    edited = np.array([judgement.edited_label for judgement in judgements], dtype=bool)
    read = (weights > 0) & ~edited
    if read.any():
        asked = [judgement.said_altered is not None and judgement.altered for judgement in judgements]
        attacked = np.array(asked, dtype=bool) & ~read
        wanted[attacked], weights[attacked] = wanted[read].mean(), PANEL_LABEL_WEIGHT
    total = float(weights[~edited].sum())
    # Whole texts and sentences cut from them weigh the same, however many there are of each.
    cut = np.array([bool(judgement.original) for judgement in judgements], dtype=bool)
    kinds = [kind for kind in (edited & cut, edited & ~cut) if kind.any()]
    for kind in kinds:
        weights[kind] = min(1.0, total / len(kinds) / int(kind.sum()))


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
    """The measures of each pair, and of sentences cut from edited ones; `open_for` opens what features need.

    Pairs of which only the label is known are measured for the label alone: long reviews would keep a
    language model busy for an hour, and say nothing of fluency.
    """
    everything = tuple(name for name, feature in FEATURES.items() if language_model or not feature.needs)
    of_label = tuple(name for name in everything if not name.startswith("lm-"))
    edited = [judgement for judgement in judgements if judgement.edited_label]
    cut = [sentence for judgement in edited for sentence in edited_sentences(judgement)]
    read = [judgement for judgement in judgements if not judgement.edited_label]
    measured: list[tuple[ReaderJudgement, Row]] = []
    for names, wanted in ((everything, read), (of_label, [*edited, *cut])):
        if not wanted:
            continue
        instruments = open_for(names)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            rows = instruments.measure([Pair(judgement.before, judgement.after) for judgement in batch])
            kept = [{name: value for name, value in row.items() if name in names} for row in rows]
            measured += zip(batch, kept, strict=True)
            progress(len(measured), len(judgements) + len(cut))
    return measured
