"""`unfooled search`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from unfooled.cli.app import Exit
from unfooled.cli.harden import HardenProgress, pairs, read_samples
from unfooled.cli.live import LiveObserver
from unfooled.core.session import Settings
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.defenses.methods import find_method
from unfooled.defenses.search import Found, search
from unfooled.errors import UserError
from unfooled.runs.attack import attack
from unfooled.training.preparation import Rows, read_rows
from unfooled.victims.loading import load_victim

PREMADE = "premade"


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    method: str
    model: str
    data: str
    out: Path
    premade: Path | None
    attack: str
    trials: int
    minutes: float | None
    balance: float
    limit: int
    split: str
    train_split: str
    train_limit: int | None
    settings: tuple[str, ...]
    text_column: str | None
    label_column: str | None
    encoding: str
    seed: int
    resume: bool
    restart: bool
    json: bool


class SearchProgress(HardenProgress):
    """A line per trial says it all."""

    def tried(self, number: int, accuracy: float | None) -> None:
        self._stop()


def run_search(options: SearchOptions) -> int:
    method = find_method(options.method)
    if not method.ranges:
        raise UserError(f"{method.name} has no ranges to search", "search five, fuse or fact")
    if options.resume and options.restart:
        raise UserError("--resume and --restart contradict each other", "give one of them")
    victim = load_victim(options.model)
    judged = _load(options, options.split, options.limit)
    clean, _ = read_rows(judged.aligned(victim.labels))
    console = Console(stderr=True, quiet=options.json)
    try:
        run = options.premade or _premade(options, victim, judged, console)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: samples made so far are in {options.out}\n  → repeat the command to go on",
            err=True,
        )
        return Exit.INTERRUPTED
    samples = read_samples(run, victim.labels)
    premade = Rows([text for text, _ in samples], np.array([label for _, label in samples], dtype=np.int64))
    console.print(f"judged by {len(clean)} clean rows and {len(premade)} pre-made samples", highlight=False)
    with SearchProgress(console, method.name) as observer:
        try:
            found = search(
                method.name,
                options.model,
                options.out,
                clean=clean,
                premade=premade,
                trials=options.trials,
                minutes=options.minutes,
                balance=options.balance,
                fixed=pairs(options.settings),
                data=_training(options, len(judged)) if method.kind == "train" else None,
                seed=options.seed,
                resume=options.resume,
                restart=options.restart,
                observer=observer,
            )
        except KeyboardInterrupt:
            typer.echo(
                f"interrupted: finished trials are in {options.out}\n  → repeat the command with --resume",
                err=True,
            )
            return Exit.INTERRUPTED
    _show(found, options)
    return Exit.DONE


def _premade(options: SearchOptions, victim: Victim, data: Dataset, console: Console) -> Path:
    """Samples made on the model as it is; the run is kept, so that they are made once."""
    out = options.out / PREMADE
    with LiveObserver(console, title=f"pre-made samples: {options.attack}") as observer:
        attack(
            victim,
            data,
            options.attack,
            out=out,
            settings=Settings(seed=options.seed),
            observer=observer,
            restart=options.restart,
        )
    return out


def _training(options: SearchOptions, judged: int) -> Dataset:
    """The rows to train on: not those that the search is judged by."""
    offset = judged if options.train_split == options.split else 0
    return _load(options, options.train_split, options.train_limit, offset=offset)


def _load(options: SearchOptions, split: str, limit: int | None, *, offset: int = 0) -> Dataset:
    columns = [one.strip() for one in options.text_column.split(",")] if options.text_column else None
    return load_data(
        options.data,
        text=columns[0] if columns and len(columns) == 1 else columns,
        label=options.label_column,
        split=split,
        encoding=options.encoding,
        limit=limit,
        offset=offset,
    )


def _show(found: Found, options: SearchOptions) -> None:
    if options.json:
        facts = {"path": str(found.path), "method": found.method, "base": dict(found.base)}
        facts |= {"best": asdict(found.best), "importance": dict(found.importance)}
        typer.echo(json.dumps(facts | {"trials": [asdict(one) for one in found.trials]}, indent=2))
        return
    console = Console()
    table = Table(box=None, pad_edge=False)
    for name in ("", "clean", "pre-made", "weighed", "settings"):
        table.add_column(name, justify="left" if name in ("", "settings") else "right")
    table.add_row("without", *_cells(found.base["clean"], found.base["premade"], options.balance), "")
    for one in sorted(found.trials, key=lambda trial: -trial.value)[:5]:
        settings = _settings(one.settings)
        table.add_row(f"trial {one.number + 1}", *_cells(one.clean, one.premade, options.balance), settings)
    console.print(table)
    if found.importance:
        console.print("matters most: " + _settings(dict(list(found.importance.items())[:4])), highlight=False)
    console.print(f"best of {len(found.trials)} trials: {found.path}", highlight=False, markup=False)


def _cells(clean: float, premade: float, balance: float) -> tuple[str, str, str]:
    return f"{clean:.3f}", f"{premade:.3f}", f"{balance * clean + (1 - balance) * premade:.3f}"


def _settings(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
