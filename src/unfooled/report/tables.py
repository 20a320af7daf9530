"""The rows of the summary, once for the terminal and once for files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from unfooled.metrics.summary import Mean, Rate, Summary, Tries

if TYPE_CHECKING:
    from unfooled.metrics.validity.accuracy import Validity

SUCCESS = "success rate of the attack"
UNDER_ATTACK = "accuracy under attack"
UNDER_VALID = "accuracy under attack by valid texts"
_MOST_CLASSES = 8
SIMILARITY = "similarity of the last edit"


class TableRow(NamedTuple):
    name: str
    value: str
    interval: str
    n: str


def summary_rows(summary: Summary) -> list[TableRow]:
    """Rates with their 95 % intervals and the number of examples behind them."""
    accuracy = [
        _rate("accuracy before attack", summary.accuracy_before),
        *both_numbers(summary),
        *_by_class(summary),
        *_abstentions(summary),
        _rate("macro F1 before attack", summary.f1_before),
        _rate("macro F1 under attack", summary.f1_under_attack),
    ]
    recall = summary.recall_of(summary.only)
    led = (
        [
            _rate(f"recall of {recall.name} before attack", recall.before),
            _rate(f"recall of {recall.name} under attack", recall.under_attack),
        ]
        if recall
        else []
    )
    rows = [
        *led,
        *(_outputs(summary) if summary.writes else [] if recall else accuracy),
        _rate(SUCCESS, summary.success_rate),
        _mean("words changed (of successes)", summary.words_changed, "{:.2f}"),
        _mean("words changed, share", summary.perturbed_share, "{:.1%}"),
        _mean("queries per attacked example", summary.queries, "{:.1f}"),
        TableRow("queries, median (10 % – 90 % – 99 %)", *_percentiles(summary), str(summary.queries.n)),
    ]
    if summary.draws.n:
        at = [row.name for row in rows].index(SUCCESS) + 1
        rows.insert(at, _mean("success rate over all random draws", summary.draws, "{:.2%}"))
    if summary.unreadable.n:
        rows.append(_rate("other decision, text unreadable (no success)", summary.unreadable))
    if summary.tries.n:
        rows.append(_few_edits(summary.tries))
    if summary.similarity.n:
        rows.append(_mean(SIMILARITY, summary.similarity, "{:.3f}"))
    return rows


def both_numbers(summary: Summary) -> list[TableRow]:
    """Accuracy under attack by any text and, of a judged run, by texts that a reader accepts."""
    rows = [_rate(UNDER_ATTACK, summary.accuracy_under_attack)]
    if (valid := summary.accuracy_under_valid_attack) is not None:
        rows.append(_rate(UNDER_VALID, valid))
    if (judged := summary.validity) is not None and judged.judged:
        rows.append(_rate("valid, of the successes", Rate(*judged.share, judged.judged)))
    return rows


def _by_class(summary: Summary) -> list[TableRow]:
    """A model that answers one class to everything holds on that class: the mean does not show it."""
    if summary.only:
        return []  # the table leads with the one class that was attacked
    attacked = [recall for recall in summary.recalls if recall.under_attack.n]
    lowest = sorted(attacked, key=lambda recall: recall.under_attack.value)[:_MOST_CLASSES]
    more = "" if len(lowest) == len(attacked) else f", one of the lowest {len(lowest)}"
    return [
        _rate(f"under attack, {recall.name}{more}", recall.under_attack)
        for recall in attacked
        if recall in lowest
    ]


def _abstentions(summary: Summary) -> list[TableRow]:
    """Ties, which are neither right nor another class; said only where there are any."""
    found = (("before", summary.abstained_before), ("under", summary.abstained_under_attack))
    return [_rate(f"abstained {when} attack", rate) for when, rate in found if rate.n and rate.value > 0]


def _few_edits(tries: Tries) -> TableRow:
    name = f"withstood fewer than {tries.bound} edits" if tries.bound > 1 else "withstood no edit at all"
    more = f"{tries.none} of them none at all" if tries.bound > 1 and tries.few else ""
    return TableRow(name, str(tries.few), more, str(tries.n))


def _percentiles(summary: Summary) -> tuple[str, str]:
    at = summary.query_percentiles
    return (f"{at[50]:.0f}", f"{at[10]:.0f} – {at[90]:.0f} – {at[99]:.0f}") if at else ("–", "")


def _outputs(summary: Summary) -> list[TableRow]:
    """Corpus scores of the outputs, and how sure the difference is."""
    rows = []
    for output in summary.outputs:
        name = {"bleu": "BLEU", "chrf": "chrF"}[output.metric]
        parts = (
            ("before attack", output.before, "{:.2f}", ""),
            ("under attack", output.after, "{:.2f}", ""),
            ("change", output.change, "{:+.2f}", f", p = {output.p:.3f}"),
        )
        for when, (value, low, high), form, more in parts:
            interval = f"{form.format(low)} – {form.format(high)}{more}"
            rows.append(TableRow(f"{name} {when}", form.format(value), interval, str(output.n)))
    return rows


def footnotes(summary: Summary) -> list[str]:
    """How sacrebleu computed its scores, in its own words, and why a row counts fewer examples."""
    lines = [f"sacrebleu {output.metric}: {output.signature}" for output in summary.outputs]
    if (judged := summary.validity) is not None:
        lines += _on_the_judge(judged)
    if summary.fitting:
        n = summary.queries.n
        each = f": {summary.queries.value + summary.fitting / n:.1f} per example with them" if n else ""
        lines.append(f"queries: {summary.fitting:,} more fitted the surrogate before the attack{each}")
    successes, measured = summary.counts["success"], summary.similarity.n
    if 0 < measured < successes:
        lines.append(
            f"{SIMILARITY}: of {successes} successes {measured} were measured; texts shorter than the window "
            "of the similarity constraint are let through unmeasured"
        )
    return lines


def _on_the_judge(judged: Validity) -> list[str]:
    lines = []
    from unfooled.metrics.validity.model import REDUCED

    if judged.variant == REDUCED:
        lines.append("valid texts: judged without the language model, on fewer measures")
    if judged.unjudged:
        lines.append(f"valid texts: {judged.unjudged} successes are not judged yet and count as valid")
    return lines


def counts_line(summary: Summary) -> str:
    told = ((name, count) for name, count in summary.counts.items() if count or name != "abstained")
    counts = ", ".join(f"{count} {name}" for name, count in told)
    return f"{summary.total} examples: {counts}"


def _rate(name: str, rate: Rate) -> TableRow:
    if not rate.n:
        return TableRow(name, "–", "", "0")
    return TableRow(name, f"{rate.value:.1%}", f"{rate.low:.1%} – {rate.high:.1%}", str(rate.n))


def _mean(name: str, mean: Mean, form: str) -> TableRow:
    if not mean.n:
        return TableRow(name, "–", "", "0")
    return TableRow(
        name, _shown(mean.value, form), f"{_shown(mean.low, form)} – {_shown(mean.high, form)}", str(mean.n)
    )


def _shown(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"
