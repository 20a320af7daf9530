"""What an attack is expected to cost, in lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from unfooled.checks.estimate import Estimate, Span
from unfooled.report.live import about


def cost_lines(found: Estimate) -> list[str]:
    """Amounts with the interval of the pilot's mean; nothing was written."""
    done = f", {found.finished:,} of them finished: {found.left:,} to go" if found.finished else ""
    workers = f" with {found.workers} workers" if found.workers > 1 else ""
    lines = [
        f"examples  {found.examples:,}{done}",
        f"queries   {_span(found.queries, lambda number: f'{number:,.0f}')}",
        f"time      {_span(found.seconds, about)}{workers}, at the speed of the pilot",
    ]
    if found.cost is not None:
        lines.append(f"money     {_span(found.cost, lambda amount: f'{amount:,.2f}')}")
    if found.fitting:
        lines.append(
            f"surrogate up to {found.fitting:,} queries more, before the attack; the pilot went without it"
        )
    lines.append(
        f"dry run: {found.pilot} examples were attacked as a pilot ({found.pilot_queries:,} queries), "
        "nothing was written; in brackets: 95 % intervals of its means"
    )
    return lines


def _span(span: Span, shown: Callable[[float], str]) -> str:
    return f"about {shown(span.value)} ({shown(span.low)} – {shown(span.high)})"
