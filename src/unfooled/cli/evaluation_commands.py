"""The options of `unfooled evaluate` and `unfooled replay`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import (
    AnyLanguage,
    AttackName,
    Encoding,
    LabelColumn,
    LabelMap,
    MaxWords,
    Seed,
    Split,
    TextColumn,
    Thresholds,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
)

EVALUATE_EPILOG = """\b
Examples:
  unfooled evaluate --models base=m/bert retuned=m/retuned fact=m/fact five=five:fact --data mr --limit 500
  unfooled evaluate --models base=a.skops mine=my_module:classify --data reviews.csv --attack deepwordbug
  unfooled evaluate --models base=m/bert fact=m/fact --data nli.csv --text-column premise,hypothesis
\b
A name may stand for an earlier model inside a wrapper, as in five=five:fact. The model called base is the
one that others are compared with; retuned is the control: the base trained again without any defence.
Repeat the command to go on after a stop. `unfooled summary OUT/NAME/attack` shows any single run.
"""

REPLAY_EPILOG = """\b
Examples:
  unfooled replay runs/x --models base=models/bert other=models/lstm
  unfooled replay samples.jsonl --models mine=my_module:classify --out runs/replayed
\b
samples.jsonl: written by `unfooled export RUN samples.jsonl`, or any file of objects with text,
perturbed_text and label_name.
"""

_MODELS = "NAME=MODEL, each model as for `attack --model`."


def evaluate(
    models: Annotated[list[str], typer.Argument(help=_MODELS, metavar="NAME=MODEL...")],
    data: Annotated[str, typer.Option("--data", "-d", help="Labelled texts that none was trained on.")],
    named: Annotated[
        bool, typer.Option("--models", help="May stand before the models, for the eye.", show_default=False)
    ] = False,
    attack: AttackName = "textfooler",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of all runs. [default: runs/evaluate-…]")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Attack the first N rows.")] = 500,
    sample: Annotated[int | None, typer.Option(min=1, help="Use N rows drawn at random (seeded).")] = None,
    clean_limit: Annotated[
        int, typer.Option(min=1, help="Clean accuracy on up to N rows; they are cheap.")
    ] = 2000,
    base: Annotated[str | None, typer.Option(help="Model to compare with. [default: base]")] = None,
    control: Annotated[str | None, typer.Option(help="The retuned control. [default: retuned]")] = None,
    checks: Annotated[
        str, typer.Option(help="Illusion checks, comma-separated; `none` skips them.")
    ] = "temperature,averages,gradients,transfer,guided",
    averages: Annotated[str, typer.Option(help="Draws per query when a random model is attacked.")] = "4,16",
    draws: Annotated[int, typer.Option(min=1, help="Fresh draws that judge a random model; odd.")] = 15,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, help="Processes; one per core.")] = 1,
    seed: Seed = 0,
    budget: Annotated[int | None, typer.Option(min=1, help="Most queries per example.")] = None,
    max_words: MaxWords = 5000,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    edit: Annotated[str | None, typer.Option(help="Column of a pair to edit. [default: the last]")] = None,
    split: Split = "test",
    encoding: Encoding = "utf-8-sig",
    label_map: LabelMap = None,
    threshold: Thresholds = None,
    encoder: Annotated[str | None, typer.Option(help="Sentence encoder for constraints.")] = None,
    neighbours: Annotated[str | None, typer.Option(help="Neighbour table: name or file.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of the attack: path=value.")
    ] = None,
    any_language: AnyLanguage = False,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard earlier runs in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON and nothing else.")] = False,
) -> None:
    """Compare models clean, on pre-made samples and under attack; check each gain and give a verdict."""
    from unfooled.cli.evaluate import EvaluateOptions, run_evaluate

    options = EvaluateOptions(
        models=tuple(models),
        data=data,
        attack=attack,
        out=out,
        limit=limit,
        sample=sample,
        clean_limit=clean_limit,
        base=base,
        control=control,
        checks=checks,
        averages=averages,
        draws=draws,
        workers=workers,
        seed=seed,
        budget=budget,
        max_words=max_words,
        text_column=text_column,
        label_column=label_column,
        edit=edit,
        split=split,
        encoding=encoding,
        label_map=label_map,
        thresholds=tuple(threshold or ()),
        encoder=encoder,
        neighbours=neighbours,
        settings=tuple(set_ or ()),
        any_language=any_language,
        trust_pickle=trust_pickle,
        restart=restart,
        json=json,
    )
    raise typer.Exit(run_evaluate(options))


def replay(
    samples: Annotated[Path, typer.Argument(help="Folder of a run, or its export as .jsonl.")],
    models: Annotated[list[str], typer.Argument(help=_MODELS, metavar="NAME=MODEL...")],
    named: Annotated[
        bool, typer.Option("--models", help="May stand before the models, for the eye.", show_default=False)
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the runs. [default: runs/replay-…]")
    ] = None,
    label_map: Annotated[
        str | None, typer.Option(help="Label of the samples=model label, comma-separated.")
    ] = None,
    threshold: Thresholds = None,
    draws: Annotated[int, typer.Option(min=1, help="Fresh draws that judge a random model; odd.")] = 15,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard earlier runs in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON and nothing else.")] = False,
) -> None:
    """Show adversarial samples that were made on one model to others."""
    from unfooled.cli.evaluate import ReplayOptions, run_replay

    options = ReplayOptions(
        samples=samples,
        models=tuple(models),
        out=out,
        label_map=label_map,
        thresholds=tuple(threshold or ()),
        draws=draws,
        trust_pickle=trust_pickle,
        restart=restart,
        json=json,
    )
    raise typer.Exit(run_replay(options))
