"""`unfooled replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Exit, argument, option
from unfooled.cli.evaluate import NamedModels
from unfooled.cli.options import WorkerOptions, print_json, slug
from unfooled.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Replay(NamedModels, WorkerOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled replay runs/x --models base=models/bert other=models/lstm
  unfooled replay samples.jsonl --models mine=my_module:classify --out runs/replayed
\b
samples.jsonl: written by `unfooled export RUN -o samples.jsonl`, or any file of objects with text,
perturbed_text and label_name.
"""

    samples: Path = argument(..., "Folder of a run, or its export as .jsonl.")
    out: Path | None = option(None, "Folder of the runs. [default: runs/replay-…]", "-o")
    label_map: str | None = option(None, "Label of the samples=model label, comma-separated.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.replay import read_samples
        from unfooled.checks.replayed import replay_on_models
        from unfooled.report.evaluation import rate
        from unfooled.report.live_checks import LiveWatcher
        from unfooled.report.terminal import wide_table

        named = self.names()
        out = self.out or Path("runs") / f"replay-{slug(str(self.samples))}"
        samples = [sample for sample in read_samples(self.samples) if sample.fooled]
        if not samples:
            raise UserError(
                f"{self.samples}: holds no sample that fooled its model",
                "give a run with successes, or its export as .jsonl",
            )
        replayed = replay_on_models(
            samples,
            self.load_models(named),
            out=out,
            draws=self.draws,
            name=str(self.samples),
            label_map=self.mapped_labels(),
            watcher=LiveWatcher(self.console()),
            restart=self.restart,
            workers=self.where(self.workers),
        )
        if self.json:
            print_json([model.to_dict() for model in replayed])
        else:
            cells = [
                (model.name + "*" * model.random, rate(model.before), rate(model.after), str(model.errors))
                for model in replayed
            ]
            headings = ("model", "accuracy on the originals", "accuracy on the samples", "errors")
            Console(width=120).print(wide_table(f"{len(samples)} samples of {self.samples}", headings, cells))
            typer.echo("In brackets: 95 % intervals. Errors are in no rate.")
            if any(model.random for model in replayed):
                typer.echo(f"* decides with the help of chance: the majority of {self.draws} draws counts.")
        return Exit.SOME_ERRORS if any(model.errors for model in replayed) else Exit.DONE
