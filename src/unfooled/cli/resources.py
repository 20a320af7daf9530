"""`unfooled resources`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from unfooled.errors import UserError
from unfooled.resources import store


def run_resources(action: str, names: Sequence[str], *, as_json: bool) -> None:
    if action == "list":
        _list(as_json)
    elif action == "get":
        if not names:
            raise UserError("which resource?", "`unfooled resources` lists them; `get all` fetches every one")
        known = [one.name for one in store.status()]
        fetch(known if list(names) == ["all"] else names, Console(stderr=True))
    else:
        raise UserError(
            f"resources cannot {action!r}", "use `unfooled resources` or `unfooled resources get NAME`"
        )


def fetch(names: Sequence[str], console: Console) -> None:
    """Get what is missing, with a bar for each; what is here already costs nothing."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[stage]}"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        for name in names:
            if store.has(name):
                continue
            task = progress.add_task(name, total=1.0, stage="")

            def tell(stage: str, share: float | None, task: TaskID = task) -> None:
                progress.update(
                    task, stage=stage, completed=share or 0.0, total=None if share is None else 1.0
                )

            store.get(name, tell)
            progress.update(task, completed=1.0, total=1.0, stage="here")


def _list(as_json: bool) -> None:
    entries = store.status()
    if as_json:
        rows = [
            {
                "name": one.name,
                "what": one.what,
                "licence": one.licence,
                "bytes": one.size,
                "present": one.present,
                "path": str(one.path),
                "command": one.command,
            }
            for one in entries
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="Resources", title_justify="left", box=None, pad_edge=False)
    for heading in ("name", "here", "size", "licence", "what"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for one in entries:
        table.add_row(
            one.name, "yes" if one.present else "no", f"{one.size / 1e6:.0f} MB", one.licence, one.what
        )
    Console().print(table)
    missing = [one.name for one in entries if not one.present]
    if missing:
        typer.echo(f"\nget what is missing: unfooled resources get {' '.join(missing)}")
