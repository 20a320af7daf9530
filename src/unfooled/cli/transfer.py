"""`unfooled transfer`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.exits import Exit
from unfooled.cli.options import LabelMap, ModelOptions

if TYPE_CHECKING:
    from unfooled.checks.transfer import Transfer


@dataclass(frozen=True, kw_only=True)
class TransferTexts(LabelMap, ModelOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled transfer --from runs/x --to models/lstm
  unfooled transfer --from runs/x --to models/lstm models/svm models/word-cnn
  unfooled transfer --from runs/x --from runs/y --to models/lstm --json
"""

    runs: tuple[Path, ...] = option(..., "Folder of a run; may be repeated.", "--from")
    to: tuple[str, ...] = option(..., "A model, as for `attack --model`; may be repeated.")
    more: tuple[str, ...] = argument((), "More models.", show_default=False)
    label_map: str | None = option(None, "Run label=model label, comma-separated.")
    again: bool = option(False, "Score again what was scored before.")
    json: bool = option(False, "Print the result as JSON and nothing else.")

    def run(self) -> int:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        from unfooled.checks.transfer import transfer
        from unfooled.report.live_checks import TransferBar

        console = Console(stderr=True, quiet=self.json)
        found: list[Transfer] = []
        columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            bar = TransferBar(progress)
            # One model at a time: many large ones need not share the memory.
            for model in (*self.to, *self.more):
                victim = self.load_model(model)
                found += [
                    transfer(run, victim, label_map=self.mapped_labels(), observer=bar, again=self.again)
                    for run in self.runs
                ]
        if self.json:
            typer.echo(json.dumps([_brief(transfer) for transfer in found], indent=2))
        else:
            _show(found)
        return Exit.SOME_ERRORS if any(transfer.errors for transfer in found) else Exit.DONE


def _show(found: Sequence[Transfer]) -> None:
    from rich.console import Console

    from unfooled.report.terminal_tables import transfers_table

    wide = Console()
    wide.width = max(wide.width, 120)  # a table that is folded cannot be read
    wide.print(transfers_table(found))
    typer.echo(
        "of the texts found, those whose original the other model gets right; errors are in no rate\n"
        "kept beside each run, in its folder transfer/"
    )


def _brief(transfer: Transfer) -> dict[str, object]:
    """Everything but the single texts; those are in the file beside the run."""
    return {name: value for name, value in transfer.to_dict().items() if name != "examples"}
