"""`unfooled transfer`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import Exit, argument, option
from unfooled.cli.options import LabelMap, ModelOptions, Output, WorkerOptions, print_json

if TYPE_CHECKING:
    from unfooled.checks.transfer import Transfer


@dataclass(frozen=True, kw_only=True)
class TransferTexts(LabelMap, ModelOptions, WorkerOptions, Output):
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

    def run(self) -> int:
        from unfooled.checks.transfer import transfer
        from unfooled.report.progress import ProgressBars
        from unfooled.report.terminal import wide_console
        from unfooled.report.terminal_tables import transfers_table

        found: list[Transfer] = []
        with ProgressBars(self.console()) as bars:
            # One model at a time: many large ones need not share the memory.
            for model in (*self.to, *self.more):
                victim = self.load_model(model)
                found += [
                    transfer(
                        run,
                        victim,
                        label_map=self.mapped_labels(),
                        observer=bars,
                        again=self.again,
                        workers=self.where(self.workers),
                    )
                    for run in self.runs
                ]
        if self.json:
            told = [moved.to_dict() for moved in found]  # the single texts are in the file beside the run
            print_json([{name: facts[name] for name in facts if name != "examples"} for facts in told])
        else:
            wide_console().print(transfers_table(found))
            typer.echo(
                "of the texts found, those whose original the other model gets right; errors are in no rate\n"
                "kept beside each run, in its folder transfer/"
            )
        return Exit.SOME_ERRORS if any(transfer.errors for transfer in found) else Exit.DONE
