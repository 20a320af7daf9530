"""The options of `unfooled analyse`; what it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import Encoding, RunFolder, Split, TrustPickle, TrustRemoteCode, TrustTypes

ANALYSE_EPILOG = """\b
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


def analyse(
    run: RunFolder,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for pictures, tables, index.md.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model that was attacked, as for `attack`.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Another model, such as a hardened copy: name=model. Repeat for more."),
    ] = None,
    neighbours: Annotated[str, typer.Option(help="Table of nearest words: resource or path.")] = "",
    example: Annotated[
        list[int] | None,
        typer.Option(
            "--example", "-e", help="Key of an example to draw; repeat for more.", show_default=False
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Without --example: draw the first N successes.")] = 3,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="Data for the PCA: file, folder, set name.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Make this part only; repeat for more.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Look inside for the first N successes only.")
    ] = None,
    pca: Annotated[
        str, typer.Option(help="PCA of bags of words (`tfidf`) or of the model's vectors (`sentence`).")
    ] = "tfidf",
    rows: Annotated[int, typer.Option(min=3, help="Rows of the data for the PCA, drawn at random.")] = 5000,
    width: Annotated[int, typer.Option(min=4, help="Most words in a picture.")] = 40,
    every_head: Annotated[
        bool, typer.Option("--every-head", help="Also draw the full attention map of every single head.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawn rows and of the theorem's vectors.")] = 0,
    split: Split = "train",
    text_column: Annotated[
        str | None, typer.Option(help="Text column of the data; two for pairs: premise,hypothesis.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="Label column of the data.")] = None,
    encoding: Encoding = "utf-8-sig",
    labels: Annotated[
        str | None, typer.Option(help="The model's class names, if `attack` was given any.")
    ] = None,
    victim_option: Annotated[
        list[str] | None, typer.Option(help="name=value for the model's adapter, as for `attack`.")
    ] = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON and nothing else.")] = False,
) -> None:
    """Look behind a run: attention and embeddings before and after, confusion, words changed, PCA."""
    from unfooled.cli.analyse import AnalyseOptions, run_analyse

    options = AnalyseOptions(
        run=run,
        out=out,
        model=model,
        against=tuple(against or ()),
        neighbours=neighbours,
        example=tuple(example) if example else None,
        examples=examples,
        data=data,
        only=tuple(only or ()),
        limit=limit,
        pca=pca,
        rows=rows,
        width=width,
        every_head=every_head,
        seed=seed,
        split=split,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        labels=labels,
        victim_options=tuple(victim_option or ()),
        trust_pickle=trust_pickle,
        json=json,
    )
    raise typer.Exit(run_analyse(options))
