"""`unfooled import textattack`: what TextAttack wrote down, as a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Command, argument, option
from unfooled.values import listed


@dataclass(frozen=True, kw_only=True)
class ImportTextAttack(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled import textattack results.csv --out runs/imported
  unfooled import textattack log.txt --labels negative,positive --out runs/imported
  unfooled import textattack results.csv --summary results_summary.json
"""

    log: Path = argument(..., "A file of --log-to-csv or --log-to-txt.")
    out: Path | None = option(None, "Folder of the run. [default: runs/import-…]", "-o")
    labels: str | None = option(None, "Class names in the order of their numbers, comma-separated.")
    summary: Path | None = option(None, "The file of --log-summary-to-json, to compare with.")
    restart: bool = option(False, "Discard an earlier run in the folder.")

    def run(self) -> None:
        from unfooled.report.terminal import show_run
        from unfooled.runs.textattack_logs import import_textattack

        folder = self.out or Path("runs") / f"import-{self.log.stem}"
        names = tuple(listed(self.labels) or ())
        done = import_textattack(
            self.log, out=folder, labels=names, summary=self.summary, restart=self.restart
        )
        show_run(folder, examples=5, as_json=False)
        typer.echo("\nas TextAttack counts:")
        for name, value in done.statistics.items():
            typer.echo(f"  {name} {value:g}")
        for difference in done.differences():
            typer.echo(f"! the log itself says otherwise: {difference}")
