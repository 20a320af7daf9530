"""Small pictures as SVG text: they take their colours from the page, so they follow light and dark.

Every picture carries a title and a description for people who do not see it. All words in it are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from unfooled.report.diffs import visible

_WIDTH, _HEIGHT = 460, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 12, 40
SERIES = 6  # colours s0 … s5 of the style sheet; further lines use them again


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Values `ys` between `lows` and `highs` at the places `xs`."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    colour: int = 0


def line_chart(
    lines: Sequence[ChartLine], *, title: str, x_name: str, x_form: str = "{:g}", log_x: bool = False
) -> str:
    """Shares between 0 and 1 over `x`, each with its interval as a band."""
    places = sorted({x for line in lines for x in line.xs})
    if not places:
        return ""
    scale = _Scale(places[0], places[-1], _LEFT, _WIDTH - _RIGHT, log_x)
    parts = [_frame(scale, _ticks(places, log_x), x_name, x_form)]
    for line in lines:
        colour = f"s{line.colour % SERIES}"
        top = [f"{scale(x):.1f},{_y(high):.1f}" for x, high in zip(line.xs, line.highs, strict=True)]
        bottom = [f"{scale(x):.1f},{_y(low):.1f}" for x, low in zip(line.xs, line.lows, strict=True)]
        parts.append(f'<polygon class="band {colour}" points="{" ".join([*top, *reversed(bottom)])}"/>')
        middle = [f"{scale(x):.1f},{_y(y):.1f}" for x, y in zip(line.xs, line.ys, strict=True)]
        parts.append(f'<polyline class="line {colour}" points="{" ".join(middle)}"/>')
        for x, y in zip(line.xs, line.ys, strict=True):
            told = f"{line.name}: {y:.1%} at {x_form.format(x)}"
            parts.append(
                f'<circle class="dot {colour}" cx="{scale(x):.1f}" cy="{_y(y):.1f}" r="2.6">'
                f"<title>{_text(told)}</title></circle>"
            )
    ends = "; ".join(
        f"{line.name}: from {line.ys[0]:.0%} at {x_form.format(line.xs[0])} "
        f"to {line.ys[-1]:.0%} at {x_form.format(line.xs[-1])}"
        for line in lines
    )
    return _svg("".join(parts), title, f"Line chart over {x_name}. {ends}.")


def bar_chart(names: Sequence[str], counts: Sequence[int], *, title: str, x_name: str) -> str:
    """Upright bars, one per name."""
    if not counts or not max(counts):
        return ""
    top = max(counts) + max(counts) % 2  # even, so that the rule in the middle is a whole number
    room = (_WIDTH - _LEFT - _RIGHT) / len(counts)
    parts = [_rules([(share, f"{round(share * top):,}") for share in (0.0, 0.5, 1.0)])]
    every = math.ceil(len(names) / 16)
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        x = _LEFT + place * room
        y = _y(count / top)
        parts.append(
            f'<rect class="bar s0" x="{x + room * 0.1:.1f}" y="{y:.1f}" width="{room * 0.8:.1f}" '
            f'height="{_HEIGHT - _BOTTOM - y:.1f}"><title>{_text(f"{name}: {count:,}")}</title></rect>'
        )
        if place % every == 0:
            parts.append(_label(x + room / 2, _HEIGHT - _BOTTOM + 14, name, "middle"))
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_name, "middle"))
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=True))
    return _svg("".join(parts), title, f"Bar chart. {told}.")


def matrix(
    labels: Sequence[str], decisions: Sequence[str], table: Sequence[Sequence[int]], *, title: str
) -> str:
    """Counts per true class (rows) and decision (columns); darker is a larger share of the row."""
    n = len(decisions)
    if not n or n > 12:
        return ""
    left, top, cell = 110, 34, min(90.0, (_WIDTH - 124) / n)
    height = min(44.0, cell)
    parts = [_label(left + n * cell / 2, 12, "decided", "middle")]
    for column, name in enumerate(decisions):
        parts.append(_label(left + (column + 0.5) * cell, top - 6, _short(name, int(cell / 7)), "middle"))
    for row, name in enumerate(labels):
        y = top + row * height
        parts.append(_label(left - 8, y + height / 2 + 4, _short(name, 14), "end"))
        total = max(1, sum(table[row]))
        for column, count in enumerate(table[row]):
            x = left + column * cell
            share = count / total
            told = f"true {name}, decided {decisions[column]}: {count:,} ({share:.0%} of the row)"
            parts.append(
                f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{cell - 2:.1f}" '
                f'height="{height - 2:.1f}" style="fill-opacity:{0.08 + 0.72 * share:.2f}">'
                f"<title>{_text(told)}</title></rect>"
            )
            parts.append(_label(x + cell / 2 - 1, y + height / 2 + 4, f"{count:,}", "middle", "count"))
    rows = "; ".join(
        f"true {name}: {', '.join(f'{count:,} {other}' for count, other in zip(row, decisions, strict=True))}"
        for name, row in zip(labels, table, strict=True)
    )
    return _svg("".join(parts), title, f"Table of decisions. {rows}.", int(top + len(labels) * height + 6))


def share_matrix(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[float | None]], *, title: str
) -> str:
    """Shares between 0 and 1, darker where larger; None is an empty field."""
    if not rows or not columns or max(len(rows), len(columns)) > 12:
        return ""
    left, top, cell = 130, 24, min(110.0, (_WIDTH - 144) / len(columns))
    height = 38.0
    parts = []
    for column, name in enumerate(columns):
        parts.append(_label(left + (column + 0.5) * cell, top - 6, _short(name, int(cell / 7)), "middle"))
    for row, name in enumerate(rows):
        y = top + row * height
        parts.append(_label(left - 8, y + height / 2 + 4, _short(name, 17), "end"))
        for column, share in enumerate(cells[row]):
            x = left + column * cell
            known = share is not None and not math.isnan(share)
            told = f"{name}, {columns[column]}: {f'{share:.1%}' if known else 'not measured'}"
            dark = 0.08 + 0.72 * (share or 0.0) if known else 0.0
            parts.append(
                f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{cell - 2:.1f}" '
                f'height="{height - 2:.1f}" style="fill-opacity:{dark:.2f}">'
                f"<title>{_text(told)}</title></rect>"
            )
            shown = f"{share:.0%}" if known else "–"
            parts.append(_label(x + cell / 2 - 1, y + height / 2 + 4, shown, "middle", "count"))
    lines = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{'not measured' if share is None else f'{share:.0%}'} {other}"
            for share, other in zip(row, columns, strict=True)
        )
        for name, row in zip(rows, cells, strict=True)
    )
    return _svg("".join(parts), title, f"Table of shares. {lines}.", int(top + len(rows) * height + 6))


HALF = 340  # the width of one of two maps


def heat_map(
    columns: Sequence[str],
    rows: Sequence[str],
    weights: Sequence[Sequence[float]],
    *,
    title: str,
    width: int,
) -> tuple[str, float]:
    """A map of weights from 0 to 1 without its frame, and its height; a darker field is more."""
    left, top = 84.0, 84.0
    cell = min(22.0, (width - left - 6) / max(1, len(columns)))
    parts = [_label(4, 14, title, "start")]
    for at, name in enumerate(columns):
        x, y = left + (at + 0.6) * cell, top - 5
        turned = f'transform="rotate(-60 {x:.1f} {y:.1f})"'
        parts.append(f'<text class="label" {turned} x="{x:.1f}" y="{y:.1f}">{_text(_short(name, 12))}</text>')
    for row, name in enumerate(rows):
        y = top + row * cell
        parts.append(_label(left - 5, y + cell / 2 + 4, _short(name, 11), "end"))
        for at, weight in enumerate(weights[row]):
            told = f"{name} looks at {columns[at]}: {weight:.2f}"
            parts.append(
                f'<rect class="cell" x="{left + at * cell:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" '
                f'height="{cell - 1:.1f}" style="fill-opacity:{0.04 + 0.96 * min(1.0, weight):.2f}">'
                f"<title>{_text(told)}</title></rect>"
            )
    return "".join(parts), top + len(rows) * cell + 6


def side_by_side(maps: Sequence[tuple[str, float]], *, title: str) -> str:
    """Maps of the width `HALF` in one picture."""
    body = "".join(
        f'<g transform="translate({at * HALF} 0)">{drawn}</g>' for at, (drawn, _) in enumerate(maps)
    )
    height = max(height for _, height in maps)
    return _svg(body, title, "Maps of attention, before and after.", int(height), HALF * len(maps))


# -- inside ------------------------------------------------------------------------------------------------


class _Scale:
    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self._log = log
        self._low, self._high = self._at(low), self._at(high)
        self._start, self._end = start, end

    def _at(self, x: float) -> float:
        return math.log10(max(x, 1e-9)) if self._log else x

    def __call__(self, x: float) -> float:
        span = self._high - self._low
        share = (self._at(x) - self._low) / span if span else 0.5
        return self._start + share * (self._end - self._start)


def _ticks(places: Sequence[float], log_x: bool) -> list[float]:
    if len(places) <= 8 and not log_x:
        return list(places)
    if log_x:
        powers = [x for x in places if math.log10(x).is_integer()]
        return sorted({*powers, places[-1]}) if len(powers) > 1 else [places[0], places[-1]]
    step = math.ceil(len(places) / 7)
    return list(places[::step])


def _frame(scale: _Scale, ticks: Sequence[float], x_name: str, x_form: str) -> str:
    parts = [_rules([(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)])]
    last = -100.0
    for tick in ticks:
        x = scale(tick)
        if x - last < 34:
            continue
        last = x
        parts.append(_label(x, _HEIGHT - _BOTTOM + 15, x_form.format(tick), "middle"))
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_name, "middle"))
    return "".join(parts)


def _rules(levels: Sequence[tuple[float, str]]) -> str:
    parts = []
    for share, name in levels:
        y = _y(share)
        parts.append(
            f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            + _label(_LEFT - 6, y + 4, name, "end")
        )
    return "".join(parts)


def _y(share: float) -> float:
    return _TOP + (1 - min(1.0, max(0.0, share))) * (_HEIGHT - _TOP - _BOTTOM)


def _label(x: float, y: float, words: str, anchor: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(words)}</text>'


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: max(1, most - 1)] + "…"


def _text(words: str) -> str:
    return escape(visible(words), quote=True)


def _svg(body: str, title: str, description: str, height: int = _HEIGHT, width: int = _WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{_text(f"{title}. {description}")}">'
        f"<title>{_text(title)}</title>{body}</svg>"
    )
