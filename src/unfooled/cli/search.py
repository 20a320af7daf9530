"""`unfooled search`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from unfooled.cli.command import Exit, interrupted, option
from unfooled.cli.options import Data, Output, Thresholds, TrustOptions, check_resume, print_json
from unfooled.errors import UserError
from unfooled.values import settings

if TYPE_CHECKING:
    from rich.console import Console

    from unfooled.core.victim import Victim
    from unfooled.data.dataset import Dataset

PREMADE = "premade"


@dataclass(frozen=True, kw_only=True)
class SearchCommand(Data, Thresholds, TrustOptions, Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled search --method five --model models/bert --data mr --limit 200 --minutes 30 --out searches/five
  unfooled search --method fuse --model models/bert --data mr --premade runs/x --trials 20 --out searches/fuse
  unfooled search --method fact --model models/bert --data mr --train-limit 2000 --trials 8 --out searches/x
  unfooled search --method five --model models/bert --data mr --minutes 30 --out searches/five --resume
\b
The result in OUT/best is a model for every other command (a defence around a model that lies elsewhere needs
--victim-option model=MODEL there); OUT also holds search.json, history.png and
importance.png. --list of `unfooled harden` shows the ranges.
"""

    method: str = option(..., "five, fuse or fact.")
    model: str = option(..., "The model to harden.", "-m")
    data: str = option(..., "Labelled texts to be right on.", "-d")
    out: Path = option(..., "Folder of the search.", "-o")
    premade: Path | None = option(None, "Run, or .jsonl of one, to replay. [default: attack the model first]")
    attack: str = option("textfooler", "Attack for pre-made samples.", "-a")
    trials: int = option(50, "Most settings to try.", min=1)
    minutes: float | None = option(None, "No trial begins after so many minutes.", min=0)
    balance: float = option(0.5, "Weight of clean accuracy; the rest is pre-made.", min=0, max=1)
    limit: int = option(200, "Rows to judge by.", "-n", min=1)
    split: str = option("train", "Split to judge by; not the one you report on.")
    train_split: str = option("train", "fact: split to train on.")
    train_limit: int | None = option(None, "fact: train on N rows only.", min=1)
    set_: tuple[str, ...] = option((), "Fix a setting: name=value.", "--set")
    seed: int = option(0, "Same seed, same draws.", min=0)
    resume: bool = option(False, "Go on with a search that was stopped.")
    restart: bool = option(False, "Begin the search again.")

    def run(self) -> int:
        import numpy as np
        from rich.console import Console

        from unfooled.checks.replay import fooling_texts
        from unfooled.defenses.methods import find_method
        from unfooled.defenses.search import search
        from unfooled.report.progress import SearchProgress
        from unfooled.report.search import print_search
        from unfooled.training.preparation import LabelledTexts, read_rows
        from unfooled.victims.loading import load_victim

        method = find_method(self.method)
        if not method.ranges:
            raise UserError(f"{method.name} has no ranges to search", "search five, fuse or fact")
        check_resume(resume=self.resume, restart=self.restart)
        victim = load_victim(self.model, thresholds=self.thresholds())
        judged = self.load(self.data, limit=self.limit)
        clean, _ = read_rows(judged.aligned(victim.labels))
        console = self.console()
        try:
            run = self.premade or _premade(self, victim, judged, console)
        except KeyboardInterrupt:
            return interrupted(f"samples made so far are in {self.out}")
        samples = fooling_texts(run, victim.labels)
        premade = LabelledTexts(
            [text for text, _ in samples], np.array([label for _, label in samples], dtype=np.int64)
        )
        console.print(
            f"judged by {len(clean)} clean rows and {len(premade)} pre-made samples", highlight=False
        )
        with SearchProgress(console, method.name) as observer:
            try:
                found = search(
                    method.name,
                    self.model,
                    self.out,
                    clean=clean,
                    premade=premade,
                    trials=self.trials,
                    minutes=self.minutes,
                    balance=self.balance,
                    fixed=settings(self.set_),
                    thresholds=self.thresholds(),
                    data=_training(self, len(judged)) if method.kind == "train" else None,
                    seed=self.seed,
                    resume=self.resume,
                    restart=self.restart,
                    observer=observer,
                )
            except KeyboardInterrupt:
                return interrupted(f"finished trials are in {self.out}", "repeat the command with --resume")
        if self.json:
            print_json(found.to_dict())
        else:
            print_search(Console(), found, self.balance)
        return Exit.DONE


def _premade(options: SearchCommand, victim: Victim, data: Dataset, console: Console) -> Path:
    """Samples made on the model as it is; the run is kept, so that they are made once."""
    from unfooled.core.session import Settings
    from unfooled.report.live import LiveObserver
    from unfooled.runs.attack import attack

    out = options.out / PREMADE
    with LiveObserver(console, title=f"pre-made samples: {options.attack}") as observer:
        attack(
            victim,
            data,
            options.attack,
            out=out,
            settings=Settings(seed=options.seed),
            observer=observer,
            restart=options.restart,
        )
    return out


def _training(options: SearchCommand, judged: int) -> Dataset:
    """The rows to train on: not those that the search is judged by."""
    offset = judged if options.train_split == options.split else 0
    return options.load(options.data, split=options.train_split, limit=options.train_limit, offset=offset)
