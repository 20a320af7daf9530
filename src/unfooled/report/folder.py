"""A folder that can be mailed: the page, the summary as Markdown and JSON, every result as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import astuple
from itertools import islice
from pathlib import Path

from unfooled.core.result import Result, decided, decision_name
from unfooled.errors import RunFileError
from unfooled.metrics.summary import Summary, summarise
from unfooled.report.diffs import Piece, in_markdown, output_pieces, pieces
from unfooled.report.html import write_html
from unfooled.report.tables import counts_line, footnotes, summary_rows
from unfooled.runs.export import export
from unfooled.runs.file import RunFile


def write_report(run: Path, out: Path, *, examples: int = 25) -> Path:
    """Write `report.html`, `summary.md`, `summary.json` and `results.csv` into `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFileError(
            f"{out}: no folder can be made here ({error.strerror or error})", "choose another path"
        ) from error
    with closing(RunFile.read(run)) as file:
        summary = summarise(file)
        header = file.header
        shown = list(islice(file.results(outcome="success"), examples))
        labels = file.labels
    (out / "summary.json").write_text(json.dumps(summary.to_dict(), indent=2) + "\n", encoding="utf-8")
    (out / "summary.md").write_text(
        _markdown(summary, header["environment"], shown, labels), encoding="utf-8"
    )
    export(run, out / "results.csv", force=True)
    write_html([run], out / "report.html")
    return out


def _markdown(
    summary: Summary, environment: dict[str, object], shown: list[Result], labels: tuple[str, ...]
) -> str:
    title = f"{environment['attack']} on {environment['victim']}"
    lines = [
        f"# {in_markdown(title)}",
        "",
        f"Data: {in_markdown(str(environment['data']))}. Rates carry 95 % intervals; errors are in no rate.",
        "",
        *(f"**Warning: {in_markdown(caution)}.**\n" for caution in summary.cautions),
        "| | value | 95 % interval | n |",
        "|---|---|---|---|",
    ]
    lines += [f"| {row.name} | {row.value} | {row.interval} | {row.n} |" for row in summary_rows(summary)]
    lines += ["", f"{counts_line(summary)}."]
    lines += [f"\n`{line}`" for line in footnotes(summary)]
    if summary.substitutions:
        lines += ["", "## Words that fooled it most often", "", "| was | became | times |", "|---|---|---|"]
        lines += [
            f"| {in_markdown(was) or '(inserted)'} | {in_markdown(became) or '(deleted)'} | {count} |"
            for was, became, count in map(astuple, summary.substitutions)
        ]
    if shown:
        lines += ["", f"## {len(shown)} examples", ""]
        lines += [f"- {_verdict(result, labels)}{_diff(pieces(result))}{_output(result)}" for result in shown]
    if summary.error_notes:
        lines += ["", "## Errors", ""]
        lines += [
            f"- {note.count} × {in_markdown(note.message)} (first: example {note.key})"
            for note in summary.error_notes
        ]
    return "\n".join(lines) + "\n"


def _verdict(result: Result, labels: tuple[str, ...]) -> str:
    if not labels:
        return ""
    after = decision_name(labels, decided(result.perturbed_probs))
    return f"{in_markdown(labels[result.label])} → {in_markdown(after)}: "


def _output(result: Result) -> str:
    return f"\n  → {_diff(output_pieces(result))}" if result.output else ""


def _diff(found: Iterable[Piece]) -> str:
    form = {"same": "{}", "gone": "~~{}~~ ", "new": "**{}**"}
    return "".join(form[piece.kind].format(in_markdown(piece.text)) for piece in found)
