"""`unfooled replay`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer
from rich.console import Console

from unfooled.checks.illusions.attacking import read_results
from unfooled.checks.illusions.diagnosis import look
from unfooled.checks.illusions.wrappers import Votes
from unfooled.checks.replay import read_samples, replay
from unfooled.cli.command import argument, option
from unfooled.cli.evaluate import LiveWatcher, NamedModels, table_of
from unfooled.cli.exits import Exit
from unfooled.cli.values import slug
from unfooled.core.result import decided
from unfooled.core.victim import Victim
from unfooled.errors import UserError
from unfooled.metrics.summary import Rate
from unfooled.report.evaluation import rate


@dataclass(frozen=True, kw_only=True)
class Replay(NamedModels):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled replay runs/x --models base=models/bert other=models/lstm
  unfooled replay samples.jsonl --models mine=my_module:classify --out runs/replayed
\b
samples.jsonl: written by `unfooled export RUN samples.jsonl`, or any file of objects with text,
perturbed_text and label_name.
"""

    samples: Path = argument(..., "Folder of a run, or its export as .jsonl.")
    out: Path | None = option(None, "Folder of the runs. [default: runs/replay-…]", "-o")
    label_map: str | None = option(None, "Label of the samples=model label, comma-separated.")
    json: bool = option(False, "Print the table as JSON and nothing else.")

    def run(self) -> int:
        named = self.names()
        out = self.out or Path("runs") / f"replay-{slug(str(self.samples))}"
        samples = [one for one in read_samples(self.samples) if one.fooled]
        if not samples:
            raise UserError(
                f"{self.samples}: holds no sample that fooled its model",
                "give a run with successes, or its export as .jsonl",
            )
        victims = self.load_models(named)
        watcher = LiveWatcher(Console(stderr=True, quiet=self.json))
        rows: list[dict[str, Any]] = []
        for name, model in victims.items():
            with watcher.wait(f"{name}: a look at the model"):
                looks = look(model, [one.value(edited=True) for one in samples[:32]])
            victim: Victim = Votes(model, draws=self.draws) if looks.random else model
            with watcher.stage(f"{name}: {len(samples)} samples") as observer:
                run = replay(
                    samples,
                    victim,
                    out=out / name,
                    label_map=self.mapped_labels(),
                    name=str(self.samples),
                    observer=observer,
                    restart=self.restart,
                )
            keys = {one.key for one in samples}
            judged = [one for one in read_results(run.path) if one.key in keys and one.outcome != "error"]
            before = Rate.of(sum(decided(one.probs) == one.label for one in judged), len(judged))
            after = Rate.of(sum(decided(one.perturbed_probs) == one.label for one in judged), len(judged))
            rows.append(
                {
                    "name": name,
                    "before": before,
                    "after": after,
                    "errors": len(samples) - len(judged),
                    "random": looks.random,
                    "run": str(run.path),
                }
            )
        if self.json:
            shown = [row | {key: row[key].to_dict() for key in ("before", "after")} for row in rows]
            typer.echo(json.dumps(shown, indent=2))
        else:
            cells = [
                (
                    row["name"] + "*" * row["random"],
                    rate(row["before"]),
                    rate(row["after"]),
                    str(row["errors"]),
                )
                for row in rows
            ]
            headings = ("model", "accuracy on the originals", "accuracy on the samples", "errors")
            Console(width=120).print(table_of(f"{len(samples)} samples of {self.samples}", headings, cells))
            typer.echo("In brackets: 95 % intervals. Errors are in no rate.")
            if any(row["random"] for row in rows):
                typer.echo(f"* decides with the help of chance: the majority of {self.draws} draws counts.")
        return Exit.SOME_ERRORS if any(row["errors"] for row in rows) else Exit.DONE
