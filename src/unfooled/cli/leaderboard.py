"""`unfooled leaderboard`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Command, argument, option


@dataclass(frozen=True, kw_only=True)
class Leaderboard(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled leaderboard runs/stress-lstm-mr runs/stress-svm-mr -o leaderboard.html
  unfooled leaderboard results/lstm.yaml results/svm.yaml -o leaderboard.html
"""

    sources: tuple[Path, ...] = argument(
        ..., "Folders of `unfooled stress`, or files of its --eval-results.", metavar="FOLDER..."
    )
    out: Path = option(Path("leaderboard.html"), "The page.", "-o")

    def run(self) -> None:
        from unfooled.report.leaderboard import write_leaderboard

        written = write_leaderboard(self.sources, self.out)
        typer.echo(f"{written}: {written.stat().st_size / 1e3:.0f} kB, open it in a browser")
