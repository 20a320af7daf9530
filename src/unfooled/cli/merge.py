"""`unfooled merge`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Exit, argument, option
from unfooled.cli.options import Output, print_json


@dataclass(frozen=True, kw_only=True)
class MergeShards(Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled merge runs/part-* --out runs/all
  unfooled merge runs/part-1 runs/part-2 --out runs/all --force
\b
What is missing is named, and the exit code is 3: attack it, and join again with --force.
"""

    parts: tuple[Path, ...] = argument(..., "Folders that `attack --shard` wrote.", metavar="PART...")
    out: Path = option(..., "Folder of the joined run.", "-o")
    force: bool = option(False, "Replace the run that is there.")

    def run(self) -> int:
        from unfooled.runs.merge import merge

        merged = merge(self.parts, self.out, force=self.force)
        if self.json:
            found = {"run": str(self.out), "parts": merged.parts, "rows": merged.rows}
            print_json(found | {"errors": merged.errors, "missing": list(merged.missing)})
        else:
            word = "part" if merged.parts == 1 else "parts"
            typer.echo(f"{merged.parts} {word} joined: {merged.rows:,} rows in {self.out}")
        for sentence in merged.missing:
            typer.echo(f"missing: {sentence}", err=True)
        if merged.missing:
            typer.echo("  → attack what is missing, and join again with --force", err=True)
        return Exit.SOME_ERRORS if merged.missing or merged.errors else Exit.DONE
