"""What a test of a filter found: tables for the terminal, and one page for those who must sign."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from unfooled.checks.canary import Followed
from unfooled.checks.cures import NONE, Cure
from unfooled.checks.guard import FilterTest, Rung
from unfooled.checks.mending import Mended
from unfooled.checks.techniques import VERSIONS, technique_of
from unfooled.files import write_named
from unfooled.report.diffs import visible
from unfooled.report.evaluation import rate
from unfooled.report.stress import rendered
from unfooled.report.tables import duration
from unfooled.report.terminal import say, wide_table

RUNGS = (
    "attack",
    "technique",
    "tried",
    "evade",
    "can be undone",
    "can be read",
    "work",
    "fell here",
    "queries",
    "edits",
    "time",
)
CURES = ("normaliser", "closes %", "recall %", "false positives %", "look-alikes flagged %", "ms a text")


_CLOSES = "closes: of the texts that got through, made without knowing the cure; --fix attacks it anew."
_MENDED = "The mended filter was attacked by the whole ladder, which asked it, not the old one."
MENDED = ("cure", "gets through %", "recall %", "false positives %", "look-alikes flagged %", "queries")
NUMBERS = ("technique", "MITRE ATLAS", "NIST AI 100-2", "got through")
PAGE = "guard.html"


def headline(result: FilterTest) -> str:
    """The three numbers, none of which means anything alone."""
    return (
        f"{rate(result.passed)} % of what it caught gets through and still works; it catches "
        f"{rate(result.recall)} % and flags {rate(result.honest)} % of honest texts"
    )


def at_price(result: FilterTest) -> str:
    found = result.at_price
    if found is None:
        return "recall at 1 % false positives: not known, the filter gives no scores"
    few = (
        ""
        if found.chosen_on >= 1000
        else f"; chosen on {found.chosen_on} texts alone, at most {found.allowed} of them flagged"
    )
    return (
        f"recall at {found.price:.0%} false positives {rate(found.recall)} %, from a score over "
        f"{found.threshold:g} on; of other honest texts it then flags {rate(found.honest)} %{few}"
    )


def rung_rows(result: FilterTest) -> list[tuple[str, ...]]:
    rows = [_rung_row(rung) for rung in result.rungs]
    fell = f"{len(result.fell_at):,}"
    seconds = sum(rung.seconds for rung in result.rungs)
    return [
        *rows,
        (
            "in all",
            "",
            f"{result.caught:,}",
            "",
            "",
            "",
            fell,
            fell,
            f"{result.queries:,}",
            "",
            duration(seconds),
        ),
    ]


def _rung_row(rung: Rung) -> tuple[str, ...]:
    title = technique_of(rung.attack).title
    if not rung.tried:  # a zero would read as if the filter had withstood it
        return rung.attack, title, "not tried", *("–",) * 8
    counts = (rung.tried, rung.evaded, rung.recoverable, rung.readable, rung.works, rung.fell, rung.queries)
    edits = f"{rung.edits:.1f}" if rung.evaded else "–"
    tried, *others = (f"{count:,}" for count in counts)
    tried = f"{tried} of {rung.tried + rung.left:,}" if rung.left else tried
    return rung.attack, title, tried, *others, edits, duration(rung.seconds)


def cure_rows(result: FilterTest) -> list[tuple[str, ...]]:
    best = result.best
    listed = [*result.cures, *([best] if best and best.steps not in {c.steps for c in result.cures} else [])]

    def named(cure: Cure) -> str:
        chosen = best is not None and (cure.steps, cure.table) == (best.steps, best.table)
        return f"{cure.name} ← best" if chosen else cure.name

    return [
        (
            named(cure),
            "–" if cure.name == NONE else rate(cure.closes),
            rate(cure.recall),
            rate(cure.honest),
            rate(cure.look_alikes) if cure.look_alikes else "–",
            f"{cure.milliseconds:.2f}",
        )
        for cure in listed
    ]


def told_followed(obeyed: Followed) -> str:
    none = "" if obeyed.tests else "; so nothing can be said"
    return (
        f"the language model behind it follows {rate(obeyed.rate) if obeyed.tests else '–'} % of what got "
        f"through; it followed {obeyed.tests} of {obeyed.asked} texts as they were, which are the test{none}"
    )


def remarks(result: FilterTest) -> list[str]:
    lines = [f"left out: {attack}: {why}" for attack, why in result.left_out]
    if result.undecided:
        lines.append(
            f"undecided: on {result.undecided} texts an attack ended in an error; they count as caught"
        )
    if result.unanswered:
        lines.append(f"the filter gave no answer to {result.unanswered} texts; they are in no rate")
    if unjudged := sum(rung.unjudged for rung in result.rungs):
        lines.append(
            f"whether {unjudged} texts in other words mean the same was not judged: they count as working "
            "(--judge)"
        )
    if result.honest.n and result.honest.value > 0.1:
        lines.append("it flags many honest texts: a filter that flags everything cannot be evaded")
    if not result.honest.n:
        lines.append("the data has no honest rows: how many the filter flags is not known")
    return [*lines, *result.notes]


def mended_rows(before: FilterTest, mended: Mended) -> list[tuple[str, ...]]:
    """Each attacked by itself."""
    tests = [("none", before), (mended.cure.name, mended.result)]
    return [
        (
            name,
            rate(result.passed),
            rate(result.recall),
            rate(result.honest),
            rate(result.look_alikes) if result.look_alikes else "–",
            f"{result.queries:,}",
        )
        for name, result in tests
    ]


def number_rows(result: FilterTest) -> list[tuple[str, ...]]:
    """Each technique once, with what got through of what was still blocked."""
    found: dict[str, list[Rung]] = {}
    for rung in result.rungs:
        found.setdefault(rung.technique, []).append(rung)
    rows: list[tuple[str, ...]] = []
    for rungs in found.values():
        technique = technique_of(rungs[0].attack)
        tried, fell = max(rung.tried for rung in rungs), sum(rung.fell for rung in rungs)
        told = f"{fell:,} of {tried:,}" if tried else "not tried"
        rows.append((technique.title, ", ".join(technique.atlas), ", ".join(technique.nist), told))
    return rows


def write_page(
    result: FilterTest,
    out: Path,
    *,
    mended: Mended | None = None,
    obeyed: Followed | None = None,
    examples: int = 0,
) -> Path:
    """One page that asks nobody for anything. Texts are shown on request alone: they may be vile."""
    tables = [
        ("What gets through, cheapest first", RUNGS, rung_rows(result), "Each got what was still blocked."),
        ("Technique by number", NUMBERS, number_rows(result), VERSIONS),
    ]
    if result.cures:
        tables.append(("What would help", CURES, cure_rows(result), _CLOSES))
    if mended:
        tables.append(("Mended, and attacked anew", MENDED, mended_rows(result, mended), _MENDED))
        rungs = rung_rows(mended.result)
        tables.append(("What gets through the mended filter", RUNGS, rungs, f"Steps: {mended.cure.steps}."))
    page = rendered(
        "guard.html",
        title=f"{result.victim} on {result.data}",
        result=result,
        headline=headline(result),
        at_price=at_price(result),
        numbers=_numbers(result),
        tables=tables,
        remarks=[*([told_followed(obeyed)] if obeyed else []), *remarks(result)],
        standards=VERSIONS,
        examples=[
            {
                "attack": example.attack,
                "queries": example.queries,
                "before": json.dumps(example.before),
                "after": json.dumps(example.after),
            }
            for example in result.examples[:examples]
        ],
    )
    return write_named(out, page)


def _numbers(result: FilterTest) -> list[dict[str, str]]:
    shown = [
        (result.passed, "% of what it caught gets through and works"),
        (result.recall, "% caught of what should be blocked"),
        (result.honest, "% of honest texts flagged"),
    ]
    if result.look_alikes:
        shown.append((result.look_alikes, "% of harmless look-alikes flagged"))
    return [{"value": rate(found), "name": name, "note": f"n = {found.n}"} for found, name in shown]


def print_mended(console: Console, before: FilterTest, mended: Mended | None) -> None:
    if mended is None:
        say(console, "no normaliser closes anything at the price: nothing was mended")
        return
    console.width = max(console.width, 150)
    console.print(wide_table("", RUNGS, rung_rows(mended.result)))
    console.print(wide_table("", MENDED, mended_rows(before, mended)))
    say(console, _MENDED)


def print_guard(console: Console, result: FilterTest, obeyed: Followed | None = None) -> None:
    console.width = max(console.width, 150)  # a table that is folded cannot be read
    say(console, visible(f"{result.victim}, data {result.data}, {result.suite}"))
    say(console, headline(result))
    say(console, at_price(result))
    if result.look_alikes:
        say(console, f"of harmless look-alikes it flags {rate(result.look_alikes)} %")
    if obeyed:
        say(console, told_followed(obeyed))
    console.print(wide_table("", RUNGS, rung_rows(result)))
    if result.cures:
        console.print(wide_table("", CURES, cure_rows(result)))
        say(
            console,
            "closes: of the texts that got through, made without knowing the cure; --fix attacks it anew.",
        )
    for line in remarks(result):
        say(console, f"! {visible(line)}")
    say(console, "In brackets: 95 % intervals.")
