"""`unfooled analyse`."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import cast, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unfooled.cli.app import Exit
from unfooled.cli.values import columns, literal, pairs
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.errors import MissingExtraError, ResourceError, UserError
from unfooled.internals.analysis import PARTS, Analysis, AnalysisObserver, analyse
from unfooled.internals.folder import write_analysis
from unfooled.internals.neighbourhood import NEAREST, Find
from unfooled.internals.pca import Features
from unfooled.internals.tables import analysis_rows
from unfooled.report.diffs import visible
from unfooled.resources.neighbours import open_neighbours
from unfooled.runs.file import RunFile
from unfooled.victims.loading import load_victim


@dataclass(frozen=True, kw_only=True)
class AnalyseOptions:
    run: Path
    out: Path
    model: str | None
    against: tuple[str, ...]
    neighbours: str
    example: tuple[int, ...] | None
    examples: int
    data: str | None
    only: tuple[str, ...]
    limit: int | None
    pca: str
    rows: int
    width: int
    every_head: bool
    seed: int
    split: str
    text_column: str | None
    label_column: str | None
    encoding: str
    labels: str | None
    victim_options: tuple[str, ...]
    trust_pickle: bool
    json: bool


class AnalyseProgress(AnalysisObserver):
    """A bar on standard error for each part that takes time."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._task = self._progress.add_task("", visible=False)

    def __enter__(self) -> AnalyseProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, what: str, total: int) -> None:
        self._task = self._progress.add_task(escape(what), total=total)

    def advanced(self, count: int) -> None:
        self._progress.advance(self._task, count)


def run_analyse(options: AnalyseOptions) -> int:
    if options.pca not in get_args(Features):
        raise UserError(f"there is no PCA of {options.pca!r}", f"choose from {', '.join(get_args(Features))}")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("pictures", "plots")  # now, not after minutes of computing
    RunFile.read(options.run).close()  # a wrong path is told before a model is loaded
    only = options.only or PARTS
    console = Console(stderr=True, quiet=options.json)
    with console.status("loading") if options.model or options.data else console.status("reading"):
        victim = _victim(options)
        against = _against(options)
        nearest = _nearest(options, "neighbours" in options.only) if "neighbours" in only else None
        data = _data(options) if "pca" in only else None
    with AnalyseProgress(console) as observer:
        analysis = analyse(
            options.run,
            victim=victim,
            against=against,
            nearest=nearest,
            data=data,
            keys=options.example,
            examples=options.examples,
            limit=options.limit,
            only=only,
            features=cast(Features, options.pca),
            seed=options.seed,
            observer=observer,
        )
        folder = write_analysis(
            analysis,
            options.out,
            width=options.width,
            every_head=options.every_head,
            observer=observer,
        )
    if options.json:
        typer.echo((folder / "summary.json").read_text(encoding="utf-8"), nl=False)
        return Exit.DONE
    show_analysis(analysis, folder)
    return Exit.DONE


def show_analysis(analysis: Analysis, folder: Path) -> None:
    console = Console()
    title = f"{analysis.attack} on {analysis.victim}, data {analysis.data}"
    console.print(visible(title), style="bold", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("n", justify="right")
    for row in analysis_rows(analysis):
        table.add_row(*row)
    console.print(table)
    for note in analysis.notes:
        console.print(f"! {visible(note)}", highlight=False, markup=False)
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["files"]
    pictures = sum(name.endswith(".svg") for name in written)
    console.print(
        f"{pictures} pictures and {sum(name.endswith('.csv') for name in written)} tables: {folder}/index.md",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _victim(options: AnalyseOptions) -> Victim | None:
    if options.model is None:
        return None
    given = pairs(options.victim_options, "--victim-option")
    return load_victim(
        options.model,
        labels=options.labels,
        trust_pickle=options.trust_pickle,
        **{name: literal(value) for name, value in given.items()},
    )


def _against(options: AnalyseOptions) -> dict[str, Victim]:
    return {
        name: load_victim(model, labels=options.labels, trust_pickle=options.trust_pickle)
        for name, model in pairs(options.against, "--against").items()
    }


def _nearest(options: AnalyseOptions, wanted: bool) -> Find | None:
    """The table of nearest words; a missing one is an error only where it was asked for."""
    if options.model is None:
        return None
    try:
        oracle = open_neighbours(options.neighbours)
    except ResourceError:
        if wanted or options.neighbours:
            raise
        return None
    return lambda word: oracle([(word, NEAREST + 2, 0.0)])[0]


def _data(options: AnalyseOptions) -> Dataset | None:
    if options.data is None:
        return None
    return load_data(
        options.data,
        text=columns(options.text_column),
        label=options.label_column,
        split=options.split,
        encoding=options.encoding,
        sample=options.rows,
        seed=options.seed,
    )
