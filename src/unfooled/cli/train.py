"""`unfooled train`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Any, Literal, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from unfooled.cli.advice import attack_next
from unfooled.cli.app import Exit
from unfooled.cli.compare import duration
from unfooled.cli.values import listed, pairs
from unfooled.errors import UserError
from unfooled.training.families import all_families, find_family
from unfooled.training.preparation import DEFAULT_SHARE
from unfooled.training.sweep import sweep
from unfooled.training.trainer import ClassifierFamily, Trained, find_classifier, train
from unfooled.training.watching import TrainObserver


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    model: str | None
    data: str | None
    out: Path | None
    valid: str | None
    split: str
    text_column: str | None
    label_column: str | None
    encoding: str
    limit: int | None
    clean: str | None
    given: Mapping[str, Any]  # the family's options that have a flag of their own
    settings: tuple[str, ...]
    sweep: int | None
    sweep_time: float | None
    sampler: str
    resume: bool
    restart: bool
    list: bool
    json: bool


class TrainProgress(TrainObserver):
    """A bar of steps on standard error, and a line after each epoch."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = self._shown = title
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]} {task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._task: Any = None
        self._loss = ""

    def __enter__(self) -> TrainProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def note(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False)

    def started(self, total: int, done: int) -> None:
        self._stop()
        if done:
            self.note(f"going on after {done} of at most {total} steps")
        self._loss = ""
        self._task = self._progress.add_task(
            escape(self._shown), total=total, completed=done, state="", unit="steps"
        )
        self._progress.start()

    def step(self, done: int, loss: float | None) -> None:
        if loss is not None:
            self._loss = f"loss {loss:.3f}"
        if self._task is not None:
            self._progress.update(self._task, completed=done, state=self._loss)

    def evaluated(self, epoch: int, metrics: Mapping[str, float]) -> None:
        parts = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in metrics.items()]
        self.note(f"epoch {epoch}: validation {', '.join(parts)}")

    def trial(self, number: int, total: int, options: Mapping[str, object]) -> None:
        self._shown = f"{self._title} {number}/{total}"
        settings = ", ".join(f"{name} {value}" for name, value in options.items())
        self.note(f"trial {number} of {total}: {settings}")

    def tried(self, number: int, accuracy: float | None) -> None:
        self._stop()
        if accuracy is not None:
            self.note(f"trial {number}: validation accuracy {accuracy:.3f}")

    def _stop(self) -> None:
        if self._task is not None:
            self._progress.stop()
            self._progress.remove_task(self._task)
            self._task = None


def run_train(options: TrainOptions) -> int:
    if options.list:
        show_families(as_json=options.json)
        return Exit.DONE
    for name in ("model", "data", "out"):
        if getattr(options, name) is None:
            raise UserError(f"--{name} is missing", "see unfooled train --help; --list shows the families")
    assert options.model is not None
    assert options.data is not None
    assert options.out is not None
    family = find_family(options.model)
    if options.resume and options.restart:
        raise UserError("--resume and --restart contradict each other", "give one of them")
    given = {name: value for name, value in options.given.items() if value is not None}
    given |= {name.replace("-", "_"): value for name, value in pairs(options.settings, "--set").items()}
    if options.sweep:
        find_classifier(family.name)
    data = _load(options, options.data, options.split, limit=options.limit)
    valid = _valid(options)
    console = Console(stderr=True, quiet=options.json)
    shared: dict[str, Any] = {
        "valid": valid,
        "options": given,
        "resume": options.resume,
        "restart": options.restart,
    }
    with TrainProgress(console, family.name) as observer:
        try:
            if options.sweep:
                trained = sweep(
                    family.name,
                    data,
                    options.out,
                    trials=options.sweep,
                    minutes=options.sweep_time,
                    sampler=cast(Literal["tpe", "random"], options.sampler),
                    observer=observer,
                    **shared,
                )
            else:
                trained = train(family.name, data, options.out, observer=observer, **shared)
        except KeyboardInterrupt:
            typer.echo(
                f"interrupted: what is done so far is in {options.out}\n  → repeat the command with --resume",
                err=True,
            )
            return Exit.INTERRUPTED
    _show(trained, options)
    return Exit.DONE


def show_families(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": one.name,
                "summary": one.summary,
                "paper": one.paper,
                "defaults": dict(one.defaults),
                "ranges": {name: str(drawn) for name, drawn in one.ranges.items()},
            }
            for one in all_families()
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console()
    for one in all_families():
        console.print(f"[bold]{one.name}[/]: {one.summary} [dim]({one.paper})[/]", highlight=False)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
        for name, value in one.defaults.items():
            drawn = f"sweep: {one.ranges[name]}" if name in one.ranges else ""
            table.add_row(name, str(value), drawn, f"[dim]{escape(one.option(name).help)}[/]")
        console.print(table)


def _show(trained: Trained, options: TrainOptions) -> None:
    if options.json:
        facts = {"path": str(trained.path), "family": trained.family, "seconds": trained.seconds}
        typer.echo(json.dumps(facts | {"metrics": trained.metrics}, indent=2))
        return
    valid = trained.metrics.get("valid")
    kept = f", epoch {trained.metrics['best_epoch']} kept" if "best_epoch" in trained.metrics else ""
    score = ""
    if valid and "bleu" in valid:
        score = f"validation BLEU {valid['bleu']:.2f}{kept}"
    elif valid:
        score = f"validation accuracy {valid['accuracy']:.1%}, macro F1 {valid['macro_f1']:.1%}{kept}"
    typer.echo(f"{trained.family} trained in {duration(trained.seconds)}{': ' if score else ''}{score}")
    typer.echo(f"model: {options.out}")
    told = {"text-column": options.text_column, "label-column": options.label_column, "clean": options.clean}
    more = "".join(f" --{name} {quote(value)}" for name, value in told.items() if value)
    if not isinstance(find_family(trained.family), ClassifierFamily):
        more += " --attack typo"
    assert options.out is not None
    line = attack_next(options.out, options.data, split=options.split, valid=options.valid, more=more)
    typer.echo(f"try next: {line}")


def _valid(options: TrainOptions) -> Any:
    """A share of the training rows, a file or named set, or another split of the same data."""
    value = options.valid
    if value is None:
        return DEFAULT_SHARE
    try:
        return float(value)
    except ValueError:
        pass
    if "," in value or Path(value).expanduser().exists() or value.startswith("hf:"):
        return _load(options, value, options.split)
    assert options.data is not None
    return _load(options, options.data, value)


def _load(options: TrainOptions, source: str, split: str, *, limit: int | None = None) -> Any:
    assert options.model is not None
    return find_family(options.model).load_data(
        source,
        text=listed(options.text_column),
        label=options.label_column,
        split=split,
        encoding=options.encoding,
        limit=limit,
        clean=options.clean,
    )
