"""What a run means, in words and pictures, for somebody who has a minute."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from unfooled.checks.transfer import Transfer
from unfooled.core.result import ABSTAINED
from unfooled.metrics.bleu import ScoreChange
from unfooled.metrics.columns import (
    Column,
    Point,
    ResultColumns,
    accuracy_at_least,
    accuracy_at_most,
    confusion,
    query_limits,
)
from unfooled.metrics.measures import parse_measure
from unfooled.metrics.progress import MARKS, QueryProgress, progress
from unfooled.metrics.summary import Mean, Rate, Summary
from unfooled.metrics.validity.accuracy import VALID
from unfooled.metrics.validity.second_judge import SECOND
from unfooled.report.charts import ChartLine, bar_chart, line_chart, matrix

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0)
FLOORS = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


class View(Protocol):
    """What is read of one run."""

    @property
    def name(self) -> str: ...
    @property
    def victim(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def summary(self) -> Summary: ...
    @property
    def ledger(self) -> ResultColumns: ...
    @property
    def data_fingerprint(self) -> str: ...
    @property
    def measures(self) -> Mapping[str, Column]: ...
    @property
    def attack(self) -> str: ...
    @property
    def victim_fingerprint(self) -> str: ...
    @property
    def transfers(self) -> Sequence[Transfer]: ...
    @property
    def told(self) -> Path: ...
    @property
    def number(self) -> int: ...  # its place on the page, and its colour


class RunVerdict(NamedTuple):
    tone: Literal["bad", "middling", "good", "none"]
    headline: str
    sentence: str
    warnings: tuple[str, ...] = ()


class Hint(NamedTuple):
    kind: str  # a page about several runs shows one of each kind
    words: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    title: str
    caption: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(PageTable):
    """A picture, and the table of its numbers."""

    svg: str
    legend: tuple[tuple[str, int], ...] = ()  # names of runs and the numbers of their colours


def judge(summary: Summary) -> RunVerdict:
    """The interval decides, not the middle: a small sample gets no strong word."""
    warnings = []
    if summary.errors:
        share = summary.errors / max(1, summary.total)
        warnings.append(
            f"{summary.errors:,} of {summary.total:,} examples ({share:.0%}) ended in an error and are in no "
            "rate."
        )
    warnings += [f"{caution[0].upper()}{caution[1:]}." for caution in summary.cautions]
    if not summary.attacked:
        return RunVerdict("none", "Nothing was attacked.", _why_nothing(summary), tuple(warnings))
    rate = summary.success_rate
    said = f"{rate.value:.0%} ({rate.low:.0%} to {rate.high:.0%}) of the {rate.n:,} examples"
    if summary.writes:
        told = f"The attack reaches its goal in {said} that it was tried on."
        told += "".join(f" {_fall(change)}" for change in summary.outputs[:1])
    else:
        what = f"recall of {summary.only}" if summary.only else "accuracy"
        under = summary.accuracy_under_attack
        told = (
            f"The attack breaks {said} that the model got right; {what} falls from "
            f"{summary.accuracy_before.value:.0%} to {under.value:.0%} ({under.low:.0%} to {under.high:.0%})."
        )
        if (valid := summary.accuracy_under_valid_attack) is not None and valid.n:
            told += (
                f" Counting only texts that a reader would accept, it is {valid.value:.0%} "
                f"({valid.low:.0%} to {valid.high:.0%})."
            )
    if summary.counts["success"]:
        words = summary.words_changed
        told += (
            f" A success changes {words.value:.1f} words on average "
            f"({summary.perturbed_share.value:.0%} of the text)."
        )
    if summary.tries.mostly_none:
        return RunVerdict("none", "The attack could try next to nothing.", told, tuple(warnings))
    if rate.low > 0.5:
        return RunVerdict("bad", "Fragile under this attack.", told, tuple(warnings))
    if rate.high < 0.2:
        return RunVerdict("good", "Holds up under this attack.", told, tuple(warnings))
    if rate.low > 0.2 and rate.high <= 0.5:
        return RunVerdict("middling", "Breaks in part under this attack.", told, tuple(warnings))
    if rate.high - rate.low > 0.2:
        return RunVerdict("middling", "Too few examples to say how fragile it is.", told, tuple(warnings))
    headline = (
        "Breaks about as often as not." if rate.high > 0.5 else "Breaks now and then under this attack."
    )
    return RunVerdict("middling", headline, told, tuple(warnings))


def _why_nothing(summary: Summary) -> str:
    if not summary.total:
        return "The run holds no example."
    if summary.errors == summary.total:
        return "Every example ended in an error."
    return "Every example was passed over." if summary.writes else "No example was right before the attack."


def _fall(change: ScoreChange) -> str:
    """What became of a corpus score, in a sentence."""
    name = {"bleu": "BLEU", "chrf": "chrF"}[change.metric]
    _, low, high = change.change
    return (
        f"{name} goes from {change.before[0]:.1f} to {change.after[0]:.1f} "
        f"(change {low:+.1f} to {high:+.1f}, 95 % interval over {change.n:,} sentences)."
    )


def half_width(n: int) -> float:
    """Half the 95 % interval of a rate near one half, the widest case."""
    return 1.96 * math.sqrt(0.25 / n) if n else 1.0


def needed_for(half: float) -> int:
    """Examples for an interval of ± `half` at most."""
    return math.ceil(0.25 * (1.96 / half) ** 2)


def hints(view: View) -> list[Hint]:
    """What to do with this run, the most useful first."""
    summary, found = view.summary, []
    n = summary.attacked
    if n and half_width(n) > 0.05:
        found.append(
            Hint(
                "sample size",
                f"{n:,} attacked examples leave about ±{100 * half_width(n):.0f} points; "
                f"{needed_for(0.04):,} would leave ±4. The same command with a larger --limit goes on.",
            )
        )
    if n and summary.writes:
        found.append(
            Hint(
                "compare",
                "Compare with another model in one page.",
                "unfooled report runs/one runs/other --out both.html",
            )
        )
    elif n and summary.success_rate.low > 0.2:
        found.append(
            Hint(
                "harden",
                "Harden the model and measure again, with a copy retuned the same way as the control.",
                "unfooled harden --method fact --model MODEL --data TRAINING_DATA --out models/hardened",
            )
        )
    if summary.counts["success"] and summary.validity is None and not summary.writes:
        found.append(
            Hint(
                "judge",
                "Ask how many of the found texts a reader would accept: the second number beside this one.",
                f"unfooled judge {shlex.quote(str(view.told))}",
            )
        )
    if summary.counts["success"] and not view.measures:
        found.append(
            Hint(
                "measure",
                "Ask whether the found texts still read well; this page then draws how many of them count.",
                f"unfooled measure {shlex.quote(str(view.told))} "
                "--with similarity:use --with perplexity:trigram --with grammar",
            )
        )
    if summary.similarity.n and summary.counts["success"]:
        found.append(
            Hint(
                "similarity",
                "Read the curve over similarity: a success that no reader accepts is no reason to worry.",
            )
        )
    if n and summary.success_rate.high < 0.2:
        found.append(
            Hint("stronger", "Try a stronger attack before trusting this model.", "unfooled attacks")
        )
    if summary.errors:
        words = "Mend what caused the errors, and repeat the command: finished examples are kept."
        found.append(Hint("errors", words))
    return found


def charts(views: Sequence[View]) -> list[Chart]:
    """Every picture that the runs have numbers for."""
    attacked = [view for view in views if view.summary.attacked and not view.summary.writes]
    found = [_over_share(attacked), _over_queries(attacked), _over_similarity(attacked)]
    found += _anytime(attacked)
    names = dict.fromkeys(name for view in attacked for name in view.measures)
    found += [
        _over_measure(attacked, name) for name in names if not name.startswith(("changed-pos", VALID, SECOND))
    ]
    found.append(_over_validity(attacked))
    for view in views:
        found += [_histogram(view, len(views)), _parts_of_speech(view, len(views))]
        found += [] if view.summary.writes else _confusions(view, len(views))
    return [chart for chart in found if chart is not None and chart.svg]


class CurveText(NamedTuple):
    """What is written on and below a curve of accuracy."""

    title: str
    x_name: str
    form: str
    caption: str


_SHARE = CurveText(
    "Accuracy against the share of words changed",
    "at most this share of the words changed",
    "{:.0%}",
    "How much editing it takes: attacks that change a larger share are not counted.",
)
_QUERIES = CurveText(
    "Accuracy against the query budget",
    "at most this many queries per example",
    "{:,.0f}",
    "How patient an attacker must be: attacks that needed more queries are not counted.",
)
_SIMILARITY = CurveText(
    "Accuracy when only similar texts count",
    "similarity of the last edit, at least",
    "{:.2f}",
    "How many successes stay close to the original, on the scale of the attack's own constraint; "
    "texts whose similarity was not measured do not count.",
)
_VALIDITY = CurveText(
    "Accuracy when only texts count that are likely valid",
    "probability of being valid, at least",
    "{:.1f}",
    "At the left every text counts, at the right only those that a reader would surely accept.",
)


def _over_share(views: Sequence[View]) -> Chart | None:
    return _curve(views, lambda view: accuracy_at_most(view.ledger, view.ledger.share, SHARES), _SHARE)


def _over_queries(views: Sequence[View]) -> Chart | None:
    views = [view for view in views if np.isfinite(view.ledger.queries[view.ledger.attacked]).all()]
    limits = sorted({limit for view in views for limit in query_limits(view.ledger)})
    return _curve(
        views,
        lambda view: accuracy_at_most(view.ledger, view.ledger.needed, limits),
        _QUERIES,
        log_x=True,
    )


def _over_similarity(views: Sequence[View]) -> Chart | None:
    measured = [view for view in views if np.isfinite(view.ledger.similarity[view.ledger.fallen]).any()]
    return _curve(
        measured, lambda view: accuracy_at_least(view.ledger, view.ledger.similarity, FLOORS), _SIMILARITY
    )


def _anytime(views: Sequence[View]) -> list[Chart | None]:
    """Of attacks that go on after their first success: what they had found after so many queries."""
    views = [view for view in views if any(view.ledger.curves)]
    found = [(view, progress(view.ledger)) for view in views]
    return [
        _progress_chart(
            found,
            title="Similarity of the best text after so many queries",
            caption="What a smaller budget would have found: of the examples broken by then, the mean "
            "similarity of the best text to the original, by the attack's own encoder.",
            value=lambda point: point.similarity,
        ),
        _progress_chart(
            found,
            title="Share of words changed after so many queries",
            caption="Of the examples broken by then, the share of words that differ in the best text.",
            value=lambda point: point.share,
        ),
    ]


def _progress_chart(
    found: Sequence[tuple[View, list[QueryProgress]]],
    *,
    title: str,
    caption: str,
    value: Callable[[QueryProgress], Mean],
) -> Chart | None:
    if not any(points for _, points in found):
        return None
    lines = [
        _line(view, [point.queries for point in points], [value(point) for point in points])
        for view, points in found
        if points
    ]
    numbers = tuple(
        (
            view.name,
            f"{point.queries:,}",
            f"{point.broken:,} of {point.attacked:,}",
            f"{point.similarity.value:.3f}",
            f"{point.similarity.low:.3f} – {point.similarity.high:.3f}",
            f"{point.changed.value:.1f}",
        )
        for view, points in found
        for point in points
        if point.queries in MARKS or point is points[-1]
    )
    return Chart(
        title=title,
        svg=line_chart(lines, title=title, x_name="queries per example", x_form="{:,.0f}", log_x=True),
        caption=caption,
        columns=("run", "queries", "broken", "similarity", "95 % interval", "words changed"),
        lines=numbers,
        legend=tuple((view.name, view.number) for view, _ in found) if len(found) > 1 else (),
    )


def _over_measure(views: Sequence[View], name: str) -> Chart | None:
    """Accuracy when only texts count that are good enough by something measured after the attack."""
    measure, _ = parse_measure(name)
    measured = [view for view in views if name in view.measures]
    values = np.concatenate([view.measures[name][view.ledger.fallen] for view in measured])
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    high = measure.better == "high"
    limits = sorted({round(float(value), 2) for value in np.quantile(values, np.linspace(0, 1, 11))})
    count = accuracy_at_least if high else accuracy_at_most
    text = CurveText(
        f"Accuracy when only good texts count: {name}",
        f"{measure.title}, {'at least' if high else 'at most'}",
        "{:.2f}",
        "How many successes a reader might accept, measured after the attack.",
    )
    return _curve(measured, lambda view: count(view.ledger, view.measures[name], limits), text)


def _over_validity(views: Sequence[View]) -> Chart | None:
    """Accuracy when only texts count that the judge gives at least this probability of being valid."""
    judged = [view for view in views if VALID in view.measures]
    if not any(np.isfinite(view.measures[VALID][view.ledger.fallen]).any() for view in judged):
        return None
    limits = [step / 10 for step in range(11)]
    return _curve(
        judged, lambda view: accuracy_at_least(view.ledger, view.measures[VALID], limits), _VALIDITY
    )


def _curve(
    views: Sequence[View], points_of: Callable[[View], list[Point]], text: CurveText, *, log_x: bool = False
) -> Chart | None:
    curves = [(view, points_of(view)) for view in views]
    title, x_name, form, caption = text
    if not any(points for _, points in curves):
        return None
    lines = [
        _line(view, [point.at for point in points], [point.accuracy for point in points])
        for view, points in curves
    ]
    numbers = tuple(
        (
            view.name,
            form.format(point.at),
            f"{point.accuracy.value:.1%}",
            f"{point.accuracy.low:.1%} – {point.accuracy.high:.1%}",
        )
        for view, points in curves
        for point in points
    )
    return Chart(
        title=title,
        svg=line_chart(lines, title=title, x_name=x_name, x_form=form, log_x=log_x),
        caption=caption,
        columns=("run", x_name, "accuracy", "95 % interval"),
        lines=numbers,
        legend=tuple((view.name, view.number) for view, _ in curves) if len(curves) > 1 else (),
    )


def _line(view: View, xs: Sequence[float], means: Sequence[Mean | Rate]) -> ChartLine:
    """A run's values with their intervals, in the run's colour."""
    return ChartLine(
        view.name,
        xs,
        ys=[mean.value for mean in means],
        lows=[mean.low for mean in means],
        highs=[mean.high for mean in means],
        colour=view.number,
    )


def _histogram(view: View, runs: int) -> Chart | None:
    changed = view.ledger.changed[view.ledger.has("success")]
    if not len(changed):
        return None
    most = int(changed.max())
    # Long texts change many words: past twenty bars each one covers several counts.
    step = math.ceil(most / 20)
    starts = list(range(1, most + 1, step))
    counts = [int(((changed >= start) & (changed < start + step)).sum()) for start in starts]
    names = [str(start) if step == 1 else f"{start}–{start + step - 1}" for start in starts]
    title = "Words changed per success" + (f": {view.name}" if runs > 1 else "")
    bars = dict(zip(names, counts, strict=True))
    return _bars(bars, title, "How many words it takes.", ("words changed", "successes"))


def _parts_of_speech(view: View, runs: int) -> Chart | None:
    """Of the words that successes lost, where `unfooled measure --with changed-pos` counted them."""
    counted = {
        name.partition("/")[2]: int(np.nansum(column))
        for name, column in view.measures.items()
        if name.startswith("changed-pos:") and "/" in name
    }
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    if not ranked:
        return None
    title = "Parts of speech of the changed words" + (f": {view.name}" if runs > 1 else "")
    caption = "Which kinds of words carry the decision."
    return _bars(dict(ranked), title, caption, ("part of speech", "words changed"))


def _bars(counts: Mapping[str, int], title: str, caption: str, columns: tuple[str, str]) -> Chart:
    return Chart(
        title=title,
        svg=bar_chart(list(counts), list(counts.values()), title=title, x_name=columns[0]),
        caption=caption,
        columns=columns,
        lines=tuple((name, f"{count:,}") for name, count in counts.items()),
    )


def _confusions(view: View, runs: int) -> list[Chart]:
    found = []
    for attacked, when in ((False, "before the attack"), (True, "under attack")):
        table = confusion(view.ledger, len(view.labels), attacked=attacked)
        title = f"Decisions {when}" + (f": {view.name}" if runs > 1 else "")
        listed: list[list[int]] = table.tolist()
        decisions = (*view.labels, ABSTAINED) if table.shape[1] > len(view.labels) else view.labels
        found.append(
            Chart(
                title=title,
                svg=matrix(view.labels, decisions, listed, title=title),
                caption="Rows are true classes; a stronger field is a larger share of its row.",
                columns=("true class", *decisions),
                lines=tuple(
                    (name, *(f"{count:,}" for count in row))
                    for name, row in zip(view.labels, listed, strict=True)
                ),
            )
        )
    return found
