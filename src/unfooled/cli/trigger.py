"""`unfooled trigger`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import option
from unfooled.cli.options import Data, LabelMap, ModelOptions, Output, RowOptions, print_json
from unfooled.files import check_free


@dataclass(frozen=True, kw_only=True)
class LearnTriggers(Data, RowOptions, LabelMap, ModelOptions, Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled trigger --model models/lstm --data train.csv --out trigger.json
  unfooled trigger --model ./bert-dir --data mr --split train --class positive --words 2 --limit 400
  unfooled attack --model models/lstm --data test.csv --attack uat --set search.trigger=trigger.json
"""

    model: str = option(..., "A torch model, as for `attack --model`.", "-m")
    data: str = option(..., "Labelled training texts: file, folder, set.", "-d")
    out: Path = option(Path("trigger.json"), "The trigger file to write.", "-o")
    split: str = "train"
    class_: str | None = option(None, "Only against this class. [default: each class]", "--class")
    target: str | None = option(None, "The class to lead to. [default: any other]")
    words: int = option(3, "How many words a trigger has.", min=1)
    epochs: int = option(5, "Passes over the rows, at most.", min=1)
    batch: int = option(128, "Texts per step.", min=1)
    candidates: int = option(40, "Words tried in each place and step.", min=1)
    beam: int = option(1, "Triggers that go on from place to place.", min=1)
    held_out: float = option(0.2, "Share of the rows that only measure it.", min=0.0, max=0.9)
    seed: int = option(0, "Same seed, same trigger.", min=0)
    edit: str | None = option(None, "Which text column of a pair it stands before. [default: the last]")
    force: bool = option(False, "Replace a file that exists.")

    def run(self) -> None:
        from unfooled.report.progress import ProgressBars
        from unfooled.resources.triggers import KIND
        from unfooled.training.triggers import TriggerSettings, learn_triggers

        check_free(self.out, KIND, "trigger file", force=self.force)
        victim = self.load_model(self.model)
        names = ("words", "epochs", "batch", "candidates", "beam", "held_out", "seed")
        settings = TriggerSettings(**self.values(*names))
        data = self.load(self.data, edit=self.edit).aligned(victim.labels, self.mapped_labels())
        rows = self.choose_rows(data, seed=self.seed)
        with ProgressBars(self.console()) as bars:
            triggers = learn_triggers(victim, rows, settings, bars, against=self.class_, target=self.target)
        triggers.write(self.out)
        if self.json:
            print_json({"out": str(self.out), "triggers": triggers.to_dict()}, ensure_ascii=False)
        else:
            typer.echo("\n".join([*triggers.told(), f"written: {self.out}"]))
