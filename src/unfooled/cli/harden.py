"""`unfooled harden`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unfooled.checks import replay
from unfooled.cli.advice import attack_next
from unfooled.cli.app import Exit
from unfooled.cli.compare import duration
from unfooled.cli.train import TrainProgress
from unfooled.core.victim import TextValue
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.defenses.harden import Hardened, harden
from unfooled.defenses.methods import TRAINING, all_methods, find_method
from unfooled.errors import DataError, UserError
from unfooled.training.preparation import DEFAULT_SHARE
from unfooled.victims.loading import load_victim


@dataclass(frozen=True, kw_only=True)
class HardenOptions:
    method: str | None
    model: str | None
    data: str | None
    out: Path | None
    valid: str | None
    given: Mapping[str, Any]  # settings that have a flag of their own
    settings: tuple[str, ...]
    samples: Path | None
    text_column: str | None
    label_column: str | None
    split: str
    encoding: str
    limit: int | None
    resume: bool
    restart: bool
    list: bool
    json: bool


class HardenProgress(TrainProgress):
    """Also shows what is made before and between the steps."""

    def __init__(self, console: Console, title: str) -> None:
        super().__init__(console, title)
        self._work: dict[str, Any] = {}

    def working(self, what: str, done: int, total: int) -> None:
        if what not in self._work:
            self._work[what] = self._progress.add_task(escape(what), total=total, state="", unit="texts")
            self._progress.start()
        self._progress.update(self._work[what], completed=done)
        if done >= total:
            self._progress.update(self._work[what], visible=self._task is None)


def run_harden(options: HardenOptions) -> int:
    if options.list:
        show_methods(as_json=options.json)
        return Exit.DONE
    for name in ("method", "model", "out"):
        if getattr(options, name) is None:
            raise UserError(f"--{name} is missing", "see unfooled harden --help; --list shows the methods")
    assert options.method is not None
    assert options.model is not None
    assert options.out is not None
    method = find_method(options.method)
    if options.resume and options.restart:
        raise UserError("--resume and --restart contradict each other", "give one of them")
    if method.kind == "train" and options.data is None:
        raise UserError(f"--data is missing: {method.name} trains", "give the rows to train on")
    data = None
    if method.kind == "train" and options.data is not None:
        data = _load(options, options.data, options.split, limit=options.limit)
    given = {name: value for name, value in options.given.items() if value is not None}
    given |= pairs(options.settings)
    samples = read_samples(options.samples, load_victim(options.model).labels) if options.samples else None
    console = Console(stderr=True, quiet=options.json)
    with HardenProgress(console, method.name) as observer:
        try:
            hardened = harden(
                method.name,
                options.model,
                options.out,
                data=data,
                valid=_valid(options),
                options=given,
                samples=samples,
                resume=options.resume,
                restart=options.restart,
                observer=observer,
            )
        except KeyboardInterrupt:
            typer.echo(
                f"interrupted: what is done so far is in {options.out}\n  → repeat the command with --resume",
                err=True,
            )
            return Exit.INTERRUPTED
    _show(hardened, options)
    return Exit.DONE


def read_samples(path: Path, labels: tuple[str, ...]) -> list[tuple[TextValue, int]]:
    """Texts that fooled the model they were made on, with their true class in the order of `labels`."""
    found: list[tuple[TextValue, int]] = []
    for sample in replay.read_samples(path):
        if sample.fooled and sample.made:
            if sample.label not in labels:
                raise DataError(
                    f"{path}: the class {sample.label!r} is none of the model's ({', '.join(labels)})",
                    "take samples made on a model with the same classes",
                )
            found.append((sample.value(edited=True), labels.index(sample.label)))
    return found


def show_methods(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": one.name,
                "kind": one.kind,
                "summary": one.summary,
                "paper": one.paper,
                "defaults": dict(one.defaults) | (dict(TRAINING) if one.kind == "train" else {}),
                "ranges": {name: str(drawn) for name, drawn in one.ranges.items()},
            }
            for one in all_methods().values()
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console()
    for one in all_methods().values():
        console.print(f"[bold]{one.name}[/]: {one.summary} [dim]({one.paper})[/]", highlight=False)
        console.print(_settings_table(one.defaults, one.ranges))
    console.print("[bold]every method that trains[/]", highlight=False)
    console.print(_settings_table(TRAINING, {}))


def _settings_table(defaults: Mapping[str, Any], ranges: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for name, value in defaults.items():
        table.add_row(name, escape(str(value)) or "–", f"search: {ranges[name]}" if name in ranges else "")
    return table


def _show(hardened: Hardened, options: HardenOptions) -> None:
    trained = hardened.trained
    if options.json:
        facts: dict[str, Any] = {"path": str(hardened.path), "method": hardened.method}
        facts |= {"settings": dict(hardened.settings), "alone": hardened.alone}
        if trained:
            facts |= {"metrics": trained.metrics, "seconds": trained.seconds}
        typer.echo(json.dumps(facts, indent=2))
        return
    if trained:
        valid = trained.metrics.get("valid")
        score = f": validation accuracy {valid['accuracy']:.1%}" if valid else ""
        typer.echo(f"{hardened.method} of {options.model} in {duration(trained.seconds)}{score}")
    else:
        typer.echo(f"{hardened.method} around {options.model}")
        if "relative_sigma" in hardened.settings:
            chosen = hardened.settings
            typer.echo(
                f"sigma {chosen['sigma']:g} is {chosen['relative_sigma']:.2f} of the mean embedding norm; "
                f"the noise on a token is {chosen['relative_noise_norm']:.1f} times as long as an embedding"
            )
    typer.echo(f"model: {options.out}")
    assert options.out is not None
    again = ""
    if not hardened.alone:
        again = f" --victim-option {shlex.quote(f'model={options.model}')}"
        typer.echo(
            f"note: {options.out} cannot be loaded by itself, because a folder may only name models that lie "
            f"below or beside it: name the model each time, or write {hardened.method}:{options.model}"
        )
    line = attack_next(options.out, options.data, split=options.split, valid=options.valid)
    typer.echo(f"try next: {line}{again}")


def _valid(options: HardenOptions) -> Dataset | float:
    """A share of the training rows, a file or named set, or another split of the same data."""
    value = options.valid
    if value is None or options.data is None:
        return DEFAULT_SHARE
    try:
        return float(value)
    except ValueError:
        pass
    if Path(value).expanduser().exists() or value.startswith("hf:"):
        return _load(options, value, options.split)
    return _load(options, options.data, value)


def _load(options: HardenOptions, source: str, split: str, *, limit: int | None = None) -> Dataset:
    columns = [one.strip() for one in options.text_column.split(",")] if options.text_column else None
    return load_data(
        source,
        text=columns[0] if columns and len(columns) == 1 else columns,
        label=options.label_column,
        split=split,
        encoding=options.encoding,
        limit=limit,
    )


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise UserError(f"--set {one!r} has no '='", "write --set name=value; --list shows the names")
        found[name.strip().replace("-", "_")] = value.strip()
    return found
