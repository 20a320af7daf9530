"""The options of `unfooled words`; what it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import Encoding, LabelColumn, Split, TextColumn

WORDS_EPILOG = """\b
Examples:
  unfooled words --data train.csv --out words.json
  unfooled words --data imdb --split train --out words.json --top 10
  unfooled attack --model model.skops --data test.csv --attack strongest-words@3 --set search.words=words.json
"""


def words(
    data: Annotated[str, typer.Option("--data", "-d", help="Labelled training texts: file, folder, set.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The word file to write.")] = Path("words.json"),
    top: Annotated[int, typer.Option(min=1, help="How many words of each class to show.")] = 5,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="The first N rows only.")] = None,
    split: Split = "train",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    edit: Annotated[
        str | None, typer.Option(help="Which text column of a pair is counted. [default: the last]")
    ] = None,
    label_map: Annotated[
        str | None, typer.Option(help="Other names for the classes: old=new, comma-separated.")
    ] = None,
    encoding: Encoding = "utf-8-sig",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON and nothing else.")] = False,
) -> None:
    """Show and save the words that speak most for each class, for the attacks that swap them."""
    from unfooled.cli.words import WordsOptions, run_words

    options = WordsOptions(
        data=data,
        out=out,
        top=top,
        limit=limit,
        split=split,
        text_column=text_column,
        label_column=label_column,
        edit=edit,
        label_map=label_map,
        encoding=encoding,
        force=force,
        json=json,
    )
    raise typer.Exit(run_words(options))
