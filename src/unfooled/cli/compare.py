"""`unfooled compare`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Clean, Data, LabelMap, ModelOptions, Output, print_json

if TYPE_CHECKING:
    from rich.status import Status

    from unfooled.core.victim import Victim


@dataclass(frozen=True, kw_only=True)
class Compare(Data, Clean, LabelMap, ModelOptions, Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled compare models/lstm models/svm models/bert --data reviews.csv --out comparison
  unfooled compare models/* --data mr --split test --json
"""

    models: tuple[str, ...] = argument(..., "Models, each as for `attack --model`.")
    data: str = option(..., "Labelled texts that none of them was trained on.", "-d")
    out: Path | None = option(None, "Folder for compare.csv, compare.svg, compare.png.", "-o")
    limit: int | None = option(None, "The first N rows only.", "-n", min=1)
    bare: bool = option(False, "Also time a bare forward loop, to compare the speed with.")

    def run(self) -> None:
        from unfooled.checks.compare import compare, plot, write_csv
        from unfooled.report.terminal import wide_console
        from unfooled.report.terminal_tables import models_table

        data = self.load(self.data, limit=self.limit, clean=self.clean)
        with self.console().status("") as status:
            measured = compare(_loaded(self, status), data, label_map=self.mapped_labels(), bare=self.bare)
        title = f"{data.name}, {self.split}: {measured[0].n:,} texts"
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            write_csv(measured, self.out / "compare.csv")
            plot(measured, title, [self.out / "compare.svg", self.out / "compare.png"])
        if self.json:
            print_json([asdict(model) for model in measured])
            return
        wide_console().print(models_table(measured, title))
        typer.echo("in brackets: 95 % intervals")
        if self.out is not None:
            typer.echo(f"written: {self.out}/compare.csv, compare.svg, compare.png")


def _loaded(options: Compare, status: Status) -> Iterator[Victim]:
    """One after the other: large models need not share the memory."""
    from unfooled.report.diffs import visible

    for at, spec in enumerate(options.models, start=1):
        status.update(f"{at}/{len(options.models)} {visible(spec)}")
        yield options.load_model(spec)
