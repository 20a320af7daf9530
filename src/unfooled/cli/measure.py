"""`unfooled measure`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output, TrustCode, WorkerOptions, print_json
from unfooled.errors import UserError


@dataclass(frozen=True, kw_only=True)
class MeasureCommand(TrustCode, WorkerOptions, Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled measure runs/x
  unfooled measure runs/x --with similarity:use --with perplexity:trigram --with grammar --with same-pos
\b
Measures: similarity[:minilm, use, potion] · perplexity[:trigram, smollm2] · grammar[:harper, link-grammar] ·
edit-distance · same-pos · changed-pos · picture[:serif, monospace]. link-grammar needs the program
link-parser (Debian: link-grammar), picture needs Chromium.
--list shows all, those of plug-ins too.
"""

    folder: Path | None = argument(None, "Folder of a finished run.", metavar="RUN", show_default=False)
    with_: tuple[str, ...] = option(
        (), "A measure, repeated for several. [default: similarity, edit-distance]", "--with"
    )
    list_: bool = option(False, "Show the measures and what each asks by default.", "--list")

    def run(self) -> None:
        from unfooled.metrics.measures import described_measures, help_table, measure_run, parse_measure
        from unfooled.metrics.summary import Mean
        from unfooled.report.progress import counting
        from unfooled.runs.file import RunFile

        if self.list_:
            print_json(described_measures()) if self.json else typer.echo(help_table())
            return
        if self.folder is None:
            raise UserError("RUN is missing", "see unfooled measure --help; --list shows the measures")
        names = self.with_ or ("similarity", "edit-distance")
        with counting(self.console(), "measuring") as progress:
            done = measure_run(self.folder, names, progress=progress, workers=self.where(self.workers))
        with closing(RunFile.read(self.folder)) as file:
            found = {name: Mean.of(list(file.measured(name).values())) for name in done}
        if self.json:
            print_json({name: mean.to_dict() for name, mean in found.items()})
            return
        for name, mean in found.items():
            told = f"{mean.value:.3f} ({mean.low:.3f} – {mean.high:.3f}, n = {mean.n})"
            typer.echo(f"{name}: {parse_measure(name)[0].title}: {told if mean.n else 'nothing fell'}")
