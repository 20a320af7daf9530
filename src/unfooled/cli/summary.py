"""`unfooled summary`."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import Command, argument, option

if TYPE_CHECKING:
    from unfooled.metrics.summary import Summary


@dataclass(frozen=True, kw_only=True)
class ShowSummary(Command):
    EPILOG: ClassVar[str] = "\b\nExample:\n  unfooled summary runs/x --examples 10\n"

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    examples: int = option(5, "How many word diffs to show.", min=0)
    json: bool = option(False, "As JSON.")

    def run(self) -> None:
        show_run(self.folder, examples=self.examples, as_json=self.json)


def show_run(path: Path, *, examples: int, as_json: bool, told: bool = False) -> Summary:
    """Print a run, or its numbers as JSON. `told`: its notices were shown before."""
    from rich.console import Console

    from unfooled.metrics.summary import summarise
    from unfooled.report.terminal import print_run
    from unfooled.runs.file import RunFile

    with closing(RunFile.read(path)) as file:
        summary = summarise(file)
        if as_json:
            notices = (file.header.get("environment") or {}).get("notices") or []
            more = {"missing": file.missing(), "run": str(path), "notices": notices}
            typer.echo(json.dumps(summary.to_dict() | more, indent=2))
        else:
            print_run(Console(), file, summary, path=path, examples=examples, told=told)
    return summary
