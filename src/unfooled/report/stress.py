"""The worst case as a table for the terminal, and as one short self-contained page."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import unfooled
from unfooled.checks.worst_case import Stress
from unfooled.files import write_named
from unfooled.report.diffs import visible
from unfooled.report.evaluation import rate
from unfooled.report.tables import duration
from unfooled.report.templates import page_environment, page_file
from unfooled.report.terminal import say, wide_table

PAGE = "stress.html"
HEADINGS = ("attack", "tried", "broke", "first", "alone", "errors", "queries", "time")
CLASS_HEADINGS = ("class", "clean accuracy", "worst case")
MOST_KEYS = 10  # of rows that are named


def headline(result: Stress) -> str:
    """The one number, and beside it the one that only valid texts count for."""
    valid = rate(result.valid) if result.valid else "not judged"
    return f"accuracy in the worst case {rate(result.worst)} %, by valid texts {valid}"


def attack_rows(result: Stress) -> list[tuple[str, ...]]:
    rows = [
        (
            f"{attack.attack}{'*' if attack.draws > 1 else ''}",
            f"{attack.tried:,}",
            f"{attack.broke:,}",
            f"{attack.first:,}",
            "–" if attack.alone is None else f"{attack.alone:,}",
            f"{attack.errors:,}",
            f"{attack.queries:,}",
            duration(attack.seconds),
        )
        for attack in result.attacks
    ]
    broken = f"{result.states['broken']:,}"
    return [*rows, ("in all", "", broken, broken, "", "", f"{result.queries:,}", duration(result.seconds))]


def class_rows(result: Stress) -> list[tuple[str, ...]]:
    return [(share.name, rate(share.clean), rate(share.worst)) for share in result.classes]


def remarks(result: Stress) -> list[str]:
    """What must be said beside the number: what was not tried, what failed, what was done otherwise."""
    lines = [f"left out: {attack}: {why}" for attack, why in result.left_out]
    if result.undecided:
        low, high = result.bounds
        lines.append(
            f"undecided: {len(result.undecided)} rows stand only because an attack ended in an error on them "
            f"({_keys(result.undecided)}); they are in no rate. If all of them fell, {low:.1%} would stand, "
            f"if none {high:.1%}"
        )
    if result.errors:
        lines.append(f"errors: {len(result.errors)} rows could not be scored at all ({_keys(result.errors)})")
    if result.untried:
        lines.append(
            f"untried: for {result.untried} of the {result.states['stands']} rows that stand no attack had "
            "any edit to try; that they stand says nothing about robustness"
        )
    if result.remembers:
        lines.append(
            f"{result.remembers}; a search is blind there, and texts at which attacks ended count as a fresh "
            "process answers them, so the worst case is lower still"
        )
    return [*lines, *result.notes]


def legend(result: Stress) -> list[str]:
    lines = [
        "In brackets: 95 % intervals. first: broken by this attack and by none before it. alone: by no "
        "other; – where others did not try these rows (--every lets all try)."
    ]
    if any(attack.draws > 1 for attack in result.attacks):
        lines.append("* each query is a mean over draws of a random model.")
    return lines


def print_stress(console: Console, result: Stress) -> None:
    console.width = max(console.width, 120)  # a table that is folded cannot be read
    say(console, visible(f"{result.suite} on {result.victim}, data {result.data}, {result.n} rows"))
    say(console, f"clean accuracy {rate(result.clean)} %")
    say(console, headline(result))
    console.print(wide_table("", HEADINGS, attack_rows(result)))
    console.print(wide_table("", CLASS_HEADINGS, class_rows(result)))
    for line in remarks(result):
        say(console, f"! {visible(line)}")
    for line in legend(result):
        say(console, line)


def write_page(result: Stress, out: Path) -> Path:
    """One page that asks nobody for anything."""
    page = rendered(
        "stress.html",
        title=f"{result.suite} on {result.victim}",
        result=result,
        numbers=_numbers(result),
        tables=[
            ("Which attack broke what", HEADINGS, attack_rows(result), " ".join(legend(result))),
            ("By class", CLASS_HEADINGS, class_rows(result), ""),
        ],
        remarks=remarks(result),
    )
    return write_named(out, page)


def rendered(page: str, **given: Any) -> str:
    """A page of our own with its style."""
    nonce = hashlib.sha256(repr(sorted(given.items(), key=str)).encode()).hexdigest()[:24]
    template = page_environment().get_template(page)
    return template.render(css=page_file("page.css"), version=unfooled.__version__, nonce=nonce, **given)


def _numbers(result: Stress) -> list[dict[str, str]]:
    return [
        {"value": rate(result.worst), "name": "% right in the worst case", "note": f"n = {result.worst.n}"},
        {
            "value": rate(result.valid) if result.valid else "–",
            "name": "% right, only valid texts counted",
            "note": f"n = {result.valid.n}" if result.valid else "no text of these runs was judged",
        },
        {"value": rate(result.clean), "name": "% right before any attack", "note": f"n = {result.clean.n}"},
    ]


def _keys(keys: Sequence[int]) -> str:
    named = ", ".join(map(str, keys[:MOST_KEYS]))
    return f"rows {named}{' …' if len(keys) > MOST_KEYS else ''}"
