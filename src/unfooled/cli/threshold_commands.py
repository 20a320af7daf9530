"""The options of `unfooled calibrate` and `unfooled transfer`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import (
    Clean,
    Encoding,
    JsonOnly,
    LabelColumn,
    Labels,
    Split,
    TextColumn,
    Thresholds,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
    VictimOptions,
)

CALIBRATE_EPILOG = """\b
Examples:
  unfooled calibrate --from use:0.9 --to minilm --data tweets.csv
  unfooled calibrate --from use:0.8 --scale arccos --to minilm --window 15 --data mr --kind neighbours
"""

TRANSFER_EPILOG = """\b
Examples:
  unfooled transfer --from runs/x --to models/lstm
  unfooled transfer --from runs/x --to models/lstm models/svm models/word-cnn
  unfooled transfer --from runs/x --from runs/y --to models/lstm --json
"""


def calibrate(
    from_: Annotated[str, typer.Option("--from", help="Encoder and published threshold, ENCODER:THRESHOLD.")],
    to: Annotated[str, typer.Option("--to", help="Encoder to find the equal threshold for.")],
    data: Annotated[str, typer.Option("--data", "-d", help="Texts to make pairs of; labels do not matter.")],
    scale: Annotated[str, typer.Option(help="Scale of the threshold: cosine, angular, arccos.")] = "cosine",
    to_scale: Annotated[str | None, typer.Option(help="Scale of the answer. [default: the same]")] = None,
    window: Annotated[str, typer.Option(help="Words around the edit, or `none` for whole texts.")] = "none",
    kind: Annotated[str, typer.Option(help="Replacements: neighbours, random words, or both.")] = "both",
    pairs: Annotated[int, typer.Option(min=20, help="How many pairs to measure.")] = 2000,
    neighbours: Annotated[
        str, typer.Option(help="Neighbour table: name, JSON table or vectors file.")
    ] = "counter-fitted",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same pairs.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for calibration.json, .svg, .png. [default: calibration/…]"),
    ] = None,
    split: Split = "test",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = "utf-8-sig",
    clean: Clean = None,
    trust_remote_code: TrustRemoteCode = False,
    json: JsonOnly = False,
) -> None:
    """Map a published similarity threshold to another sentence encoder, by equal shares of real pairs."""
    from unfooled.cli.calibrate import CalibrateOptions, run_calibrate

    options = CalibrateOptions(
        source=from_,
        target=to,
        data=data,
        scale=scale,
        to_scale=to_scale,
        window=window,
        kind=kind,
        pairs=pairs,
        neighbours=neighbours,
        seed=seed,
        out=out,
        split=split,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        clean=clean,
        json=json,
    )
    raise typer.Exit(run_calibrate(options))


def transfer(
    from_: Annotated[list[Path], typer.Option("--from", help="Folder of a run; may be repeated.")],
    to: Annotated[list[str], typer.Option("--to", help="A model, as for `attack --model`; may be repeated.")],
    more: Annotated[list[str] | None, typer.Argument(help="More models.", show_default=False)] = None,
    labels: Labels = None,
    label_map: Annotated[str | None, typer.Option(help="Run label=model label, comma-separated.")] = None,
    threshold: Thresholds = None,
    victim_option: VictimOptions = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    again: Annotated[bool, typer.Option("--again", help="Score again what was scored before.")] = False,
    json: JsonOnly = False,
) -> None:
    """Score the texts that fooled one model on other models; nothing is searched anew."""
    from unfooled.cli.transfer import TransferOptions, run_transfer

    options = TransferOptions(
        runs=tuple(from_),
        models=(*to, *(more or ())),
        labels=labels,
        label_map=label_map,
        thresholds=tuple(threshold or ()),
        victim_options=tuple(victim_option or ()),
        trust_pickle=trust_pickle,
        again=again,
        json=json,
    )
    raise typer.Exit(run_transfer(options))
