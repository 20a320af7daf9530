"""`unfooled compare`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from unfooled.checks.compare import Measured, compare, plot, write_csv
from unfooled.cli.app import Exit
from unfooled.cli.values import columns, listed, pairs
from unfooled.core.victim import Victim
from unfooled.data.loading import load_data
from unfooled.report.diffs import visible
from unfooled.victims.loading import load_victim


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    models: tuple[str, ...]
    data: str
    out: Path | None
    limit: int | None
    split: str
    text_column: str | None
    label_column: str | None
    labels: str | None
    label_map: str | None
    encoding: str
    clean: str | None
    trust_pickle: bool
    bare: bool
    json: bool


def run_compare(options: CompareOptions) -> int:
    label_map = pairs(options.label_map.split(","), "--label-map") if options.label_map else None
    data = load_data(
        options.data,
        text=columns(options.text_column),
        label=options.label_column,
        split=options.split,
        encoding=options.encoding,
        limit=options.limit,
        clean=options.clean,
    )
    with Console(stderr=True, quiet=options.json).status("") as status:
        measured = compare(_loaded(options, status), data, label_map=label_map, bare=options.bare)
    title = f"{data.name}, {options.split}: {measured[0].n:,} texts"
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_csv(measured, options.out / "compare.csv")
        plot(measured, title, [options.out / "compare.svg", options.out / "compare.png"])
    if options.json:
        typer.echo(json.dumps([asdict(one) for one in measured], indent=2))
        return Exit.DONE
    wide = Console()
    wide.width = max(wide.width, 120)  # a table that is folded cannot be read
    wide.print(table_of(measured, title))
    typer.echo("in brackets: 95 % intervals")
    if options.out is not None:
        typer.echo(f"written: {options.out}/compare.csv, compare.svg, compare.png")
    return Exit.DONE


def _loaded(options: CompareOptions, status: Status) -> Iterator[Victim]:
    """One after the other: large models need not share the memory."""
    for at, spec in enumerate(options.models, start=1):
        status.update(f"{at}/{len(options.models)} {visible(spec)}")
        yield load_victim(spec, labels=listed(options.labels), trust_pickle=options.trust_pickle)


def table_of(measured: Sequence[Measured], title: str) -> Table:
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    headings = ["accuracy", "macro F1", "parameters", "MB", "texts/s"]
    bare = any(one.of_bare_loop is not None for one in measured)
    headings += ["of bare loop"] if bare else []
    for heading in (*headings, "padding", "trained in"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        table.add_row(
            visible(one.name),
            _rate(one.accuracy, one.accuracy_low, one.accuracy_high),
            _rate(one.macro_f1, one.macro_f1_low, one.macro_f1_high),
            "–" if one.parameters is None else f"{one.parameters:,}",
            "–" if one.megabytes is None else f"{one.megabytes:.1f}",
            f"{one.texts_per_second:,.0f}",
            *(["–" if one.of_bare_loop is None else f"{one.of_bare_loop:.0%}"] if bare else []),
            "–" if one.padding is None else f"{one.padding:.1%}",
            "–" if one.training_seconds is None else duration(one.training_seconds),
        )
    return table


def _rate(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"
