"""Resources in the terminal: what is here, and bars while others are fetched or built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from unfooled.errors import MissingExtraError
from unfooled.resources import store

_PLAIN = ("name", "version", "licence", "origin", "digest")  # of a record, not worth showing after a build


def fetch_all(console: Console, *, again: bool) -> None:
    """Everything but what takes long or lacks a library; what is left out is told."""
    for entry in store.status():
        try:
            if not entry.long:
                fetch([entry.name], console, again=again)
            elif not entry.present:
                console.print(f"left out, because it takes long: {entry.command}", highlight=False)
        except MissingExtraError as error:
            console.print(f"left out: {entry.name}. {error}", highlight=False, markup=False)


def fetch(names: Sequence[str], console: Console, *, again: bool = False) -> None:
    """Get what is missing, with a bar for each; what is here already costs nothing."""
    with _bars(console) as progress:
        for name in names:
            if again or not store.has(name) or store.changed(name):
                _with_bar(progress, name, partial(store.get, name, again=again))


def build(
    names: Sequence[str], console: Console, *, minutes: float | None, again: bool
) -> list[dict[str, Any]]:
    """Build each; what was measured on the way."""
    settings = {} if minutes is None else {"minutes": minutes}
    with _bars(console) as progress:
        for name in names:
            try:
                _with_bar(progress, name, partial(store.build, name, again=again, settings=settings))
            except KeyboardInterrupt:
                if settings:
                    console.print("what was learned so far is kept: repeat the command to go on")
                raise
    return [store.record(name) for name in names]


def built_told(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each."""
    return [
        f"{record['name']}: "
        + ", ".join(f"{key} {value}" for key, value in record.items() if key not in _PLAIN)
        for record in records
    ]


def print_resources(entries: Sequence[store.ResourceStatus]) -> None:
    console = Console()
    table = Table(title="Resources", title_justify="left", box=None, pad_edge=False)
    for heading in ("name", "here", "size", "licence", "what"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for entry in entries:
        here, size = "yes" if entry.present else "no", f"{entry.size / 1e6:.0f} MB"
        table.add_row(entry.name, here, size, entry.licence, entry.what)
    console.print(table)
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    missing = [entry.name for entry in entries if not entry.present and not entry.long]
    if missing:
        plain(f"\nget what is missing: unfooled resources get {' '.join(missing)}")
    for entry in entries:
        if entry.long and not entry.present:
            plain(f"\ntrain {entry.name}, for as long as you like: {entry.command} --minutes 40")


def _bars(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"))
    return Progress(*columns, TimeElapsedColumn(), console=console)


def _with_bar(progress: Progress, name: str, make: Callable[[store.Progress], object]) -> None:
    task = progress.add_task(name, total=1.0, stage="")

    def tell(stage: str, share: float | None) -> None:
        progress.update(task, stage=stage, completed=share or 0.0, total=None if share is None else 1.0)

    make(tell)
    progress.update(task, completed=1.0, total=1.0, stage="here")
