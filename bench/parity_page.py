"""`docs/parity.md` from the table of rows and the figures in `parity.json`. Needs no TextAttack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parity_table import OPENATTACK, PART_NAMES, TEXTATTACK, Row

BENCH = Path(__file__).resolve().parent
RESULTS = BENCH / "parity.json"
PAGE = BENCH.parent / "docs" / "parity.md"

HEAD = """# Parity with TextAttack and OpenAttack

Written by `python bench/parity.py` from `bench/parity.json`; do not edit. One row for every recipe of
TextAttack 0.3.11 and every attacker of OpenAttack 2.1.1.

Both sides attack the same test sentences of MR (10 to 40 words) with the same victim and the same parts, in
turns. The victim is TF-IDF with logistic regression where nothing else is said; *speed* is measured on a
fine-tuned MiniLM with TextAttack's padding patched, in CPU seconds, so that other programs count little.

- **text by text**: TextAttack is deterministic there; agreement is the share of examples with the same
  outcome and the same text. Each difference is explained by running TextAttack again with that one thing
  changed.
- **by rates**: random attacks; success rate and queries per attacked text with 95 % intervals. Agreement says
  whether they overlap.
- **by cases**: cannot be run side by side; the note says why, and which tests pin it on cases worked out by
  hand.

Queries are texts put to the victim, repetitions included: TextAttack's own definition. TextAttack comes
first in every pair of figures.

The aim for *speed* is 1.5, and 3 for alzantot, iga and pso. It is measured in two blocks of few sentences (n
is in the cell), on a machine that others used as well. Where it is near 1, both sides spend their time inside
MiniLM: with its padding patched TextAttack, too, asks about the texts of a step in one batch. Two changes
have since made MiniLM's passes faster on our side only, with the same texts asked:
[linear layers by oneDNN](explanation/decisions/0011-linear-layers-by-onednn.md), and texts of several lengths
in one pass. Where the tokens that MiniLM read are told, the figure is newer than these; the others are older.
*Each* is the same ratio for one token: random attacks ask about other texts on the two sides, and of so few
sentences one that takes long on one side alone decides the first ratio. pso and leap come to 2.0 a token: the
rest is luck, and with as many tokens as TextAttack reads pso would miss its 3: of our 4.41 seconds for two of
its sentences 4.40 were spent in the victim. `–` means that it was not measured; hotflip attacks the LSTM
only, and its seconds are those of the column before.
"""
COLUMNS = (
    "theirs",
    "ours",
    "compared",
    "agreement",
    "success",
    "queries",
    "CPU seconds",
    "speed on MiniLM",
    "note",
)
COMPARED = {
    "texts": "text by text",
    "rates": "by rates",
    "cases": "by cases",
    "absent": "not here yet",
    "lost": "cannot be had",
}
NOTHING = "–"


def read_results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def overlap(a: list[float], b: list[float]) -> bool:
    """Whether two intervals, each behind its middle, have something in common."""
    return a[1] <= b[2] and b[1] <= a[2]


def agreement(row: Row, figures: dict[str, Any]) -> str:
    if not figures:
        return NOTHING
    if row.how == "texts":
        return (
            f"{figures['same_text'] / figures['examples']:.0%} ({figures['same_text']}/{figures['examples']})"
        )
    theirs, ours = figures["textattack"], figures["unfooled"]
    apart = [name for name in ("success", "queries") if not overlap(theirs[name], ours[name])]
    return f"{' and '.join(apart)} differ" if apart else "intervals overlap"


def success(side: dict[str, Any]) -> str:
    middle, low, high = side["success"]
    return f"{middle:.1%} ({low:.0%}–{high:.0%})".replace("%", " %")


def queries(side: dict[str, Any]) -> str:
    middle, low, high = side["queries"]
    return f"{middle:,.0f} ({low:,.0f}–{high:,.0f})"


def speed(figures: dict[str, Any]) -> str:
    measured = figures.get("speed") or (figures if figures.get("victim") == "minilm-mr" else None)
    if not measured:
        return NOTHING
    theirs, ours = measured["textattack"]["cpu_seconds"], measured["unfooled"]["cpu_seconds"]
    digits = 0 if min(theirs, ours) >= 10 else 1
    told = (
        f"{theirs:,.{digits}f} / {ours:,.{digits}f} = **{theirs / ours:.1f}×** (n = {measured['examples']})"
    )
    read = [measured[side].get("tokens", {}).get("victim", 0) for side in ("textattack", "unfooled")]
    if not all(read):
        return told
    per_token = theirs / read[0] / (ours / read[1])
    return f"{told}, tokens {read[0]:,} / {read[1]:,}: {per_token:.1f}× each"


def notes(row: Row, figures: dict[str, Any]) -> Iterator[str]:
    if row.why:
        yield row.why
    if row.parts:
        yield "same " + ", ".join(PART_NAMES[part] for part in row.parts)
    if row.longest:
        yield f"texts of at most {row.longest} words"
    if row.budget:
        yield f"at most {row.budget:,} queries per text"
    if row.without:
        yield f"without the random kinds of edit: {', '.join(row.without)}"
    for mend in row.mends:
        yield f"mended in TextAttack: {PART_NAMES[mend]}"
    if figures:
        yield f"n = {figures['examples']}"
        for reason, count in sorted(figures["reasons"].items(), key=lambda pair: -pair[1]):
            yield f"{count} × {reason or 'not explained'}"
        for side in ("textattack", "unfooled"):
            if count := figures[side]["outcomes"].get("error", 0):
                yield f"{count} errors of {side}"
    elif row.measured:
        yield "not measured yet"
    if row.tests:
        yield f"`tests/{row.tests}`"


def cells(row: Row, figures: dict[str, Any]) -> list[str]:
    def pair(show: Any) -> str:
        return f"{show(figures['textattack'])} / {show(figures['unfooled'])}" if figures else NOTHING

    def seconds(side: dict[str, Any]) -> str:
        return f"{side['cpu_seconds']:,.1f}"

    return [
        f"`{row.name}`",
        f"`{row.ours}`" if row.ours else NOTHING,
        COMPARED[row.how],
        agreement(row, figures),
        pair(success),
        pair(queries),
        pair(seconds),
        speed(figures),
        "; ".join(notes(row, figures)),
    ]


def table(rows: tuple[Row, ...], results: dict[str, Any]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    lines += [tuple(cells(row, results.get(row.name, {}) if row.measured else {})) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page() -> str:
    """The whole page: a pure function of the table and the committed figures."""
    results = read_results()
    sections = [f"## TextAttack 0.3.11\n\n{table(TEXTATTACK, results)}"]
    sections.append(f"## OpenAttack 2.1.1\n\n{table(OPENATTACK, {})}")
    return "\n\n".join([HEAD.rstrip(), *sections]) + "\n"


def write_page() -> None:
    PAGE.write_text(page(), encoding="utf-8")
