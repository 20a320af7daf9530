"""A summary as a table of HTML, for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unfooled.metrics.summary import Mean, Rate, Summary


def summary_html(summary: Summary) -> str:
    """The main numbers, each with its 95 % interval and the number of examples behind it."""
    rows: list[tuple[str, Rate | Mean, str]] = [
        ("success rate of the attack", summary.success_rate, "{:.1%}"),
        ("words changed (of successes)", summary.words_changed, "{:.2f}"),
        ("queries per attacked example", summary.queries, "{:.1f}"),
    ]
    if not summary.writes:
        what = f"recall of {escape(summary.only)}" if summary.only else "accuracy"
        rows[:0] = [
            (f"{what} before attack", summary.accuracy_before, "{:.1%}"),
            (f"{what} under attack", summary.accuracy_under_attack, "{:.1%}"),
        ]
        if (valid := summary.accuracy_under_valid_attack) is not None:
            rows.insert(2, ("accuracy under attack by valid texts", valid, "{:.1%}"))
    counts = ", ".join(f"{count} {name}" for name, count in summary.counts.items())
    cells = "".join(
        f"<tr><td>{name}</td><td>{_shown(found.value, form)}</td>"
        f"<td>{_shown(found.low, form)} – {_shown(found.high, form)}</td><td>{found.n}</td></tr>"
        for name, found, form in rows
    )
    warnings = "".join(f"<p>{escape(caution)}</p>" for caution in summary.cautions)
    head = "<tr><th></th><th>value</th><th>95 % interval</th><th>n</th></tr>"
    return f"<table><caption>{summary.total} examples: {counts}</caption>{head}{cells}</table>{warnings}"


def _shown(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)
