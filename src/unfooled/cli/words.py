"""`unfooled words`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import option
from unfooled.cli.options import Data, LabelMap, Output, RowOptions, print_json
from unfooled.files import check_free


@dataclass(frozen=True, kw_only=True)
class Words(Data, RowOptions, LabelMap, Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled words --data train.csv --out words.json
  unfooled words --data imdb --split train --out words.json --top 10
  unfooled attack --model model.skops --data test.csv --attack strongest-words@3 --set search.words=words.json
"""

    data: str = option(..., "Labelled training texts: file, folder, set.", "-d")
    out: Path = option(Path("words.json"), "The word file to write.", "-o")
    top: int = option(5, "How many words of each class to show.", min=1)
    split: str = "train"
    edit: str | None = option(None, "Which text column of a pair is counted. [default: the last]")
    label_map: str | None = option(None, "Other names for the classes: old=new, comma-separated.")
    force: bool = option(False, "Replace a file that exists.")

    def run(self) -> None:
        from rich.console import Console
        from rich.progress import track

        from unfooled.report.diffs import visible
        from unfooled.report.terminal_tables import class_words_table
        from unfooled.resources.class_words import KIND
        from unfooled.training.class_words import count_class_words

        check_free(self.out, KIND, "word file", force=self.force)
        data = self.choose_rows(self.load(self.data, edit=self.edit))
        examples = track(data, "counting words", len(data), console=self.console(), transient=True)
        words = count_class_words(data, examples).renamed(self.mapped_labels() or {})
        words.write(self.out, top=self.top)
        if self.json:
            lists = {label: dict(words.strongest(n, self.top)) for n, label in enumerate(words.labels)}
            print_json({"out": str(self.out), "strongest": lists}, ensure_ascii=False)
            return
        Console().print(class_words_table(words, self.top))
        typer.echo(f"{len(words.words):,} words of {visible(data.name)}, written: {self.out}")
