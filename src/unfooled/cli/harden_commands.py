"""The options of `unfooled harden` and `unfooled search`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import (
    Encoding,
    JsonOnly,
    LabelColumn,
    Settings,
    Split,
    TextColumn,
    TrainLimit,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
    Valid,
)

HARDEN_EPILOG = """\b
Examples:
  unfooled harden --method fact --model models/bert --data mr --out models/fact
  unfooled harden --method retune --model models/bert --data mr --out models/retuned
  unfooled harden --method fact --model models/lstm --data reviews.csv --alternatives 2 --out models/lstm-fact
  unfooled harden --method five --model models/fact --out models/five-fact --set sigma=1.5
  unfooled harden --method augment --model models/bert --data mr --samples runs/x --out models/augmented
  unfooled harden --method adversarial-training --model models/bert --data mr --out models/at
  unfooled harden --method fact --model models/bert --data mr --out models/fact --resume
\b
Methods:
  fact: SWITCH alternatives of each text join its batch, with the same label
  fuse: votes over the text and its SWITCH alternatives
  five: votes over copies with noise on the embeddings of the most important words
  augment: SWITCH alternatives, or samples of a finished attack, are added to the training rows
  adversarial-training: each epoch attacks the model as it is then, and trains on the texts that fooled it
  freelb: gradient steps on the input embeddings inside each batch
  retune: more epochs on the plain data: the control for every other method
\b
Settings without a flag of their own: --set name=value. --list shows every setting and its default.
"""

SEARCH_EPILOG = """\b
Examples:
  unfooled search --method five --model models/bert --data mr --limit 200 --minutes 30 --out searches/five
  unfooled search --method fuse --model models/bert --data mr --premade runs/x --trials 20 --out searches/fuse
  unfooled search --method fact --model models/bert --data mr --train-limit 2000 --trials 8 --out searches/x
  unfooled search --method five --model models/bert --data mr --minutes 30 --out searches/five --resume
\b
The result in OUT/best is a model for every other command; OUT also holds search.json, history.png and
importance.png. --list of `unfooled harden` shows the ranges.
"""


def harden(
    method: Annotated[str | None, typer.Option("--method", help="How: a method from the list below.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model to harden, as for `attack --model`.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="Labelled texts or pairs to train on.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the hardened model.")] = None,
    valid: Valid = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data. [default: 2]")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows per step, before texts are added to them.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same model.")] = None,
    words: Annotated[int | None, typer.Option(help="Words to swap, or to put noise on.")] = None,
    alternatives: Annotated[int | None, typer.Option(help="Most alternatives per text.")] = None,
    similarity: Annotated[str | None, typer.Option(help="SWITCH: none, rank or filter.")] = None,
    weight: Annotated[float | None, typer.Option(help="Weight of an added text's loss.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="New random numbers each epoch, or each call.")
    ] = False,
    copies: Annotated[int | None, typer.Option(help="five: copies that vote.")] = None,
    sigma: Annotated[float | None, typer.Option(help="five: standard deviation of the noise.")] = None,
    vote: Annotated[str | None, typer.Option(help="majority, mean-logits or mean-probs.")] = None,
    attack: Annotated[str | None, typer.Option(help="adversarial-training: the attack.")] = None,
    share: Annotated[float | None, typer.Option(help="adversarial-training: share of the rows.")] = None,
    samples: Annotated[
        Path | None, typer.Option(help="augment: run, or .jsonl of one, whose successes are added.")
    ] = None,
    set_: Settings = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split: Split = "train",
    encoding: Encoding = "utf-8-sig",
    limit: TrainLimit = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Replace what the folder holds.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show methods, settings and search ranges.")] = False,
    json: JsonOnly = False,
) -> None:
    """Make a classifier harder to fool: train it on, or put a defence around it."""
    from unfooled.cli.harden import HardenOptions, run_harden

    options = HardenOptions(
        method=method,
        model=model,
        data=data,
        out=out,
        valid=valid,
        given={
            "epochs": epochs,
            "batch": batch,
            "lr": lr,
            "seed": seed,
            "words": words,
            "alternatives": alternatives,
            "similarity": similarity,
            "weight": weight,
            "fresh": True if fresh else None,
            "copies": copies,
            "sigma": sigma,
            "vote": vote,
            "attack": attack,
            "share": share,
        },
        settings=tuple(set_ or ()),
        samples=samples,
        text_column=text_column,
        label_column=label_column,
        split=split,
        encoding=encoding,
        limit=limit,
        resume=resume,
        restart=restart,
        list=list_,
        json=json,
    )
    raise typer.Exit(run_harden(options))


def search(
    method: Annotated[str, typer.Option("--method", help="five, fuse or fact.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model to harden.")],
    data: Annotated[str, typer.Option("--data", "-d", help="Labelled texts to be right on.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the search.")],
    premade: Annotated[
        Path | None, typer.Option(help="Run, or .jsonl of one, to replay. [default: attack the model first]")
    ] = None,
    attack: Annotated[
        str, typer.Option("--attack", "-a", help="Attack for pre-made samples.")
    ] = "textfooler",
    trials: Annotated[int, typer.Option(min=1, help="Most settings to try.")] = 50,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="No trial begins after so many minutes.")
    ] = None,
    balance: Annotated[
        float, typer.Option(min=0, max=1, help="Weight of clean accuracy; the rest is pre-made.")
    ] = 0.5,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Rows to judge by.")] = 200,
    split: Annotated[str, typer.Option(help="Split to judge by; not the one you report on.")] = "train",
    train_split: Annotated[str, typer.Option(help="fact: split to train on.")] = "train",
    train_limit: Annotated[int | None, typer.Option(min=1, help="fact: train on N rows only.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Fix a setting: name=value.")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = "utf-8-sig",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same draws.")] = 0,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a search that was stopped.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin the search again.")] = False,
    json: JsonOnly = False,
) -> None:
    """Try random settings of a defence for a while; keep those with the best accuracy, clean and pre-made."""
    from unfooled.cli.search import SearchOptions, run_search

    options = SearchOptions(
        method=method,
        model=model,
        data=data,
        out=out,
        premade=premade,
        attack=attack,
        trials=trials,
        minutes=minutes,
        balance=balance,
        limit=limit,
        split=split,
        train_split=train_split,
        train_limit=train_limit,
        settings=tuple(set_ or ()),
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        seed=seed,
        resume=resume,
        restart=restart,
        json=json,
    )
    raise typer.Exit(run_search(options))
