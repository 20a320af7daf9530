"""`unfooled analyse`."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast, get_args

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Data, ModelOptions
from unfooled.errors import MissingExtraError, UserError
from unfooled.values import pairs

if TYPE_CHECKING:
    from unfooled.core.victim import Victim
    from unfooled.data.dataset import Dataset
    from unfooled.internals.analysis import Analysis
    from unfooled.internals.neighbourhood import Find


@dataclass(frozen=True, kw_only=True)
class Analyse(Data, ModelOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled analyse runs/x --out analysis/x
  unfooled analyse runs/x --model models/bert --out analysis/x
  unfooled analyse runs/x --model models/bert --example 12 --example 40 --every-head --out analysis/x
  unfooled analyse runs/x --only pca --data mr --split train --out analysis/mr
  unfooled analyse runs/x --model models/bert --against fact=models/fact --only neighbours --only field -o out
  unfooled analyse runs/x --model models/lstm --data reviews.csv --pca sentence --out analysis/x
\b
Parts and what they need:
  confusion   who is mistaken for whom, before and after      the run
  words       histogram of words changed                      the run
  attention   heat maps before and after, how much it moved   --model, if it shows attention
  embeddings  change per word and layer, R_e, sparsity        --model, if it shows embeddings
  theorem     E|s'-s| against its bound                       nothing; --model for its own matrices
  pca         the data in two dimensions                      --data
  neighbours  words around the one that tipped it             --model, --against for other models
  field       vectors around that word, in two dimensions     --model, if it is a torch model
\b
What cannot be made is left out, and a line says why.
"""

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    out: Path = option(..., "Folder for pictures, tables, index.md.", "-o")
    model: str | None = option(None, "The model that was attacked, as for `attack`.", "-m")
    against: tuple[str, ...] = option(
        (), "Another model, such as a hardened copy: name=model. Repeat for more."
    )
    neighbours: str = option("", "Table of nearest words: resource or path.")
    example: tuple[int, ...] = option(
        (), "Key of an example to draw; repeat for more.", "-e", show_default=False
    )
    examples: int = option(3, "Without --example: draw the first N successes.", min=0)
    data: str | None = option(None, "Data for the PCA: file, folder, set name.", "-d")
    only: tuple[str, ...] = option((), "Make this part only; repeat for more.")
    limit: int | None = option(None, "Look inside for the first N successes only.", "-n", min=1)
    pca: str = option("tfidf", "PCA of bags of words (`tfidf`) or of the model's vectors (`sentence`).")
    rows: int = option(5000, "Rows of the data for the PCA, drawn at random.", min=3)
    width: int = option(40, "Most words in a picture.", min=4)
    every_head: bool = option(False, "Also draw the full attention map of every single head.")
    seed: int = option(0, "Of the drawn rows and of the theorem's vectors.", min=0)
    split: str = "train"
    text_column: str | None = option(None, "Text column of the data; two for pairs: premise,hypothesis.")
    label_column: str | None = option(None, "Label column of the data.")
    labels: str | None = option(None, "The model's class names, if `attack` was given any.")
    victim_option: tuple[str, ...] = option((), "name=value for the model's adapter, as for `attack`.")
    json: bool = option(False, "Print the numbers as JSON and nothing else.")

    def run(self) -> None:
        from rich.console import Console

        from unfooled.internals.analysis import PARTS, analyse
        from unfooled.internals.folder import write_analysis
        from unfooled.internals.pca import Features
        from unfooled.report.progress import ProgressBars
        from unfooled.runs.file import RunFile

        if self.pca not in get_args(Features):
            raise UserError(
                f"there is no PCA of {self.pca!r}", f"choose from {', '.join(get_args(Features))}"
            )
        if importlib.util.find_spec("matplotlib") is None:
            raise MissingExtraError("pictures", "plots")  # now, not after minutes of computing
        RunFile.read(self.folder).close()  # a wrong path is told before a model is loaded
        only = self.only or PARTS
        console = Console(stderr=True, quiet=self.json)
        with console.status("loading") if self.model or self.data else console.status("reading"):
            victim = self.load_model(self.model) if self.model else None
            against = _against(self)
            nearest = _nearest(self, "neighbours" in self.only) if "neighbours" in only else None
            data = _data(self) if "pca" in only else None
        with ProgressBars(console) as observer:
            analysis = analyse(
                self.folder,
                victim=victim,
                against=against,
                nearest=nearest,
                data=data,
                keys=self.example or None,
                examples=self.examples,
                limit=self.limit,
                only=only,
                features=cast(Features, self.pca),
                seed=self.seed,
                observer=observer,
            )
            folder = write_analysis(
                analysis,
                self.out,
                width=self.width,
                every_head=self.every_head,
                observer=observer,
            )
        if self.json:
            typer.echo((folder / "summary.json").read_text(encoding="utf-8"), nl=False)
            return
        show_analysis(analysis, folder)


def show_analysis(analysis: Analysis, folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unfooled.internals.tables import analysis_rows
    from unfooled.report.diffs import visible

    console = Console()
    title = f"{analysis.attack} on {analysis.victim}, data {analysis.data}"
    console.print(visible(title), style="bold", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("n", justify="right")
    for row in analysis_rows(analysis):
        table.add_row(*row)
    console.print(table)
    for note in analysis.notes:
        console.print(f"! {visible(note)}", highlight=False, markup=False)
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["files"]
    pictures = sum(name.endswith(".svg") for name in written)
    console.print(
        f"{pictures} pictures and {sum(name.endswith('.csv') for name in written)} tables: {folder}/index.md",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _against(options: Analyse) -> dict[str, Victim]:
    from unfooled.victims.loading import load_victim

    return {
        name: load_victim(
            model,
            labels=options.labels,
            trust_pickle=options.trust_pickle,
            thresholds=options.thresholds(),
        )
        for name, model in pairs(options.against, "--against").items()
    }


def _nearest(options: Analyse, wanted: bool) -> Find | None:
    """The table of nearest words; a missing one is an error only where it was asked for."""
    from unfooled.internals.analysis import nearest_words
    from unfooled.resources.neighbours import DEFAULT

    if options.model is None:
        return None
    return nearest_words(options.neighbours or (DEFAULT if wanted else ""))


def _data(options: Analyse) -> Dataset | None:
    if options.data is None:
        return None
    return options.load(options.data, sample=options.rows, seed=options.seed)
