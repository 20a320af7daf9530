"""The table of an evaluation and its verdicts, once for the terminal and once for files."""

from __future__ import annotations

import json
import math
from pathlib import Path

from rich.console import Console

from unfooled.checks.evaluate import Evaluation, ModelReport
from unfooled.metrics.summary import Mean, Rate
from unfooled.report.diffs import in_markdown, visible
from unfooled.report.terminal import say, wide_table

HEADINGS = (
    "model",
    "clean accuracy",
    "macro F1",
    "pre-made",
    "under attack",
    "all checks",
    "queries",
    "words changed",
)
VALID_HEADING = "by valid texts"
MISSING = "retuned: missing"


def headings(evaluation: Evaluation) -> tuple[str, ...]:
    """With a column for valid texts, where an attack was judged."""
    return HEADINGS if not _judged(evaluation) else _with_valid(HEADINGS, VALID_HEADING)


def table_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """One row per model; a row of dashes stands for a control that is not there."""
    rows = [_row(model) for model in evaluation.models]
    if _judged(evaluation):
        cells = [rate(model.by_valid) if model.by_valid else "–" for model in evaluation.models]
        rows = [_with_valid(row, cell) for row, cell in zip(rows, cells, strict=True)]
    if evaluation.notes and len(rows) > 1:
        rows.insert(1, (MISSING, *["–"] * (len(rows[0]) - 1)))
    return rows


def _judged(evaluation: Evaluation) -> bool:
    return any(model.by_valid is not None for model in evaluation.models)


def _with_valid(cells: tuple[str, ...], cell: str) -> tuple[str, ...]:
    """Beside the accuracy under attack, so that both numbers are read together."""
    at = HEADINGS.index("under attack") + 1
    return (*cells[:at], cell, *cells[at:])


def legend(evaluation: Evaluation) -> list[str]:
    lines = [
        "In brackets: 95 % intervals. pre-made: texts that fooled the base. under attack: the attack on the "
        "model itself. all checks: right under that attack and under every check. Errors are in no rate."
    ]
    if _judged(evaluation):
        lines.append(
            "by valid texts: the same attack; a success counts as far as a reader would accept its text."
        )
    if any(model.chance != "none" for model in evaluation.models):
        lines.append(
            "* decides with the help of chance: a text counts as right if most fresh draws give its class. "
            "As the attack saw it, with one draw per text: "
            + ", ".join(
                f"{model.name} {rate(model.seen)}" for model in evaluation.models if model.chance != "none"
            )
            + "."
        )
    for model in evaluation.models:
        shown = [
            f"{visible(share.name)} {rate(share.under_attack)}"
            for share in model.classes
            if share.under_attack.n
        ]
        lines += [f"{model.name} under attack by class: {', '.join(shown)}."] if shown else []
        if model.abstained.value > 0:
            lines.append(f"{model.name} abstained under attack: {rate(model.abstained)}.")
    lines += [f"! {evaluation.rows}."] if evaluation.rows else []
    lines += [f"{model.name}: {model.tries}." for model in evaluation.models if model.tries.few]
    lines += [f"! {model.name}: {caution}." for model in evaluation.models for caution in model.cautions]
    return lines


def verdict_lines(evaluation: Evaluation) -> list[tuple[str, list[str]]]:
    """For each defended model its verdict, then what belongs to it."""
    return [(name, verdict.lines()) for name, verdict in evaluation.verdicts.items()]


def check_rows(report: ModelReport) -> list[tuple[str, str, str]]:
    """What each check did: its name, what it broke, its note."""
    return [
        (
            check.name,
            f"{check.broken} more broken, {check.tried} tried" if check.ran else "–",
            check.note + (f"; {check.errors} errors" if check.errors else ""),
        )
        for check in report.checks
    ]


def print_evaluation(console: Console, evaluation: Evaluation) -> None:
    console.width = max(console.width, 150)  # a table that is folded cannot be read
    title = f"{evaluation.attack} on {evaluation.data}, {evaluation.n} examples"
    console.print(wide_table(title, headings(evaluation), table_rows(evaluation)))
    for line in legend(evaluation):
        say(console, line)
    for name, (first, *rest) in verdict_lines(evaluation):
        say(console, f"\n{visible(name)}: {visible(first)}")
        for line in rest:
            say(console, f"  - {visible(line)}")
    for note in evaluation.notes if not evaluation.verdicts else ():
        say(console, f"\nnote: {note}")


def write_files(evaluation: Evaluation) -> list[Path]:
    """`evaluation.md` and `evaluation.json` in the evaluation's folder."""
    out = evaluation.out
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False)
    files = {"evaluation.md": markdown(evaluation), "evaluation.json": text + "\n"}
    for name, content in files.items():
        (out / name).write_text(content, encoding="utf-8")
    return [out / name for name in files]


def markdown(evaluation: Evaluation) -> str:
    lines = [
        f"# {evaluation.attack} on {in_markdown(evaluation.data)}, {evaluation.n} examples",
        "",
        "| " + " | ".join(headings(evaluation)) + " |",
        "|" + "---|" * len(headings(evaluation)),
        *("| " + " | ".join(map(in_markdown, row)) + " |" for row in table_rows(evaluation)),
        "",
        *legend(evaluation),
    ]
    for name, (first, *rest) in verdict_lines(evaluation):
        lines += [
            "",
            f"## {in_markdown(name)}",
            "",
            f"**{in_markdown(first)}**",
            "",
            *(f"- {in_markdown(line)}" for line in rest),
        ]
    lines += ["", "## Checks", ""]
    for model in evaluation.models:
        lines += [f"### {in_markdown(model.name)}", "", "| check | result | note |", "|---|---|---|"]
        lines += ["| " + " | ".join(map(in_markdown, row)) + " |" for row in check_rows(model)] + [""]
    lines += [in_markdown(note) for note in evaluation.notes if not evaluation.verdicts]
    return "\n".join(lines).rstrip() + "\n"


def _row(report: ModelReport) -> tuple[str, ...]:
    mark = "*" if report.chance != "none" else ""
    return (
        f"{report.name}{mark}",
        rate(report.clean),
        _bracketed(f"{100 * report.f1:.1f}", f"{100 * report.f1_low:.1f}", f"{100 * report.f1_high:.1f}"),
        rate(report.premade),
        rate(report.active),
        rate(report.worst),
        _mean(report.queries),
        f"{_mean(report.words)}, {100 * report.share.value:.1f} %" if report.words.n else "–",
    )


def rate(value: Rate) -> str:
    if not value.n:
        return "–"
    numbers = (f"{100 * number:.1f}" for number in (value.value, value.low, value.high))
    return _bracketed(*numbers)


def _mean(value: Mean) -> str:
    if not value.n or math.isnan(value.value):
        return "–"
    return _bracketed(*(f"{number:.1f}" for number in (value.value, value.low, value.high)))


def _bracketed(value: str, low: str, high: str) -> str:
    return f"{value} ({low}–{high})"
