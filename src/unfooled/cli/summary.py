"""`unfooled summary`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output


@dataclass(frozen=True, kw_only=True)
class ShowSummary(Output):
    EPILOG: ClassVar[str] = "\b\nExample:\n  unfooled summary runs/x --examples 10\n"

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    examples: int = option(5, "How many word diffs to show.", min=0)

    def run(self) -> None:
        from unfooled.report.terminal import show_run

        show_run(self.folder, examples=self.examples, as_json=self.json)
