"""`unfooled report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Command, argument, option
from unfooled.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled report runs/x -o report.html
  unfooled report runs/base runs/hardened -o comparison.html
  unfooled report runs/x -o report --folder
  unfooled report runs/textfooler runs/bae --study study.db -o report.html
"""

    runs: tuple[Path, ...] = argument(..., "Folders of one or more runs.")
    out: Path = option(Path("report.html"), "The page, or with --folder a folder.", "-o")
    folder: bool = option(False, "Also summary.md, summary.json and results.csv, for one run.")
    study: Path | None = option(None, "Add what people said: a file of `unfooled study create`.")
    tensorboard: Path | None = option(None, "Also log the numbers to this folder.")
    mlflow: str | None = option(None, "Also log the numbers to this MLflow address (or folder).")

    def run(self) -> None:
        from rich.console import Console

        from unfooled.checks.tracking import log_to_mlflow, log_to_tensorboard
        from unfooled.report.folder import write_report
        from unfooled.report.html import write_html

        if self.folder and len(self.runs) > 1:
            raise UserError("--folder takes one run", "leave --folder out to compare several in one page")
        with Console(stderr=True).status("Writing the report …"):
            written = write_report(self.runs[0], self.out) / "report.html" if self.folder else self.out
            if not self.folder or self.study is not None:
                write_html(self.runs, written, study=self.study)
        for run in self.runs:
            if self.tensorboard is not None:
                name = run.parent.name if run.suffix == ".sqlite" else run.name
                log_to_tensorboard(run, self.tensorboard / name)
            if self.mlflow is not None:
                log_to_mlflow(run, uri=self.mlflow)
        typer.echo(f"{written}: {written.stat().st_size / 1e6:.1f} MB, open it in a browser")
