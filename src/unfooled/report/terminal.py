"""Tables and coloured word diffs for the terminal."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as Styled

from unfooled.core.result import KEYWORD, Result, decided, decision_name
from unfooled.metrics.summary import Summary, summarise
from unfooled.report.diffs import Piece, as_written, output_pieces, pieces, visible
from unfooled.report.tables import counts_line, footnotes, summary_rows
from unfooled.runs.file import REMARK, RunFile

_LONGEST = 60  # characters shown of an edited word
_STYLES = {"same": "", "gone": "red strike", "new": "bold green"}


def show_run(path: Path, *, examples: int, as_json: bool, told: bool = False) -> Summary:
    """Print a run, or its numbers as JSON. `told`: its notices were shown before."""
    with closing(RunFile.read(path)) as file:
        summary = summarise(file)
        if as_json:
            notices = (file.header.get("environment") or {}).get("notices") or []
            more = {"missing": file.missing(), "run": str(path), "notices": notices}
            sys.stdout.write(json.dumps(summary.to_dict() | more, indent=2) + "\n")
        else:
            print_run(Console(), file, summary, path=path, examples=examples, told=told)
    return summary


def print_run(
    console: Console, file: RunFile, summary: Summary, *, path: Path, examples: int, told: bool = False
) -> None:
    """The summary of a run, then a few of its successes as word diffs.

    Its notices are left out where they were `told` before: by the command that made the run.
    """
    environment = file.header["environment"]
    title = f"{environment['attack']} on {environment['victim']}, data {environment['data']}"
    console.print(visible(title), style="bold", highlight=False, markup=False)
    for notice in () if told else environment.get("notices") or ():
        console.print(f"! {visible(notice)}", style="yellow", highlight=False, markup=False)
    console.print(rows_table(summary_rows(summary)))
    for caution in summary.cautions:
        console.print(f"! {visible(caution)}", style="bold red", highlight=False, markup=False)
    console.print(counts_line(summary), highlight=False)
    if missing := file.missing():
        console.print(f"{missing:,} more are missing: repeat the command to go on", style="yellow")
    for line in footnotes(summary):
        console.print(line, style="dim", highlight=False, markup=False)
    if shown := list(islice(file.results(outcome="success"), examples)):
        console.print(f"\n[bold]{len(shown)} of {summary.counts['success']} successes[/]", highlight=False)
    for result in shown:
        console.print(diff_line(result, file.labels, coloured=console.color_system is not None))
        if summary.writes:
            console.print(output_line(result, coloured=console.color_system is not None))
        if result.uncleaned:
            _print_uncleaned(console, result, environment.get("cleaning") or ())
    _print_errors(console, summary)
    if not summary.attacked:
        _print_skipped(console, file.results(outcome="skipped"))
    _print_verdict(console, file.header.get(f"{REMARK}verdict"))
    console.print(f"\nrun: {path}", highlight=False, markup=False, soft_wrap=True)


def say(console: Console, line: str) -> None:
    """Just as it is: not folded, coloured or read as markup."""
    console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)


def wide_console() -> Console:
    """For a table that cannot be read when it is folded."""
    console = Console()
    console.width = max(console.width, 120)
    return console


def rows_table(rows: Iterable[Sequence[str]]) -> Table:
    """Names, values, their intervals and the number of examples behind them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for heading in ("value", "95 % interval", "n"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def wide_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Whose cells are never folded; the first column is what the others are of."""
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(visible, row))
    return table


def diff_line(result: Result, labels: tuple[str, ...], *, coloured: bool) -> Styled:
    """`positive → negative: a great terrible film` in colours; without them `a [great→terrible] film`, an
    inserted word as `[+terrible]` and a deleted one as `[great→]`."""
    if labels:
        after = decision_name(labels, decided(result.perturbed_probs))
        line = Styled(f"  {visible(labels[result.label])} → {visible(after)}: ", style="dim")
    else:
        wanted = dict(result.fields).get(KEYWORD, "")
        line = Styled(f"  #{result.key}{f' {visible(wanted)}' if wanted else ''}: ", style="dim")
    # Long texts are cut to the neighbourhood of the first edit; the run file has all of it.
    skipped = max(0, result.edits[0].at - 120) if result.edits else 0
    if skipped:
        line.append("…")
    return _with_pieces(line, list(pieces(result)), skipped, coloured=coloured)


def output_line(result: Result, *, coloured: bool) -> Styled:
    """The output of a victim that writes, as a diff like that of the text."""
    line = Styled("    → ", style="dim")
    return _with_pieces(line, list(output_pieces(result)), 0, coloured=coloured)


def _with_pieces(line: Styled, found: Sequence[Piece], skipped: int, *, coloured: bool) -> Styled:
    left = 600
    kinds = ["same", *(piece.kind for piece in found), "same"]
    for place, piece in enumerate(found, 1):
        text = piece.text
        if piece.kind == "same" and skipped:
            text, skipped = text[skipped:], max(0, skipped - len(text))
        if left <= 0 and (kinds[place - 1], piece.kind) != ("gone", "new"):
            line.append("…")
            break
        if piece.kind == "same" and len(text) > left:
            text = text[:left] + "…"
            left = 0
        elif piece.kind != "same" and len(text) > _LONGEST:
            text = text[:_LONGEST] + "…"
        form = "{}" if coloured else _plain(kinds[place - 1], piece.kind, kinds[place + 1])
        line.append(form.format(visible(text)), style=_STYLES[piece.kind])
        if coloured and piece.kind == "gone":
            line.append(" ")
        left -= len(text)
        if piece.kind == "same" and text.endswith("…") and left < 0:
            break
    return line


def _plain(before: str, kind: str, after: str) -> str:
    """How a piece is written without colours, by what stands around it."""
    if kind == "gone":
        return "[{}→" if after == "new" else "[{}→]"
    if kind == "new":
        return "{}]" if before == "gone" else "[+{}]"
    return "{}"


def _print_uncleaned(console: Console, result: Result, steps: Sequence[str]) -> None:
    came, written = result.uncleaned[result.field][1], as_written(result, steps)
    for name, text in (("before cleaning", came), ("with the edits", written)):
        console.print(f"    {name}: {visible(text)}", style="dim", highlight=False, markup=False)


def _print_verdict(console: Console, verdict: dict[str, Any] | None) -> None:
    """What an evaluation made of this run, where there was one."""
    if verdict:
        for line in (f"\nverdict: {verdict['verdict']}", *(f"  - {note}" for note in verdict["notes"])):
            console.print(visible(line), highlight=False, markup=False)


def _print_skipped(console: Console, skipped: Iterable[Result]) -> None:
    """Why nothing was attacked."""
    for note, count in Counter(result.note for result in skipped).most_common(3):
        console.print(f"  {count} skipped: {visible(note)}", highlight=False, markup=False)


def _print_errors(console: Console, summary: Summary) -> None:
    if not summary.errors:
        return
    console.print(f"\n[bold red]{summary.errors} ended in an error[/] (in no rate above):", highlight=False)
    for note in summary.error_notes:
        text = f"  {note.count} × {visible(note.message)} (first: example {note.key})"
        console.print(text, highlight=False, markup=False)
