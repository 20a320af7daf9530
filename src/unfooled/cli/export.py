"""`unfooled export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Command, argument, option


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled export runs/x -o results.csv
  unfooled export runs/x -o results.parquet
  unfooled export runs/x -o results.jsonl
"""

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    out: Path = option(..., "File ending in .csv, .jsonl or .parquet; or a folder.", "-o")
    force: bool = option(False, "Replace a file that exists.")
    raw: bool = option(False, "CSV as it is: cells that a spreadsheet would run stay so.")

    def run(self) -> None:
        from unfooled.runs.export import export

        rows = export(self.folder, self.out, force=self.force, raw=self.raw)
        typer.echo(f"{rows} rows written to {self.out}")
