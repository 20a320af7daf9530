"""`unfooled resources`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output, print_json
from unfooled.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from unfooled.resources import store

_PLAIN = ("name", "version", "licence", "origin", "digest")  # of a record, not worth showing after a build


@dataclass(frozen=True, kw_only=True)
class Resources(Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled resources                 what is here and what is not
  unfooled resources get minilm      fetch one from the package registry
  unfooled resources get all         fetch and build everything that takes no training
  unfooled resources build masked-lm --minutes 40      train the masked language model, or go on with it
  unfooled resources build counter-fitted --again      build it anew
"""

    action: str = argument("list", "`list`, `get` or `build`, the last two followed by names.")
    names: tuple[str, ...] = argument((), "Names, or `all`.")
    minutes: float | None = option(None, "build: minutes of training in all, earlier ones included.")
    again: bool = option(False, "Replace what is here, from the start.")

    def run(self) -> None:
        from rich.console import Console

        if self.action == "list":
            _list(self.json)
            return
        if self.action not in ("get", "build"):
            raise UserError(
                f"resources cannot {self.action!r}",
                "use `unfooled resources`, `unfooled resources get NAME` or `unfooled resources build NAME`",
            )
        if self.action == "get" and self.minutes is not None:
            raise UserError("--minutes is for builds", "use `unfooled resources build NAME`")
        if not self.names:
            raise UserError("which resource?", "`unfooled resources` lists them; `get all` fetches every one")
        console = Console(stderr=True)
        if self.action == "build":
            settings = {} if self.minutes is None else {"minutes": self.minutes}
            _build(self.names, console, settings, again=self.again, as_json=self.json)
        elif self.names == ("all",):
            _fetch_all(console, again=self.again)
        else:
            fetch(self.names, console, again=self.again)


def _fetch_all(console: Console, *, again: bool) -> None:
    """Everything but what takes long or lacks a library; what is left out is told."""
    from unfooled.resources import store

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
    from unfooled.resources import store

    with _bars(console) as progress:
        for name in names:
            if again or not store.has(name) or store.changed(name):
                _one(progress, name, partial(store.get, name, again=again))


def _build(
    names: Sequence[str], console: Console, settings: Mapping[str, Any], *, again: bool, as_json: bool
) -> None:
    """Build each, and show what was measured on the way."""
    from unfooled.resources import store

    with _bars(console) as progress:
        for name in names:
            try:
                _one(progress, name, partial(store.build, name, again=again, settings=settings))
            except KeyboardInterrupt:
                if settings:
                    console.print("what was learned so far is kept: repeat the command to go on")
                raise
    records = [store.record(name) for name in names]
    if as_json:
        print_json(records)
        return
    for record in records:
        told = {key: value for key, value in record.items() if key not in _PLAIN}
        typer.echo(f"{record['name']}: " + ", ".join(f"{key} {value}" for key, value in told.items()))


def _bars(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"))
    return Progress(*columns, TimeElapsedColumn(), console=console)


def _one(progress: Progress, name: str, make: Callable[[store.Progress], object]) -> None:
    task = progress.add_task(name, total=1.0, stage="")

    def tell(stage: str, share: float | None) -> None:
        progress.update(task, stage=stage, completed=share or 0.0, total=None if share is None else 1.0)

    make(tell)
    progress.update(task, completed=1.0, total=1.0, stage="here")


def _list(as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from unfooled.resources import store

    entries = store.status()
    if as_json:
        rows = [
            {
                "name": entry.name,
                "what": entry.what,
                "licence": entry.licence,
                "bytes": entry.size,
                "present": entry.present,
                "path": str(entry.path),
                "command": entry.command,
            }
            for entry in entries
        ]
        print_json(rows)
        return
    table = Table(title="Resources", title_justify="left", box=None, pad_edge=False)
    for heading in ("name", "here", "size", "licence", "what"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for entry in entries:
        table.add_row(
            entry.name,
            "yes" if entry.present else "no",
            f"{entry.size / 1e6:.0f} MB",
            entry.licence,
            entry.what,
        )
    Console().print(table)
    missing = [entry.name for entry in entries if not entry.present and not entry.long]
    if missing:
        typer.echo(f"\nget what is missing: unfooled resources get {' '.join(missing)}")
    for entry in entries:
        if entry.long and not entry.present:
            typer.echo(f"\ntrain {entry.name}, for as long as you like: {entry.command} --minutes 40")
