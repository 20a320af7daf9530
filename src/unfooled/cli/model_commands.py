"""The options of `unfooled train` and `unfooled compare`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import (
    Clean,
    Encoding,
    JsonOnly,
    LabelColumn,
    LabelMap,
    Labels,
    Settings,
    Split,
    TextColumn,
    TrainLimit,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
    Valid,
)
from unfooled.training.families import help_table

TRAIN_EPILOG = f"""\b
Examples:
  unfooled train --model lstm --data reviews.csv --out models/lstm
  unfooled train --model bert --data mr --out models/bert --epochs 2 --max-length 64
  unfooled train --model word-cnn --data nli.csv --text-column premise,hypothesis --out models/cnn
  unfooled train --model svm --data reviews.csv --out models/svm --sweep 30
  unfooled train --model lstm --data reviews.csv --out models/lstm --resume
  unfooled train --model seq2seq-transformer --data train.en,train.de --valid val.en,val.de --out models/en-de
  unfooled train --model seq2seq-lstm --data multi30k --text-column en,de --valid val --minutes 40 -o models/l
\b
{help_table()}
\b
Settings without a flag of their own: --set name=value. --list shows every setting and its default.
"""

COMPARE_EPILOG = """\b
Examples:
  unfooled compare models/lstm models/svm models/bert --data reviews.csv --out comparison
  unfooled compare models/* --data mr --split test --json
"""


def train(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A family from the list below.", show_default=False)
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="Labelled texts or pairs: file, folder, set name.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the model.")] = None,
    valid: Valid = None,
    epochs: Annotated[int | None, typer.Option(help="Most passes over the data.")] = None,
    batch: Annotated[int | None, typer.Option(help="Texts per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same model. [default: 0]")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without gain before it stops.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Units per layer.")] = None,
    layers: Annotated[int | None, typer.Option(help="Layers.")] = None,
    pool: Annotated[str | None, typer.Option(help="lstm: `last` or `mean`.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share dropped while training.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors: glove-6b-50d, none, or a file.")] = None,
    body: Annotated[
        str | None, typer.Option(help="bert: folder or hub name to fine-tune. [default: minilm]")
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens that are read; the rest is cut.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="seq2seq: minutes of training, at most; the best epoch is kept.")
    ] = None,
    set_: Settings = None,
    sweep: Annotated[
        int | None, typer.Option(min=1, help="Train N times within the ranges below; keep the best.")
    ] = None,
    sweep_time: Annotated[
        float | None, typer.Option(min=0, help="Minutes after which no trial begins.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="How a sweep draws: `tpe` or `random`.")] = "tpe",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split: Split = "train",
    encoding: Encoding = "utf-8-sig",
    limit: TrainLimit = None,
    clean: Clean = None,
    trust_remote_code: TrustRemoteCode = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training or sweep that was stopped.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Replace the model in the folder.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show families, settings and sweep ranges.")] = False,
    json: JsonOnly = False,
) -> None:
    """Train a classifier of one of the papers' families; the folder is a model for every other command."""
    from unfooled.cli.train import TrainOptions, run_train

    options = TrainOptions(
        model=model,
        data=data,
        out=out,
        valid=valid,
        split=split,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        limit=limit,
        clean=clean,
        given={
            "epochs": epochs,
            "batch": batch,
            "lr": lr,
            "seed": seed,
            "patience": patience,
            "hidden": hidden,
            "layers": layers,
            "pool": pool,
            "dropout": dropout,
            "vectors": vectors,
            "body": body,
            "max_length": max_length,
            "minutes": minutes,
        },
        settings=tuple(set_ or ()),
        sweep=sweep,
        sweep_time=sweep_time,
        sampler=sampler,
        resume=resume,
        restart=restart,
        list=list_,
        json=json,
    )
    raise typer.Exit(run_train(options))


def compare(
    models: Annotated[list[str], typer.Argument(help="Models, each as for `attack --model`.")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="Labelled texts that none of them was trained on.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for compare.csv, compare.svg, compare.png.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="The first N rows only.")] = None,
    split: Split = "test",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    labels: Labels = None,
    label_map: LabelMap = None,
    encoding: Encoding = "utf-8-sig",
    clean: Clean = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Also time a bare forward loop, to compare the speed with.")
    ] = False,
    json: JsonOnly = False,
) -> None:
    """Show models side by side: accuracy, F1, size, speed and training time, as a table and a plot."""
    from unfooled.cli.compare import CompareOptions, run_compare

    options = CompareOptions(
        models=tuple(models),
        data=data,
        out=out,
        limit=limit,
        split=split,
        text_column=text_column,
        label_column=label_column,
        labels=labels,
        label_map=label_map,
        encoding=encoding,
        clean=clean,
        trust_pickle=trust_pickle,
        bare=bare,
        json=json,
    )
    raise typer.Exit(run_compare(options))
